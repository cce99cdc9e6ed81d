//! What an error of the client means for the call.

use std::error::Error;
use std::io;

use crate::end::Fault;
use crate::resolve::ResolveError;

/// The fault behind an error of the client.
pub(super) fn of(error: &hyper_util::client::legacy::Error) -> Fault {
    let message = chain(error);
    if let Some(error) = find::<ResolveError>(error) {
        return match error {
            ResolveError::Refused { .. } => Fault::lasting("address_refused", error.to_string()),
            ResolveError::NotResolved { .. } => Fault::passing("name_not_resolved", error.to_string()),
        };
    }
    if find::<rustls::Error>(error).is_some() {
        return Fault::passing("tls_failed", message);
    }
    if error.is_connect() {
        return Fault::passing("connect_failed", message);
    }
    Fault::passing("connection_lost", message)
}

/// An error with all its causes.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut message = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let cause = error.to_string();
        // Some errors repeat their cause in their own message.
        if !message.ends_with(&cause) {
            message = format!("{message}: {cause}");
        }
        next = error.source();
    }
    message
}

fn find<'error, T: Error + 'static>(error: &'error (dyn Error + 'static)) -> Option<&'error T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An I/O error hides what it wraps: its source is that of the wrapped one.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}
