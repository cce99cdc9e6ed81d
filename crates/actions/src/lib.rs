//! Makes one outside call of a run: an HTTP request, a Nexus operation or a command of this machine.
//!
//! A [`Call`] says what to do, a [`Context`] which run it is for, [`Rules`] what this server permits. [`Caller::call`] makes one
//! attempt and says how it ended; it repeats nothing by itself. Whether there is another attempt, and when, is decided by
//! those who keep the run: this crate knows nothing of engine, store or server.
//!
//! ```
//! use punctual_actions::{Call, Rules};
//!
//! let call = Call::from_json(br#"{"kind": "http", "url": "https://example.com/hooks/{{schedule_id}}"}"#)?;
//! call.check(&Rules::default())?;
//! assert_eq!(call.target(), "https://example.com:443");
//!
//! let inside = Call::from_json(br#"{"kind": "http", "url": "http://169.254.169.254/"}"#)?;
//! assert!(inside.check(&Rules::default()).is_err());
//! # Ok::<(), punctual_actions::CallError>(())
//! ```

mod call;
mod context;
mod template;
mod rules;
mod address;
mod url;
mod resolve;
mod places;
mod stop;
mod caller;
mod end;
mod retry_after;
mod token;
mod base64url;
mod error;
pub mod limits;

pub use address::Network;
pub use call::{Call, CommandCall, HttpCall, NexusCall};
pub use caller::{CALLBACK_TOKEN_HEADER, CALLBACK_URL_HEADER, Caller, IDEMPOTENCY_KEY_HEADER};
pub use context::Context;
pub use end::{End, Fault, Form};
pub use error::CallError;
#[doc(hidden)]
pub use resolve::{Resolve, Resolving};
pub use rules::Rules;
pub use stop::{StopSignal, Stopper};
#[doc(hidden)]
pub use template::probe;
pub use token::{Claim, Signer, TokenError};
