//! The options on a queue's limits, the same for create and update.

use anyhow::{Result, ensure};
use clap::Args;
use punctual_api::v1;

use crate::fault;
use crate::wire::time;

/// What a queue allows.
#[derive(Debug, Args)]
pub struct SettingArgs {
    /// Runs in progress at a time, on all workers together [default: no limit]
    #[arg(long, value_name = "N")]
    concurrency: Option<u32>,

    /// Runs in progress at a time on one worker [default: no limit]
    #[arg(long, value_name = "N")]
    worker_concurrency: Option<u32>,

    /// Starts over time, as in 100/1s [default: no limit]
    #[arg(long, value_name = "N/DURATION")]
    rate: Option<String>,

    /// Runs of one key in progress at a time [default: no limit]
    #[arg(long, value_name = "N")]
    key_concurrency: Option<u32>,

    /// Starts of one key over time, as in 5/1m [default: no limit]
    #[arg(long, value_name = "N/DURATION")]
    key_rate: Option<String>,

    /// How much later a run counts as enqueued for each step of its priority, so that nobody waits for ever [default: 1m]
    #[arg(long, value_name = "DURATION")]
    priority_step: Option<String>,

    /// What it is for, for people
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

impl SettingArgs {
    /// What the options say about a queue, and the fields that they speak of.
    pub fn given(&self, name: &str) -> Result<(v1::Queue, Vec<&'static str>)> {
        let step = self.priority_step.as_ref().map(|text| time::duration("--priority-step", text));
        let queue = v1::Queue {
            queue: name.to_owned(),
            concurrency_max: self.concurrency,
            worker_concurrency_max: self.worker_concurrency,
            rate: self.rate.as_ref().map(|text| rate("--rate", text)).transpose()?,
            paused: false,
            key_concurrency_max: self.key_concurrency,
            key_rate: self.key_rate.as_ref().map(|text| rate("--key-rate", text)).transpose()?,
            priority_step: step.transpose()?.map(time::duration_to_wire),
            description: self.description.clone().unwrap_or_default(),
        };
        let given = [
            ("concurrency_max", self.concurrency.is_some()),
            ("worker_concurrency_max", self.worker_concurrency.is_some()),
            ("rate", self.rate.is_some()),
            ("key_concurrency_max", self.key_concurrency.is_some()),
            ("key_rate", self.key_rate.is_some()),
            ("priority_step", self.priority_step.is_some()),
            ("description", self.description.is_some()),
        ];
        let fields = given.into_iter().filter(|(_, given)| *given).map(|(field, _)| field).collect();
        Ok((queue, fields))
    }
}

fn rate(option: &'static str, text: &str) -> Result<v1::Rate> {
    let refused = || {
        fault::new(format!("{option} is not so many in so much time, found `{text}`"), "write it as `100/1m`")
    };
    let (count, per) = text.split_once('/').ok_or_else(refused)?;
    let starts_max = count.trim().parse().map_err(|_| refused())?;
    let per = time::duration(option, per)?;
    ensure!(!per.is_zero(), refused());
    Ok(v1::Rate { starts_max, per: Some(time::duration_to_wire(per)) })
}
