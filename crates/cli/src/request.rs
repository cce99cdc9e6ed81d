//! A spec that was read from the command line and checked, with all that commands ask of it.

use anyhow::{Result, ensure};
use jiff::Timestamp;
use punctual_spec::{CompiledSpec, Environment, Lint, Spec};

use crate::fault;
use crate::instant::InstantReader;
use crate::local_zone::LocalZone;

/// What the user asked about.
#[derive(Debug)]
pub struct Request {
    pub spec: Spec,
    pub environment: Environment,
    pub compiled: CompiledSpec,
    pub zone: LocalZone,
    /// The release of the zone's data; nothing if it came from a file.
    pub tzdata: Option<String>,
    /// Remarks on how the input was read.
    pub notes: Vec<String>,
}

/// The nominal times in `(after, through]`.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub after: Timestamp,
    pub through: Option<Timestamp>,
}

impl Request {
    pub fn explain(&self) -> Result<String> {
        Ok(self.spec.explain_in(&self.environment)?)
    }

    pub fn lint(&self, now: Timestamp) -> Result<Vec<Lint>> {
        Ok(self.spec.lint(&self.environment, now)?)
    }

    /// Whether due times differ from nominal times.
    pub fn has_jitter(&self) -> bool {
        self.spec.jitter.is_positive()
    }

    /// Reads `--from` and `--to` in the zone of the spec.
    pub fn window(&mut self, now: Timestamp, from: Option<&String>, to: Option<&String>) -> Result<Window> {
        let mut instants = InstantReader::new(now, &self.zone);
        let after = instants.read_optional("--from", from)?.unwrap_or(now);
        let through = instants.read_optional("--to", to)?;
        self.notes.append(&mut instants.notes);
        if let Some(through) = through {
            ensure!(
                after < through,
                fault::new(
                    format!("--to is {through}, not after --from, {after}"),
                    "the range is (from, to]"
                )
            );
        }
        Ok(Window { after, through })
    }
}
