//! A conversation with a server: where it is, in whose name, and what its refusals mean.

use std::future::Future;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use prost::Message;
use punctual_api::{Client, json, v1};
use tonic::{Code, Response, Status};
use uuid::Uuid;

use crate::answer::Answer;
use crate::exit_code::ExitCode;
use crate::fault;
use crate::local_zone::LocalZone;
use crate::output::{self, TableOrJson};
use crate::wire::{fields, time};

/// The options of every command that talks to a server.
#[derive(Clone, Debug, Args)]
pub struct ClientArgs {
    /// Where the server is, as host:port or http://host:port
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "PUNCTUAL_ADDRESS",
        default_value = ADDRESS_DEFAULT.as_str(),
        hide_env_values = true,
        global = true,
        help_heading = SERVER
    )]
    address: String,

    /// Whose schedules
    #[arg(
        short,
        long,
        value_name = "NAME",
        env = "PUNCTUAL_NAMESPACE",
        default_value = "default",
        hide_env_values = true,
        global = true,
        help_heading = SERVER
    )]
    namespace: String,

    /// How long to wait for an answer
    #[arg(long, value_name = "DURATION", default_value = "10s", global = true, help_heading = SERVER)]
    timeout: String,

    /// How to print: table or json
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        hide_possible_values = true,
        global = true,
        help_heading = SERVER
    )]
    output: TableOrJson,
}

const SERVER: &str = "Server and output";

/// Where a server is that was started without any option.
pub static ADDRESS_DEFAULT: LazyLock<String> =
    LazyLock::new(|| format!("http://{}", punctual_server::Config::default().listen));

/// The option of every command that changes something.
#[derive(Debug, Args)]
pub struct RequestIdArgs {
    /// A name for this request: repeating it changes nothing more [default: a random one]
    #[arg(long, value_name = "TEXT")]
    request_id: Option<String>,
}

impl RequestIdArgs {
    pub fn get(&self) -> String {
        self.request_id.clone().unwrap_or_else(|| Uuid::new_v4().to_string())
    }
}

/// A conversation with a server.
#[derive(Clone, Debug)]
pub struct Session {
    pub client: Client,
    pub address: String,
    pub namespace: String,
    pub output: TableOrJson,
    /// When the command began.
    pub now: Timestamp,
    /// The zone of the person who asks.
    pub zone: LocalZone,
    pub timeout: Duration,
}

/// Asks one question: `ask!(session, schedules.describe(request))?`.
macro_rules! ask {
    ($session:expr, $service:ident.$verb:ident($request:expr)) => {{
        let mut service = $session.client.$service.clone();
        $session.answer(service.$verb($request)).await
    }};
}
pub(crate) use ask;

impl Session {
    /// Connects now, so that a server that is not there is one clear line.
    pub async fn open(args: &ClientArgs, now: Timestamp) -> Result<Session> {
        let session = Session::open_lazily(args, now)?;
        let client = tokio::time::timeout(session.timeout, Client::connect(&session.address)).await;
        match client {
            Ok(Ok(client)) => Ok(Session { client, ..session }),
            Ok(Err(error)) => Err(session.unreachable(&output::causes(&error))),
            Err(_) => Err(session.unreachable("no answer in time")),
        }
    }

    /// Connects when it is needed, again and again.
    pub fn open_lazily(args: &ClientArgs, now: Timestamp) -> Result<Session> {
        let timeout = time::waiting_time("--timeout", &args.timeout)?;
        let wrong = |error: tonic::transport::Error| {
            let message =
                format!("--address is no address, found `{}` ({})", args.address, output::causes(&error));
            fault::new(message, "write it as 127.0.0.1:7233 or http://127.0.0.1:7233")
        };
        let client = Client::connect_lazy(&args.address).map_err(wrong)?;
        Ok(Session {
            client,
            address: args.address.clone(),
            namespace: args.namespace.clone(),
            output: args.output,
            now,
            zone: LocalZone::of_the_user(),
            timeout,
        })
    }

