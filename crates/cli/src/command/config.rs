//! `punctual config`: what a server would run with, and where each value comes from.

use anyhow::Result;
use clap::Args;
use punctual_server::Setting;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::output::{TableOrJson, json, table};
use crate::server_args::ServerArgs;

/// Show the settings that serve would run with, and where each comes from
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ConfigCommand {
    #[command(flatten)]
    server: ServerArgs,

    /// How to print
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: TableOrJson,
}

const EXAMPLES: &str = "\
Examples:
  punctual config
  PUNCTUAL_LISTEN=127.0.0.1:9000 punctual config --config punctual.toml --output json

A value comes from a flag, else from a variable such as PUNCTUAL_WORKER_LEASE, else from the file, else it is the default.";

impl ConfigCommand {
    pub fn run(&self) -> Result<Answer> {
        let settings = self.server.resolve()?.settings;
        let text = match self.output {
            TableOrJson::Table => {
                let rows = settings.iter().map(|setting| {
                    let Setting { name, value, source, help, .. } = setting;
                    vec![(*name).to_owned(), value.clone(), source.to_string(), (*help).to_owned()]
                });
                table::list(["name", "value", "source", "help"], rows)
            }
            TableOrJson::Json => {
                let settings: Vec<Value> = settings.iter().map(setting_json).collect();
                json::pretty(&json!({ "settings": settings }))
            }
        };
        Ok(Answer::new(text, Vec::new()))
    }
}

fn setting_json(setting: &Setting) -> Value {
    let Setting { name, value, source, help, bound } = setting;
    json!({ "name": name, "value": value, "source": source.to_string(), "help": help, "expected": bound })
}
