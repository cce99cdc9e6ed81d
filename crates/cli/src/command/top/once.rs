//! One sample as a page: what was counted since the start, and what happens now.

use std::collections::BTreeMap;

use punctual_api::v1;

use super::history::Lateness;
use super::rows;
use crate::output::page::Page;
use crate::session::Session;

pub fn page(session: &Session, info: &v1::InfoResponse, stats: v1::StatsResponse) -> String {
    let lateness = Lateness::of(&stats);
    let counted = |counts: &BTreeMap<&String, &u64>| {
        let words = counts.iter().filter(|(_, count)| ***count > 0);
        let words: Vec<String> =
            words.map(|(word, count)| format!("{count} {}", word.replace('_', " "))).collect();
        if words.is_empty() { "0".to_owned() } else { words.join(", ") }
    };
    let mut page = Page::default();
    page.fact("node", format!("{} ({}, {}) at {}", info.node_id, info.version, info.store, session.address))
        .fact("up", rows::up(&stats))
        .fact("started", stats.started.to_string())
        .fact("not started", counted(&stats.not_started.iter().collect()))
        .fact("ended", counted(&stats.closed.iter().collect()))
        .fact("lateness", format!("p50 {}, p99 {}", lateness.text(0.5), lateness.text(0.99)))
        .fact("running", stats.running_count.to_string())
        .fact("calls", stats.call_count.to_string())
        .fact("timers", stats.timer_count.to_string())
        .alarm(
            "quarantined",
            match stats.quarantined_count {
                0 => String::new(),
                count => count.to_string(),
            },
        );
    page.section("queues", rows::QUEUE_HEADER, rows::queues(&stats));
    page.section("longest runs", rows::RUN_HEADER, rows::runs(&stats));
    page.text()
}