    /// Waits for an answer, but not for ever.
    pub async fn answer<T>(&self, call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T> {
        match tokio::time::timeout(self.timeout, call).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(self.refusal(&status)),
            Err(_) => Err(fault::ending(
                ExitCode::Unavailable,
                format!("the server at {} did not answer within {:?}", self.address, self.timeout),
                "the request may have been carried out; --timeout waits longer",
            )),
        }
    }

    fn unreachable(&self, cause: &str) -> anyhow::Error {
        let message = format!("no server at {} ({cause}), start one with: punctual serve", self.address);
        fault::ending(ExitCode::Unavailable, message, "")
    }

    /// An answer that is no answer, in words and as a number for the shell.
    pub fn refusal(&self, status: &Status) -> anyhow::Error {
        let reason = status.metadata().get(REASON_HEADER).and_then(|word| word.to_str().ok()).unwrap_or("");
        if reason.is_empty() && matches!(status.code(), Code::Unavailable | Code::Unknown) {
            return self.unreachable(&output::causes(status));
        }
        let exit_code = match status.code() {
            Code::NotFound => ExitCode::NotFound,
            Code::AlreadyExists | Code::Aborted => ExitCode::Conflict,
            Code::Unavailable | Code::DeadlineExceeded => ExitCode::Unavailable,
            Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::ResourceExhausted
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::Unimplemented => ExitCode::Rejected,
            _ => ExitCode::Failed,
        };
        fault::ending(exit_code, message(status), way_out(reason, status.message()))
    }

    /// A stream that ended before its time.
    pub fn ended(&self, why: &str) -> anyhow::Error {
        fault::ending(ExitCode::Unavailable, format!("the server at {} is gone: {why}", self.address), "")
    }

    /// A message of the wire as JSON, or what the table has to say.
    pub fn show<M>(&self, message: &M, table: impl FnOnce() -> String) -> Result<Answer>
    where
        M: Message + prost::Name,
    {
        let text = match self.output {
            TableOrJson::Json => output::json::pretty(&json::to_value(message)?),
            TableOrJson::Table => table(),
        };
        Ok(Answer::new(text, Vec::new()))
    }
}

/// What the server said, with the option at fault, or the field where no option stands for it.
fn message(status: &Status) -> String {
    let details = RpcStatus::decode(status.details()).unwrap_or_default().details;
    let error = details.first().and_then(|any| v1::Error::decode(&any.value[..]).ok());
    let (said, field) = (status.message().to_owned(), error.map(|error| error.field).unwrap_or_default());
    let (name, said) = match fields::option(&field) {
        // The message itself may name the field, with or without its first part.
        Some(name) if field.contains('.') => {
            let said = said.replace(&field, &name);
            let bare = field.strip_prefix("schedule.").filter(|bare| bare.contains('.'));
            let said = bare.map_or_else(|| said.clone(), |bare| said.replace(bare, &name));
            (name, said)
        }
        Some(name) => (name, said),
        // Limits of queues are named by the message alone.
        None if field.is_empty() => (field, limit_named(said)),
        None => (field, said),
    };
    match name {
        name if name.is_empty() || said.contains(&name) => said,
        name if said.starts_with("is ") || said.starts_with("has ") => format!("{name} {said}"),
        name => format!("{name}: {said}"),
    }
}

/// A message that begins with the limit of a queue, with the option for it instead.
fn limit_named(said: String) -> String {
    let Some((first, rest)) = said.split_once(' ').filter(|(first, _)| first.contains(['_', '.'])) else {
        return said;
    };
    match fields::option(&format!("settings.{first}")) {
        Some(option) => format!("{option} {rest}"),
        None => said,
    }
}

/// `google.rpc.Status`, which details of gRPC errors are wrapped in by convention.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

/// What to do about a refusal, if that is known.
fn way_out(reason: &str, message: &str) -> String {
    match reason {
        "unknown_queue" => {
            let name = message.split('"').nth(1).unwrap_or("NAME");
            format!("declare it with: punctual queue create {name}")
        }
        "revision_mismatch" => "describe it again, then decide again".to_owned(),
        "unavailable" | "stopping" | "busy" | "contention" => {
            "ask again; with the same --request-id nothing happens twice".to_owned()
        }
        _ => String::new(),
    }
}

/// Where the server puts the stable word for a refusal.
const REASON_HEADER: &str = "punctual-reason";
