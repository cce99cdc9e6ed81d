//! The option that a field of the wire comes from, so that a refusal names what the user typed.

use crate::{attempt_args, schedule_args};

/// The option or argument behind a field, if there is one.
pub fn option(field: &str) -> Option<String> {
    let parts: Vec<&str> = field.split('.').filter(|part| !part.is_empty()).collect();
    let plain: Vec<&str> = parts.iter().map(|part| part.split('[').next().unwrap_or(part)).collect();
    let found = match plain.as_slice() {
        ["schedule", rest @ ..] => match rest {
            ["spec", rest @ ..] => return spec(rest, &parts[2..]),
            ["action", rest @ ..] => action(rest)?,
            rest => named(&schedule_args::NAMES, rest)?,
        },
        ["policies", ..] => named(&schedule_args::NAMES, &plain)?,
        ["spec", rest @ ..] => return spec(rest, &parts[1..]),
        ["action", rest @ ..] => action(rest)?,
        ["queue", rest @ ..] if !rest.is_empty() => setting(rest)?,
        ["settings", rest @ ..] => setting(rest)?,
        ["runs", rest @ ..] => order(rest)?,
        ["schedule_id"] => "SCHEDULE_ID",
        ["run_id"] => "RUN_ID",
        ["request_id"] => "--request-id",
        ["namespace"] => "--namespace",
        _ => return None,
    };
    Some(found.to_owned())
}

fn spec(plain: &[&str], parts: &[&str]) -> Option<String> {
    let option = match *plain.first()? {
        "cron" | "crons" => {
            let index = parts[0].split(['[', ']']).nth(1).and_then(|index| index.parse::<usize>().ok());
            return Some(index.map_or("EXPR".to_owned(), |index| format!("EXPR {}", index + 1)));
        }
        "interval" | "intervals" => "--every",
        "at" | "times" => "--at",
        "calendar_text" | "calendar_texts" => "--calendar",
        "exclude" | "exclude_cron" | "exclusion_crons" => "--exclude",
        "exclude_date" | "exclusion_dates" => "--exclude-date",
        "start_time" => "--start",
        "end_time" => "--end",
        "jitter" => "--jitter",
        "zone" => "--zone",
        "zone_data" => "--tzif",
        "gap" => "--gap",
        "fold" => "--fold",
        _ => return None,
    };
    Some(option.to_owned())
}

fn action(path: &[&str]) -> Option<&'static str> {
    Some(match path {
        ["run_id_base"] => "--run-id-base",
        ["queue", "queue"] => "--queue",
        ["queue", "handler"] => "--handler",
        ["queue", "priority"] => "--priority",
        ["queue", "key"] => "--key",
        ["http"] | ["http", "url"] => "--http",
        ["http", "method"] => "--method",
        ["http" | "nexus", "headers", ..] => "--header",
        ["http", "body"] => "--body",
        ["http" | "nexus", "timeout"] => "--http-timeout",
        ["http", "retry_statuses", ..] => "--retry-status",
        ["nexus"] | ["nexus", "endpoint"] => "--nexus",
        ["nexus", "service"] => "--service",
        ["nexus", "operation"] => "--operation",
        ["command"] | ["command", "argv", ..] => "--exec",
        ["command", "env", ..] => "--env",
        ["command", "cwd"] => "--cwd",
        [_, "input", ..] => "--input",
        [_, rest @ ..] => return attempts(rest),
        [] => return None,
    })
}

fn attempts(path: &[&str]) -> Option<&'static str> {
    named(&attempt_args::NAMES, path)
}

/// The option of a field in a table of both.
fn named(names: &[(&'static str, &str)], path: &[&str]) -> Option<&'static str> {
    let path = path.join(".");
    names.iter().find(|(_, of)| *of == path).map(|(option, _)| *option)
}

fn setting(path: &[&str]) -> Option<&'static str> {
    Some(match path {
        ["queue"] => "NAME",
        ["concurrency_max"] => "--concurrency",
        ["worker_concurrency_max"] => "--worker-concurrency",
        ["rate", ..] => "--rate",
        ["key_concurrency_max"] => "--key-concurrency",
        ["key_rate", ..] => "--key-rate",
        ["priority_step"] => "--priority-step",
        ["description"] => "--description",
        _ => return None,
    })
}

fn order(path: &[&str]) -> Option<&'static str> {
    Some(match path {
        ["handler"] => "--handler",
        ["input", ..] => "--input",
        ["priority"] => "--priority",
        ["key"] => "--key",
        ["deduplication_id"] => "--dedup",
        ["on_duplicate"] => "--on-duplicate",
        ["not_before"] => "--at",
        ["delay"] => "--delay",
        ["name"] => "--name",
        rest => return attempts(rest),
    })
}

#[cfg(test)]
mod tests {
    use super::option;

    #[test]
    fn fields_are_named_by_their_options() {
        for (field, expected) in [
            ("schedule.action.queue.queue", "--queue"),
            ("schedule.action.http.retry.attempts_max", "--retry-attempts"),
            ("schedule.action.command.argv[0]", "--exec"),
            ("schedule.spec.crons[1]", "EXPR 2"),
            ("schedule.spec.interval[0].every", "--every"),
            ("schedule.policies.catchup_count", "--catchup-latest"),
            ("schedule.remaining_actions", "--remaining"),
            ("queue.rate.per", "--rate"),
            ("settings.key_rate", "--key-rate"),
            ("runs[0].timeouts.heartbeat", "--heartbeat-timeout"),
            ("runs[3].deduplication_id", "--dedup"),
        ] {
            assert_eq!(option(field).as_deref(), Some(expected), "{field}");
        }
        for field in ["", "queue", "schedule", "schedule.state.note", "page_token", "schedule.spec"] {
            assert_eq!(option(field), None, "{field}");
        }
    }
}
