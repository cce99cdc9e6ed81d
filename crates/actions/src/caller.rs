//! Makes calls, one attempt each, within the rules of this server.

mod client;
mod fault;
mod headers;
mod http;
mod redirect;
mod nexus;
mod command;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::call::{Call, NexusCall};
use crate::context::Context;
use crate::end::{End, Fault};
use crate::error::CallError;
use crate::places::Places;
use crate::resolve::{Resolve, SystemResolver};
use crate::rules::Rules;
use crate::stop::StopSignal;
use client::Client;

pub use headers::{CALLBACK_TOKEN_HEADER, CALLBACK_URL_HEADER, IDEMPOTENCY_KEY_HEADER};

/// Makes calls, one attempt each. Connections to a target are kept for the next call; proxies of the environment are not used.
pub struct Caller {
    rules: Arc<Rules>,
    client: Client,
    places: Arc<Places>,
}

impl Caller {
    /// A caller with these rules. Reads the system's trusted certificates.
    pub fn new(rules: Rules) -> Result<Caller, CallError> {
        Caller::with_resolver(rules, Arc::new(SystemResolver::default()))
    }

    /// The same with names looked up by somebody else.
    #[doc(hidden)]
    pub fn with_resolver(rules: Rules, resolver: Arc<dyn Resolve>) -> Result<Caller, CallError> {
        let bounds = [
            ("in_flight_max", rules.in_flight_max),
            ("in_flight_per_target_max", rules.in_flight_per_target_max),
        ];
        for (name, found) in bounds {
            // As many as the runtime can count.
            if !(1..=1_000_000).contains(&found) {
                return Err(CallError::Rules {
                    reason: format!("expected {name} from 1 to 1000000, found {found}"),
                });
            }
        }
        let places = Places::new(rules.in_flight_max, rules.in_flight_per_target_max);
        let rules = Arc::new(rules);
        let client = Client::new(rules.clone(), resolver)?;
        Ok(Caller { rules, client, places })
    }

    /// The rules of this caller.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Makes one attempt, and says how it ended. Waits for a place first; the timeout of the call begins with it.
    ///
    /// On stop, a call that waits and a request are given up: whether the request arrived is not known. A Nexus operation
    /// is cancelled if it says its token within the grace. A command is asked to stop, and killed after the grace; it has
    /// succeeded if it ends with exit code 0 all the same. Dropping the future gives up a request and kills a command.
    pub async fn call(&self, call: &Call, context: &Context, stop: StopSignal) -> End {
        // Rules may have become stricter since the call was asked for.
        if let Err(error) = call.check(&self.rules) {
            return failed(Fault::lasting(error.kind(), error.to_string()), String::new());
        }
        let target = call.target();
        let _place = tokio::select! {
            biased;
            () = stop.stopped() => return End::Cancelled,
            place = tokio::time::timeout(self.rules.wait_max, self.places.take(&target)) => match place {
                Ok(place) => place,
                Err(_) => {
                    let message = format!("no place for another call to {target} within {:?}", self.rules.wait_max);
                    return failed(Fault::passing("no_place", message), String::new());
                }
            },
        };
        match call {
            Call::Http(call) => self.http(call, context, &stop).await,
            Call::Nexus(call) => self.nexus(call, context, &stop).await,
            Call::Command(call) => command::run(call, context, &self.rules, &stop).await,
        }
    }

    /// Asks a Nexus operation that was accepted to stop. Its end comes by the callback, cancelled or not.
    pub async fn cancel_nexus(&self, call: &NexusCall, context: &Context, token: &str) -> Result<(), Fault> {
        self.cancel(call, context, token).await
    }

    /// Calls that are in flight now.
    pub fn in_flight(&self) -> usize {
        self.places.in_flight()
    }

    /// Targets with a call that waits or is in flight.
    pub fn targets(&self) -> usize {
        self.places.targets()
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Caller").field("rules", &self.rules).finish_non_exhaustive()
    }
}

fn failed(fault: Fault, log: String) -> End {
    End::Failed { fault, log }
}

fn timed_out(timeout: Duration) -> Fault {
    Fault::passing("timed_out", format!("no end within {timeout:?}"))
}

/// When a call must have ended.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    time: Instant,
    timeout: Duration,
}

impl Deadline {
    fn after(timeout: Duration) -> Deadline {
        Deadline { time: Instant::now() + timeout, timeout }
    }

    fn timeout(self) -> Duration {
        self.timeout
    }

    /// Waits for a step of the call within the time that is left for all of it.
    async fn keep<T>(self, step: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::time::timeout_at(self.time, step).await.map_err(|_| timed_out(self.timeout))
    }
}

/// A timeout of the call, or the one of the rules.
fn timeout_of(timeout_ms: Option<u64>, usual: Duration) -> Duration {
    timeout_ms.map_or(usual, Duration::from_millis)
}
