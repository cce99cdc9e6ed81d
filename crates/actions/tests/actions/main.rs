//! Calls against real servers and real processes of this machine.

mod support;

mod check;
mod http;
mod redirects;
mod addresses;
mod tls;
mod nexus;
#[cfg(unix)]
mod command;
mod places;
mod template;
mod token;
