//! A cluster behind this server: what is not ours reaches it as it came.

mod fake;
mod forwarding;
mod starts;

use punctual_server::Config;

use super::Front;
use crate::bed::{Bed, config};
use fake::Fake;

/// A server in front of a cluster.
async fn front(fake: &Fake) -> Front {
    Front::on(Bed::with(before(fake)).await).await
}

fn before(fake: &Fake) -> Config {
    let mut config = config();
    config.temporal_upstream = format!("http://{}", fake.address);
    config
}
