//! Watching: what happens to schedules, as it happens, for gRPC streams and server-sent events alike.

use std::sync::Arc;

use futures_util::{Stream, stream};
use jiff::Timestamp;
use punctual_api::v1;
use punctual_engine::Happened;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::app::{App, Seat, namespace};
use crate::convert::event;
use crate::status::Fault;

/// The rpc.
pub(crate) const RPC: &str = "punctual.v1.Schedules/Watch";

/// Events of one schedule or of a namespace, from now on until the server stops. A slow watcher is told what it missed.
pub(crate) fn events(
    app: &Arc<App>,
    asked: v1::WatchScheduleRequest,
) -> Result<impl Stream<Item = v1::WatchEvent> + Send + 'static, Fault> {
    let watcher = Watcher { app: app.clone(), seat: app.seat()?, asked };
    Ok(stream::unfold(watcher, |mut watcher| async move {
        let Watcher { app, seat, asked } = &mut watcher;
        let event = tokio::select! {
            event = next(&mut seat.events, asked, || app.engine.now()) => event,
            _ = seat.stopping.wait_for(|stopping| *stopping) => None,
        };
        Some((event?, watcher))
    }))
}

struct Watcher {
    app: Arc<App>,
    seat: Seat,
    asked: v1::WatchScheduleRequest,
}

/// The next event that the watcher asked for.
async fn next(
    events: &mut Receiver<Happened>,
    asked: &v1::WatchScheduleRequest,
    now: impl Fn() -> Timestamp,
) -> Option<v1::WatchEvent> {
    let (namespace, schedule) = (namespace(&asked.namespace), asked.schedule_id.as_str());
    loop {
        match events.recv().await {
            Ok(happened) => {
                let key = &happened.key;
                if &*key.namespace == namespace && (schedule.is_empty() || &*key.schedule == schedule) {
                    return Some(event::event(&happened));
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
        let asked = v1::WatchScheduleRequest { namespace: String::new(), schedule_id: "a".into() };
        let mut told = Vec::new();
        while let Some(event) = next(&mut heard, &asked, || Timestamp::UNIX_EPOCH).await {
            told.push((event.kind(), event.missed_count));
        }
        assert_eq!(told, [(v1::event_kind::Word::Lagged, 3), (v1::event_kind::Word::Created, 0)]);
    }
}
