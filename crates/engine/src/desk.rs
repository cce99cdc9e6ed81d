//! The keeper of runs: hands them to workers, watches their leases and timeouts, and records how they end.
//!
//! Which attempt of a run counts is decided by the database: every write names the attempt that it speaks for. Leases live in
//! memory, so a heartbeat costs no write; after a restart every running attempt gets a new lease. Where nodes share a
//! database, each run has one keeper among them; see [`keep`].

mod bell;
mod claim;
mod end;
mod keep;
mod make;
mod outside;
mod pulse;
mod seen;
mod stop;
mod watch;
mod works;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use punctual_core::ScheduleKey;
use punctual_store::record::RunBody;
use punctual_store::{LiveRun, LiveState, RunKey, Store, StoreError};
use tokio::sync::{Notify, mpsc};

use bell::Bells;
pub use claim::Claimed;
pub use end::{AttemptEnd, Recorded, Report};
pub(crate) use make::{MakeError, Order, Request};
pub use outside::{CALLBACK_WORKER, CallbackEnd};
pub use pulse::{Directive, Pulse, PulseAnswer};
use seen::Seen;
pub use seen::Sighting;
use watch::{Lease, Watch, Watches};
use works::Works;

use crate::clock::Clock;
use crate::cluster::Node;
use crate::config::EngineConfig;
use crate::error::EngineError;
use crate::metrics::Metrics;
use crate::outlet::RunNews;
use crate::router::Router;

/// How the name of a worker begins that beats no heart unless the run says how often. Its attempts may be silent for as long as
/// they may take. It is in the name because that is what is kept of a worker: so it holds after a restart, and at every node.
pub const QUIET_WORKER: &str = "quiet:";

/// How often runs are looked for when the database did not answer, and how far apart: what was still being written at the first
/// look is there at the last, since no statement takes longer.
const DOUBTS: u8 = 3;
const DOUBT_PAUSE: Duration = Duration::from_secs(6);

/// How long such a worker may be silent where nothing says how long its attempt may take.
const QUIET_LEASE: SignedDuration = SignedDuration::from_hours(1);

/// The keeper of runs.
pub(crate) struct Desk {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) router: Arc<Router>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) config: EngineConfig,
    pub(super) node: Node,
    watches: Mutex<Watches>,
    bells: Mutex<Bells>,
    seen: Mutex<Seen>,
    /// Keys for runs without a schedule.
    keys: tokio::sync::Mutex<(Range<i64>, Timestamp)>,
    /// The earliest deadline may have changed.
    pub(super) alarm: Notify,
    /// Somebody wants a run to stop.
    pub(super) directives: Notify,
    /// The database may have written what it did not answer: runs may be under this node's name that it does not watch. So
    /// often they will be looked for, and not before this.
    doubts: Mutex<(u8, Instant)>,
    works: Works,
}

