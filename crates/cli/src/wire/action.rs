//! What an action does, in words.

use punctual_api::v1;
use punctual_api::v1::action::Kind;

use super::{payload, time};
use crate::action_args::ActionKind;
use crate::output::times::{dash, length};

/// The kind of a stored action.
pub fn kind(action: Option<&v1::Action>) -> Option<ActionKind> {
    Some(match action?.kind.as_ref()? {
        Kind::Queue(_) => ActionKind::Queue,
        Kind::Http(_) => ActionKind::Http,
        Kind::Nexus(_) => ActionKind::Nexus,
        Kind::Command(_) => ActionKind::Command,
    })
}

/// What it does, in one short phrase.
pub fn phrase(action: Option<&v1::Action>) -> String {
    match action.and_then(|action| action.kind.as_ref()) {
        None => dash(),
        Some(Kind::Queue(queue)) => format!("{} on queue {}", queue.handler, queue.queue),
        Some(Kind::Http(http)) => {
            let method = if http.method.is_empty() { "POST" } else { &http.method };
            format!("{method} {}", http.url)
        }
        Some(Kind::Nexus(nexus)) => {
            format!("operation {} of {} at {}", nexus.operation, nexus.service, nexus.endpoint)
        }
        Some(Kind::Command(command)) => format!("command {}", command_line(&command.argv)),
    }
}

/// The words of a command, so that `--exec` would take them again.
fn command_line(argv: &[String]) -> String {
    let word = |word: &String| {
        let plain = |letter: char| letter.is_alphanumeric() || "-_./:=,@%+{}".contains(letter);
        match !word.is_empty() && word.chars().all(plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Everything about an action.
pub fn sentence(action: Option<&v1::Action>) -> String {
    let mut text = phrase(action);
    let Some(kind) = action.and_then(|action| action.kind.as_ref()) else { return text };
    let (input, retry, timeouts) = match kind {
        Kind::Queue(queue) => (&queue.input, &queue.retry, &queue.timeouts),
        Kind::Http(http) => (&http.input, &http.retry, &http.timeouts),
        Kind::Nexus(nexus) => (&nexus.input, &nexus.retry, &nexus.timeouts),
        Kind::Command(command) => (&command.input, &command.retry, &command.timeouts),
    };
    if let Some(input) = input {
        text.push_str(&format!(" with {}", payload::text(input)));
    }
    for more in particulars(kind) {
        text.push_str(&format!(", {more}"));
    }
    if let Some(attempts) = retry.as_ref().and_then(|retry| retry.attempts_max) {
        let word = if attempts == 1 { "attempt" } else { "attempts" };
        text.push_str(&format!(", at most {attempts} {word}"));
    }
    let timeouts = timeouts.unwrap_or_default();
    for (name, bound) in [
        ("start to close", timeouts.start_to_close),
        ("schedule to close", timeouts.schedule_to_close),
        ("heartbeat", timeouts.heartbeat),
    ] {
        text.extend(bounded(name, bound.as_ref()).map(|words| format!(", {words}")));
    }
    text
}

/// What only one kind has. Values of headers and variables may be secrets, so only their names are shown.
fn particulars(kind: &Kind) -> Vec<String> {
    let mut words = Vec::new();
    match kind {
        Kind::Queue(queue) => {
            words.extend((queue.priority != 0).then(|| format!("priority {}", queue.priority)));
            words.extend((!queue.key.is_empty()).then(|| format!("key {}", queue.key)));
        }
        Kind::Http(http) => {
            words.extend(names("headers", http.headers.keys()));
            words.extend((!http.body.is_empty()).then(|| format!("a body of {} bytes", http.body.len())));
            words.extend(bounded("request timeout", http.timeout.as_ref()));
            let statuses: Vec<String> = http.retry_statuses.iter().map(ToString::to_string).collect();
            words.extend((!statuses.is_empty()).then(|| format!("tried again after {}", statuses.join(" "))));
        }
        Kind::Nexus(nexus) => {
            words.extend(names("headers", nexus.headers.keys()));
            words.extend(bounded("request timeout", nexus.timeout.as_ref()));
            words.extend(bounded("operation timeout", nexus.operation_timeout.as_ref()));
        }
        Kind::Command(command) => {
            words.extend((!command.cwd.is_empty()).then(|| format!("in {}", command.cwd)));
            words.extend(names("variables", command.env.keys()));
        }
    }
    words
}

fn names<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Option<String> {
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    names.sort_unstable();
    (!names.is_empty()).then(|| format!("{what} {}", names.join(" ")))
}

fn bounded(name: &str, bound: Option<&prost_types::Duration>) -> Option<String> {
    time::duration_from_wire(bound).map(|bound| format!("{name} {}", length(bound)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(kind: Kind) -> String {
        phrase(Some(&v1::Action { kind: Some(kind), run_id_base: String::new() }))
    }

    #[test]
    fn each_kind_has_its_phrase() {
        let http = v1::HttpAction { url: "https://a.example/b".into(), ..Default::default() };
        assert_eq!(said(Kind::Http(http)), "POST https://a.example/b");
        let argv = |words: &[&str]| v1::CommandAction {
            argv: words.iter().map(ToString::to_string).collect(),
            ..Default::default()
        };
        assert_eq!(said(Kind::Command(argv(&["sh", "-c", "a | b"]))), "command sh -c 'a | b'");
        assert_eq!(said(Kind::Command(argv(&["tar", "a b", "", "it's"]))), r"command tar 'a b' '' 'it'\''s'");
        assert_eq!(phrase(None), "-");
    }
}
