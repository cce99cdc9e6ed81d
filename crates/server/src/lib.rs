//! Punctual over the wire: gRPC, HTTP and JSON, metrics and health on one port.
//!
//! A request arrives as gRPC ([`grpc`](self)) or as HTTP with JSON (`http`); both decode into the same message of the wire
//! contract and call the same function, which converts at the border (`convert`), names one verb of the engine, and converts
//! back. Every refusal is one line of one table (`status`).
//!
//! ```no_run
//! use punctual_server::{Config, Flags, Server};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let flags = Flags { listen: Some("127.0.0.1:0".into()), database: Some("memory:".into()), ..Flags::default() };
//! let resolved = Config::resolve(&flags, &|_| None, None)?;
//! let server = Server::start(resolved.config).await?;
//! println!("listening on {}", server.address());
//! server.run(async { /* until somebody says stop */ }).await?;
//! # Ok(())
//! # }
//! ```

pub mod config;
mod server;

mod app;
mod grpc;
mod temporal;
mod http;
mod convert;
mod calls;
mod examine;
mod traces;
mod status;

mod health;
mod metrics;
mod demo;
mod logs;
pub mod limits;
pub mod reference;

pub use config::{Config, ConfigError, Flags, LogFormat, Resolved, Setting, Source, shown};
pub use logs::init_logs;
pub use server::{Server, StartError};
