//! The server over the wire: real connections to a real server, over gRPC and over HTTP.

mod bed;
mod http;

mod verbs;
mod watching;
mod workers;
mod calls;
mod temporal;
mod outage;
mod queues;
mod operate;
mod storm_of_words;
mod refusals;
mod limits;
mod configuration;
mod lifecycle;
mod surface;
mod reference;
