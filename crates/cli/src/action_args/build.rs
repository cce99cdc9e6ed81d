//! Turns the options of an action into fields of the wire, and says which they are.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use punctual_api::v1;
use punctual_api::v1::action::Kind;

use super::{ActionArgs, ActionKind, words};
use crate::fault;
use crate::or_none::listed;
use crate::wire::{payload, time};

/// The queue of who names none.
const QUEUE_DEFAULT: &str = "default";

/// What the options say about an action of one kind.
#[derive(Debug)]
pub struct GivenAction {
    pub kind: Kind,
    /// The paths of what they say, as an update mask names them.
    pub paths: Vec<String>,
}

/// Fields that were spoken of, by their names below the kind.
type Fields = Vec<&'static str>;

/// Takes one option over, if it was given.
macro_rules! take {
    ($fields:ident, $option:expr, $path:literal, $field:expr, |$value:ident| $take:expr) => {
        if let Some($value) = &$option {
            $field = $take;
            $fields.push($path);
        }
    };
}

impl ActionArgs {
    /// What the options say, for an action of this kind.
    pub fn given(&self, kind: ActionKind) -> Result<GivenAction> {
        self.refuse_strangers(kind)?;
        let (fields, said) = match kind {
            ActionKind::Queue => self.on_queue()?,
            ActionKind::Http => self.by_http()?,
            ActionKind::Nexus => self.by_nexus()?,
            ActionKind::Command => self.by_command()?,
        };
        let paths = said.into_iter().map(|field| format!("action.{}.{field}", kind.path()));
        Ok(GivenAction { kind: fields, paths: paths.collect() })
    }

    /// A whole action for a new schedule: what was left out has its default, what has none is asked for.
    pub fn whole(&self, kind: ActionKind, schedule_id: &str) -> Result<Kind> {
        let mut whole = self.given(kind)?.kind;
        match &mut whole {
            Kind::Queue(queue) => {
                queue.queue = self.queue.clone().unwrap_or_else(|| QUEUE_DEFAULT.to_owned());
                queue.handler = self.handler.clone().unwrap_or_else(|| schedule_id.to_owned());
            }
            Kind::Nexus(_) => ensure!(
                self.service.is_some() && self.operation.is_some(),
                fault::new(
                    "--nexus needs to know what to start",
                    "name it with --service and --operation, as in --service billing --operation charge",
                )
            ),
            Kind::Http(_) | Kind::Command(_) => {}
        }
        Ok(whole)
    }

    fn on_queue(&self) -> Result<(Kind, Fields)> {
        let (mut action, mut fields) = (v1::QueueAction::default(), Fields::new());
        take!(fields, self.queue, "queue", action.queue, |name| name.clone());
        take!(fields, self.handler, "handler", action.handler, |name| name.clone());
        take!(fields, self.priority, "priority", action.priority, |number| *number);
        take!(fields, self.key, "key", action.key, |text| text.clone());
        (action.input, action.retry, action.timeouts) = self.shared(&mut fields)?;
        Ok((Kind::Queue(action), fields))
    }

    fn by_http(&self) -> Result<(Kind, Fields)> {
        let (mut action, mut fields) = (v1::HttpAction::default(), Fields::new());
        take!(fields, self.http, "url", action.url, |url| url.clone());
        take!(fields, self.method, "method", action.method, |name| name.clone());
        take!(fields, self.body, "body", action.body, |text| body(text)?);
        take!(fields, self.http_timeout, "timeout", action.timeout, |text| timeout(text)?);
        if !self.header.is_empty() {
            action.headers = headers(&self.header)?;
            fields.push("headers");
        }
        if !self.retry_status.is_empty() {
            action.retry_statuses = statuses(&self.retry_status)?;
            fields.push("retry_statuses");
        }
        (action.input, action.retry, action.timeouts) = self.shared(&mut fields)?;
        Ok((Kind::Http(action), fields))
    }

    fn by_nexus(&self) -> Result<(Kind, Fields)> {
        let (mut action, mut fields) = (v1::NexusAction::default(), Fields::new());
        take!(fields, self.nexus, "endpoint", action.endpoint, |url| url.clone());
        take!(fields, self.service, "service", action.service, |name| name.clone());
        take!(fields, self.operation, "operation", action.operation, |name| name.clone());
        take!(fields, self.http_timeout, "timeout", action.timeout, |text| timeout(text)?);
        if !self.header.is_empty() {
            action.headers = headers(&self.header)?;
            fields.push("headers");
        }
        (action.input, action.retry, action.timeouts) = self.shared(&mut fields)?;
        Ok((Kind::Nexus(action), fields))
    }

    fn by_command(&self) -> Result<(Kind, Fields)> {
        let (mut action, mut fields) = (v1::CommandAction::default(), Fields::new());
        take!(fields, self.exec, "argv", action.argv, |text| words::split(text)?);
        if !self.program.is_empty() {
            action.argv = self.program.clone();
            fields.push("argv");
        }
        if !self.env.is_empty() {
            action.env = pairs("--env", &self.env, '=', "write it as `NAME=VALUE`")?;
            fields.push("env");
        }
        take!(fields, self.cwd, "cwd", action.cwd, |folder| folder.clone());
        (action.input, action.retry, action.timeouts) = self.shared(&mut fields)?;
        Ok((Kind::Command(action), fields))
    }

    /// What every kind has.
    fn shared(&self, fields: &mut Fields) -> Result<Shared> {
        let mut input = None;
        take!(fields, self.input, "input", input, |text| Some(payload::from_option("--input", text)?));
        let attempts = self.attempts.given()?;
        fields.extend(&attempts.paths);
        Ok((input, attempts.retry(), attempts.timeouts()))
    }
}

type Shared = (Option<v1::Payload>, Option<v1::RetryPolicy>, Option<v1::Timeouts>);

fn timeout(text: &str) -> Result<Option<prost_types::Duration>> {
    Ok(Some(time::duration_to_wire(time::duration("--http-timeout", text)?)))
}

fn body(text: &str) -> Result<String> {
    String::from_utf8(payload::bytes_of("--body", text)?)
        .map_err(|_| fault::new("--body is not UTF-8 text", "what is no text can be an --input"))
}

fn headers(texts: &[String]) -> Result<HashMap<String, String>> {
    pairs("--header", texts, ':', "write it as `Name: value`")
}

fn pairs(option: &str, texts: &[String], separator: char, help: &str) -> Result<HashMap<String, String>> {
    let mut pairs = HashMap::new();
    for text in listed(texts) {
        let parts = text.split_once(separator).map(|(name, value)| (name.trim(), value));
        let Some((name, value)) = parts.filter(|(name, _)| !name.is_empty()) else {
            return Err(fault::new(format!("{option} has no name and value, found `{text}`"), help));
        };
        // A blank after the colon of a header belongs to nobody; in a variable it may be meant.
        let value = if separator == ':' { value.trim() } else { value };
        ensure!(
            pairs.insert(name.to_owned(), value.to_owned()).is_none(),
            fault::new(format!("{option} names `{name}` twice"), "give each name once")
        );
    }
    Ok(pairs)
}

fn statuses(texts: &[String]) -> Result<Vec<u32>> {
    let read = |text: &String| {
        text.trim().parse().map_err(|_| {
            fault::new(format!("--retry-status is not a status, found `{text}`"), "write it as `429,503`")
        })
    };
    listed(texts).iter().map(read).collect()
}
