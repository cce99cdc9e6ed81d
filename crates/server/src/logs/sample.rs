//! Keeps a storm of equal log lines from filling disks: of each kind of line only so many are written in a while.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::{Event, Metadata};
use tracing_subscriber::layer::{Context, Filter};

/// Lines of one kind that are written in one window.
const LINES_MAX: u32 = 200;

/// The length of a window.
const WINDOW: Duration = Duration::from_secs(10);

/// Lines that were not written, since the start.
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

/// Lines that were not written, since the start.
pub(crate) fn left_out() -> u64 {
    LEFT_OUT.load(Ordering::Relaxed)
}

/// Lets the first lines of each kind pass in each window. A kind is a place in the code: there are a few hundred.
#[derive(Default)]
pub(super) struct Sample {
    seen: Mutex<HashMap<Identifier, (Instant, u32)>>,
}

impl Sample {
    fn passes(&self, kind: Identifier, now: Instant) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = seen.entry(kind).or_insert((now, 0));
        if now.duration_since(*since) >= WINDOW {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= LINES_MAX
    }
}

impl<S> Filter<S> for Sample {
    fn enabled(&self, _metadata: &Metadata<'_>, _context: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _context: &Context<'_, S>) -> bool {
        let passes = self.passes(event.metadata().callsite(), Instant::now());
        if !passes {
            LEFT_OUT.fetch_add(1, Ordering::Relaxed);
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_share_of_each_window() {
        let (sample, begun) = (Sample::default(), Instant::now());
        let kinds = [here(), there()];
        for kind in &kinds {
            let passed = (0..1_000).filter(|_| sample.passes(kind.clone(), begun)).count();
            assert_eq!(passed, LINES_MAX as usize);
        }
        assert!(sample.passes(kinds[0].clone(), begun + WINDOW));
    }

    fn here() -> Identifier {
        callsite(|| tracing::info!("here"))
    }

    fn there() -> Identifier {
        callsite(|| tracing::info!("there"))
    }

    /// The place that a line comes from.
    fn callsite(line: impl FnOnce()) -> Identifier {
        use tracing_subscriber::layer::SubscriberExt;
        struct Catch(std::sync::Arc<Mutex<Option<Identifier>>>);
        impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Catch {
            fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
                *self.0.lock().unwrap() = Some(event.metadata().callsite());
            }
        }
        let caught = std::sync::Arc::new(Mutex::new(None));
        let subscriber = tracing_subscriber::registry().with(Catch(caught.clone()));
        tracing::subscriber::with_default(subscriber, line);
        caught.lock().unwrap().take().unwrap()
    }
}
