//! `punctual queue update`: changes the limits that its options speak of, and nothing else.

use anyhow::{Result, ensure};
use clap::Args;
use prost_types::FieldMask;
use punctual_api::v1;

use super::list::limits;
use super::settings::SettingArgs;
use crate::answer::Answer;
use crate::fault;
use crate::session::{RequestIdArgs, Session, ask};

/// Change the limits of a queue, from the next claim on; nothing that runs is stopped
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct UpdateArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    settings: SettingArgs,

    /// Remove the limit of --concurrency
    #[arg(long, conflicts_with = "concurrency")]
    no_concurrency: bool,

    /// Remove the limit of --worker-concurrency
    #[arg(long, conflicts_with = "worker_concurrency")]
    no_worker_concurrency: bool,

    /// Remove the limit of --rate
    #[arg(long, conflicts_with = "rate")]
    no_rate: bool,

    /// Remove the limit of --key-concurrency
    #[arg(long, conflicts_with = "key_concurrency")]
    no_key_concurrency: bool,

    /// Remove the limit of --key-rate
    #[arg(long, conflicts_with = "key_rate")]
    no_key_rate: bool,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const EXAMPLES: &str = "\
Examples:
  punctual queue update mail --rate 50/1s
  punctual queue update mail --no-rate --no-concurrency --description 'as fast as it goes'";

pub async fn update(session: &Session, args: &UpdateArgs) -> Result<Answer> {
    let (settings, mut fields) = args.settings.given(&args.name)?;
    let removed = [
        ("concurrency_max", args.no_concurrency),
        ("worker_concurrency_max", args.no_worker_concurrency),
        ("rate", args.no_rate),
        ("key_concurrency_max", args.no_key_concurrency),
        ("key_rate", args.no_key_rate),
    ];
    fields.extend(removed.into_iter().filter(|(_, removed)| *removed).map(|(field, _)| field));
    ensure!(
        !fields.is_empty(),
        fault::new("there is nothing to change", "name what to change, as in --rate 100/1s or --no-rate")
    );
    let request = v1::UpdateQueueRequest {
        namespace: session.namespace.clone(),
        queue: args.name.clone(),
        settings: Some(settings),
        update_mask: Some(FieldMask { paths: fields.into_iter().map(str::to_owned).collect() }),
        request_id: args.request_id.get(),
    };
    let response = ask!(session, queues.update(request))?;
    session.show(&response, || {
        let queue = response.description.as_ref().and_then(|about| about.queue.clone()).unwrap_or_default();
        let name = fault::printable(&args.name);
        let limits =
            limits(&queue).map_or_else(|| "no limits".to_owned(), |limits| format!("limits {limits}"));
        format!("updated queue {name}: {limits}\n")
    })
}