impl Desk {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        router: Arc<Router>,
        metrics: Arc<Metrics>,
        config: EngineConfig,
        node: Node,
    ) -> Desk {
        let (watches, bells, seen) = Default::default();
        let (alarm, directives, works) = Default::default();
        let doubts = Mutex::new((0, Instant::now()));
        let keys = tokio::sync::Mutex::new((0..0, Timestamp::MIN));
        Desk {
            store,
            clock,
            router,
            metrics,
            config,
            node,
            watches,
            bells,
            seen,
            keys,
            alarm,
            directives,
            doubts,
            works,
        }
    }

    /// Does something to its end even if whoever asked for it goes away: what is written must be watched too.
    pub(crate) async fn to_the_end<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<EngineError> + Send + 'static,
    {
        self.works.spawn(work).await.unwrap_or_else(|_| Err(EngineError::Stopping.into()))
    }

    /// Waits until all of that is done: what is written later, nobody would look after.
    pub(crate) async fn finish(&self) {
        self.works.finish().await;
    }

    /// What is watched may be less than there is.
    pub(crate) fn doubt(&self) {
        let mut doubts = self.doubts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *doubts = (DOUBTS, Instant::now());
    }

    /// Whether it may be less; whoever asks looks again.
    pub(crate) fn take_doubt(&self) -> bool {
        let mut doubts = self.doubts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (left, not_before) = *doubts;
        if left == 0 || not_before > Instant::now() {
            return false;
        }
        *doubts = (left - 1, Instant::now() + DOUBT_PAUSE);
        true
    }

    pub(super) fn watches(&self) -> MutexGuard<'_, Watches> {
        self.watches.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes over the runs that were live before this process began, where there was no other.
    pub(crate) async fn recover(&self) -> Result<usize, StoreError> {
        let (mut after, mut count) = (None, 0);
        loop {
            let page = self.store.live_runs(Default::default(), after, 1_000).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.made.run);
            count += page.len();
            self.watch_all(&page);
        }
        self.show_running();
        Ok(count)
    }

    /// What there is to watch about a run, if anything.
    pub(super) fn watch_of(
        &self,
        live: &LiveRun,
        body: &RunBody,
        now: Timestamp,
        lease: Option<SignedDuration>,
    ) -> Option<Watch> {
        let (queue, last_time) = (live.made.queue, body.action.last_time(live.made.created_at));
        match &live.state {
            LiveState::Ready => last_time.map(|last_time| Watch::Queued { last_time }),
            LiveState::BackingOff { not_before } => {
                Some(Watch::BackingOff { queue, not_before: *not_before, last_time })
            }
            LiveState::Running { worker, started_at } => {
                let length = body.action.timeouts.heartbeat.or(lease).unwrap_or(self.config.worker_lease);
                let deadline = body.action.attempt_deadline(live.made.created_at, *started_at);
                let length = match &**worker {
                    // Nobody beats a heart for it: it is over when its callback comes, or at its deadline.
                    CALLBACK_WORKER => SignedDuration::MAX,
                    quiet if quiet.starts_with(QUIET_WORKER) && body.action.timeouts.heartbeat.is_none() => {
                        if deadline.is_some() {
                            SignedDuration::MAX
                        } else {
                            QUIET_LEASE
                        }
                    }
                    _ => length.max(SignedDuration::from_secs(1)),
                };
                Some(Watch::Running(Box::new(Lease {
                    worker: worker.clone(),
                    attempt: live.attempt,
                    length,
                    until: now.checked_add(length).unwrap_or(Timestamp::MAX),
                    deadline,
                    queue,
                    origin: live.made.origin,
                    key: ScheduleKey { namespace: body.namespace.clone(), schedule: body.schedule.clone() },
                    created_at: live.made.created_at,
                    started_at: *started_at,
                    retry: body.action.without_input(),
                    stop: live.stop,
                    log_tail: None,
                })))
            }
        }
    }

    /// Works off deadlines and news from the shards, for as long as the process lives.
    pub(crate) async fn run(self: Arc<Desk>, mut news: mpsc::UnboundedReceiver<RunNews>) {
        loop {
            let next = self.watches().next_time();
            let wait = match next {
                // The system's clock may jump: look again every second at the latest.
                Some(next) => self.clock.real(next.duration_since(self.clock.now())),
                None => Duration::from_secs(3_600),
            };
            tokio::select! {
                heard = news.recv() => match heard {
                    Some(heard) => self.hear(heard),
                    None => return,
                },
                () = self.alarm.notified() => {}
                () = tokio::time::sleep(wait.min(Duration::from_secs(1))), if next.is_some() => self.look(),
            }
        }
    }

    fn hear(self: &Arc<Desk>, news: RunNews) {
        match news {
            RunNews::Made { queue, schedules, runs } => {
                let mut watches = self.watches();
                for run in runs {
                    if let Some(last_time) = run.last_time {
                        // A worker may have it already.
                        watches.set_new(run.run, Watch::Queued { last_time });
                    }
                }
                drop(watches);
                self.ring_for(queue, schedules);
            }
            RunNews::Doubt => self.doubt(),
            RunNews::Stop { tree, start, run, kind } => {
                let desk = self.clone();
                tokio::spawn(async move { desk.stop_for_schedule(tree, start, run, kind).await });
            }
        }
    }

    /// Deals with every deadline that has come.
    fn look(self: &Arc<Desk>) {
        let now = self.clock.now();
        let due: Vec<(RunKey, Watch)> = self.watches().take_due(now);
        for (run, watch) in due {
            let desk = self.clone();
            tokio::spawn(async move {
                if let Err(error) = desk.deadline(run, watch, now).await {
                    tracing::warn!(%run, %error, "a deadline could not be dealt with; it is tried again");
                    desk.watches().postpone(run, desk.clock.now());
                    desk.alarm.notify_one();
                }
            });
        }
    }

    pub(super) fn unavailable(error: StoreError) -> EngineError {
        EngineError::from(error)
    }
}
