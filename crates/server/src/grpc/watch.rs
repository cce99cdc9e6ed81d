//! Watching: what happens to schedules, as it happens, for gRPC streams and server-sent events alike.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use jiff::Timestamp;
use punctual_api::v1;
use punctual_engine::{Elsewhere, Happened};
use punctual_store::Watch;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Interval, interval};

use crate::app::{App, Seat, namespace};
use crate::convert::event;
use crate::status::Fault;

/// The rpc.
pub(crate) const RPC: &str = "punctual.v1.Schedules/Watch";

/// How often the other nodes are told that somebody still watches here.
const TELL_AGAIN: Duration = Duration::from_secs(3);

/// Events of one schedule or of a namespace, from now on until the server stops. A slow watcher is told what it missed.
pub(crate) fn events(
    app: &Arc<App>,
    asked: v1::WatchScheduleRequest,
) -> Result<impl Stream<Item = v1::WatchEvent> + Send + 'static, Fault> {
    let schedule = Some(asked.schedule_id).filter(|schedule| !schedule.is_empty());
    let watch = Watch { namespace: namespace(&asked.namespace).into(), schedule: schedule.map(Into::into) };
    let watcher = Watcher { app: app.clone(), seat: app.seat()?, watch, again: interval(TELL_AGAIN) };
    Ok(stream::unfold(watcher, |mut watcher| async move {
        let Watcher { app, seat: Seat { events, elsewhere, stopping, .. }, watch, again } = &mut watcher;
        let now = || app.engine.now();
        let event = loop {
            break tokio::select! {
                event = next(events, |happened| here(happened, watch), now) => event,
                event = next(elsewhere, |happened| there(happened, watch, now), now) => event,
                _ = stopping.wait_for(|stopping| *stopping) => None,
                _ = again.tick() => {
                    app.engine.tell_watched(watch.clone());
                    continue;
                }
            };
        };
        Some((event?, watcher))
    }))
}

struct Watcher {
    app: Arc<App>,
    seat: Seat,
    watch: Watch,
    again: Interval,
}

fn here(happened: &Happened, watch: &Watch) -> Option<v1::WatchEvent> {
    watch.covers(&happened.key).then(|| event::event(happened))
}

fn there(happened: &Elsewhere, watch: &Watch, now: impl Fn() -> Timestamp) -> Option<v1::WatchEvent> {
    match happened {
        Elsewhere::Happened(happened) => here(happened, watch),
        Elsewhere::Untold(count) => Some(event::untold(*count, now())),
    }
}

/// The next event that the watcher asked for.
async fn next<T: Clone>(
    events: &mut Receiver<T>,
    wanted: impl Fn(&T) -> Option<v1::WatchEvent>,
    now: impl Fn() -> Timestamp,
) -> Option<v1::WatchEvent> {
    loop {
        match events.recv().await {
            Ok(happened) => {
                if let Some(event) = wanted(&happened) {
                    return Some(event);
                }
            }
            Err(RecvError::Lagged(missed)) => return Some(event::lagged(missed, now())),
            Err(RecvError::Closed) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::{Note, ScheduleKey};

    #[tokio::test]
    async fn a_slow_watcher_is_told_how_much_it_missed() {
        let (events, mut heard) = tokio::sync::broadcast::channel(2);
        let happened = |schedule: &str| Happened {
            key: Arc::new(ScheduleKey::new("default", schedule)),
            at: Timestamp::UNIX_EPOCH,
            note: Note::Created,
            run: None,
        };
        for schedule in ["a", "b", "a", "b", "a"] {
            events.send(happened(schedule)).unwrap();
        }
        drop(events);
        let watch = Watch { namespace: "default".into(), schedule: Some("a".into()) };
        let mut told = Vec::new();
        let now = || Timestamp::UNIX_EPOCH;
        while let Some(event) = next(&mut heard, |happened| here(happened, &watch), now).await {
            told.push((event.kind(), event.missed_count));
        }
        assert_eq!(told, [(v1::event_kind::Word::Lagged, 3), (v1::event_kind::Word::Created, 0)]);
    }
}
