//! `punctual serve`: a server with everything in it.

use anyhow::Result;
use clap::Args;
use punctual_server::{Server, StartError};

use crate::answer::{self, Answer};
use crate::exit_code::ExitCode;
use crate::server_args::ServerArgs;
use crate::session;
use crate::signals::Signals;
use crate::{fault, open_files};

/// Start a server
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeCommand {
    #[command(flatten)]
    server: ServerArgs,
}

const EXAMPLES: &str = "\
Examples:
  punctual serve --demo
  punctual serve --listen 127.0.0.1:9000 --database sqlite:/var/lib/punctual/punctual.db
  punctual serve --database postgres://punctual@db.internal/punctual --node a
  punctual serve --config punctual.toml --log json

A line on stdout says when it is ready; logs go to stderr. Ctrl-C or SIGTERM stops it in order, a second one at once. A
value comes from a flag, else from a variable such as PUNCTUAL_LISTEN, else from the file, else it is the default.";

impl ServeCommand {
    pub async fn run(&self) -> Result<Answer> {
        let config = self.server.resolve()?.config;
        punctual_server::init_logs(&config);
        answer::complain(&Vec::from_iter(open_files::raise(&config)));
        let mut signals = Signals::listen();
        let database = punctual_server::shown(&config.database);
        let server = Server::start(config).await.map_err(|error| refused(&error))?;
        let address = format!("http://{}", server.address());
        let option = if address == session::ADDRESS_DEFAULT.as_str() {
            String::new()
        } else {
            format!(" --address {address}")
        };
        answer::say(&format!(
            "ready at {address}, database {database}; try: punctual schedule list{option}"
        ))?;

        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = server.run(async {
            // A sender that went away means the same.
            let _ = stopped.await;
        });
        tokio::pin!(running);
        let mut stop = Some(stop);
        loop {
            tokio::select! {
                ended = &mut running => {
                    ended.map_err(|error| refused(&error))?;
                    return Ok(Answer::silent(ExitCode::Answered));
                }
                () = signals.next() => match stop.take() {
                    Some(stop) => drop(stop),
                    // The store survives this as it survives a power cut.
                    None => std::process::exit(ExitCode::Failed.number().into()),
                },
            }
        }
    }
}

/// Why a server did not start or stop, on one line, with a number for the shell.
fn refused(error: &StartError) -> anyhow::Error {
    let exit_code = match error {
        StartError::Exposed { .. } => ExitCode::Fault,
        StartError::Open(_) | StartError::Database(_) | StartError::Engine(_) => ExitCode::Database,
        StartError::Bind { .. } => ExitCode::Listen,
        StartError::Late(_) => ExitCode::Failed,
    };
    let text = error.to_string();
    // The system's number says nothing to people, and a message is one line.
    let text = text.split(" (os error").next().unwrap_or(&text).replace('\n', " ");
    fault::ending(exit_code, text, "")
}
