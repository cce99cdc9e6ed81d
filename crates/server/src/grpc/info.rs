//! Who answers.

use punctual_api::v1;

use crate::app::App;
use crate::convert::time::to_wire;
use crate::status::Fault;

pub(crate) async fn info(app: &App, _asked: v1::InfoRequest) -> Result<v1::InfoResponse, Fault> {
    Ok(v1::InfoResponse {
        version: env!("CARGO_PKG_VERSION").into(),
        node_id: app.node.clone(),
        store: app.store.into(),
        now: Some(to_wire(app.engine.now())),
        started_at: Some(to_wire(app.started_at)),
    })
}
