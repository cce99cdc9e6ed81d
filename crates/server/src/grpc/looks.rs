//! The verbs that only look at schedules.

use jiff::{SignedDuration, Timestamp};
use punctual_api::v1;
use punctual_core::{Entry, ScheduleKey};
use punctual_engine::EngineError;
use punctual_spec::Spec;
use punctual_store::{Lifespan, QueueKey, ScheduleQuery};

use crate::app::{App, namespace, schedule_key};
use crate::convert::describe::{description, entry, environment, summary};
use crate::convert::page::{self, List};
use crate::convert::spec::{from_wire, lint, occurrence};
use crate::convert::time::{instant, needed};
use crate::convert::{why as to_why, word};
use crate::limits::{LEDGER_STEP_MAX, PREVIEW_COUNT_DEFAULT, PREVIEW_COUNT_MAX};
use crate::status::{Fault, INTERNAL};

pub(crate) async fn describe(
    app: &App,
    asked: v1::DescribeScheduleRequest,
) -> Result<v1::DescribeScheduleResponse, Fault> {
    let key = schedule_key(&asked.namespace, &asked.schedule_id)?;
    let described = app.engine.describe(&key).await?;
    let tree = app.engine.tree(&key).await.ok();
    let snapshot = tree.as_ref().map(|tree| tree.snapshot());
    Ok(v1::DescribeScheduleResponse { description: Some(description(&described, snapshot.as_ref())) })
}

pub(crate) async fn list(
    app: &App,
    asked: v1::ListSchedulesRequest,
) -> Result<v1::ListSchedulesResponse, Fault> {
    let count = page::size(asked.page_size)?;
    let after = page::place(List::Schedules, &asked.page_token)?.map(Into::into);
    let Some(queue) = queue_filter(app, &asked.namespace, &asked.queue).await? else {
        return Ok(v1::ListSchedulesResponse::default());
    };
    let query = ScheduleQuery {
        namespace: namespace(&asked.namespace).into(),
        prefix: asked.prefix.into(),
        lifespan: lifespan(asked.state)?,
        paused: asked.paused,
        queue,
        after,
        count,
    };
    let found = app.engine.list(query).await?;
    let shown = found.items.iter().map(|(key, described)| match described {
        Ok(described) => summary(described),
        Err(_) => {
            let schedule_id = key.schedule.to_string();
            v1::ScheduleSummary { schedule_id, quarantined: true, ..v1::ScheduleSummary::default() }
        }
    });
    Ok(v1::ListSchedulesResponse {
        schedules: shown.collect(),
        next_page_token: found.next.map(|next| page::token(List::Schedules, &next)).unwrap_or_default(),
    })
}

pub(crate) async fn count(
    app: &App,
    asked: v1::CountSchedulesRequest,
) -> Result<v1::CountSchedulesResponse, Fault> {
    let Some(queue) = queue_filter(app, &asked.namespace, &asked.queue).await? else {
        return Ok(v1::CountSchedulesResponse::default());
    };
    let query = ScheduleQuery {
        namespace: namespace(&asked.namespace).into(),
        prefix: asked.prefix.into(),
        lifespan: lifespan(asked.state)?,
        paused: asked.paused,
        queue,
        ..ScheduleQuery::default()
    };
    Ok(v1::CountSchedulesResponse { count: app.engine.count(query).await? })
}

/// The queue that a filter means: none given, this one, or (outer nothing) one that does not exist.
async fn queue_filter(app: &App, given: &str, queue: &str) -> Result<Option<Option<QueueKey>>, Fault> {
    if queue.is_empty() {
        return Ok(Some(None));
    }
    match app.engine.describe_queue(namespace(given), queue).await {
        Ok((queue, _)) => Ok(Some(Some(queue.queue))),
        Err(EngineError::UnknownQueue(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn lifespan(state: i32) -> Result<Option<Lifespan>, Fault> {
    Ok(match word("state", state)? {
        v1::lifecycle::Word::Unspecified => None,
        v1::lifecycle::Word::Open => Some(Lifespan::Open),
        v1::lifecycle::Word::Completed => Some(Lifespan::Completed),
        v1::lifecycle::Word::Deleted => Some(Lifespan::Deleted),
    })
}

pub(crate) async fn preview(
    app: &App,
    asked: v1::PreviewScheduleRequest,
) -> Result<v1::PreviewScheduleResponse, Fault> {
    let key = ScheduleKey::new(namespace(&asked.namespace), &asked.schedule_id);
    let spec = match asked.spec {
        Some(spec) => from_wire(spec).map_err(|fault| fault.within("spec"))?,
        None => {
            let key = schedule_key(&asked.namespace, &asked.schedule_id).map_err(|_| {
                Fault::field("spec", "is missing, expected a spec or the name of a stored schedule")
            })?;
            app.engine.describe(&key).await?.description.definition.schedule().spec.clone()
        }
    };
    let after = instant("after", asked.after.as_ref())?.unwrap_or(app.engine.now());
    let through = instant("through", asked.through.as_ref())?.unwrap_or(Timestamp::MAX);
    let count = match asked.count_max as usize {
        0 => PREVIEW_COUNT_DEFAULT,
        count if count <= PREVIEW_COUNT_MAX => count,
        count => {
            let message = format!("is {count}, at most {PREVIEW_COUNT_MAX} is allowed");
            return Err(Fault::field("count_max", message));
        }
    };
    let now = app.engine.now();
    // A large spec takes milliseconds to compile: other requests need not wait for it.
    let shown = tokio::task::spawn_blocking(move || show(&spec, &key, (after, through), count, now));
    shown.await.map_err(|_| Fault::new(&INTERNAL, "the preview was not finished"))?
}

fn show(
    spec: &Spec,
    key: &ScheduleKey,
    (after, through): (Timestamp, Timestamp),
    count: usize,
    now: Timestamp,
) -> Result<v1::PreviewScheduleResponse, Fault> {
    let environment = environment(key);
    let fault = |error: punctual_spec::Error| Fault::from(error).within("spec");
    let compiled = spec.compile_in(&environment).map_err(fault)?;
    let mut times = compiled.iterate(after, through);
    let occurrences = times.by_ref().take(count).map(|time| occurrence(&time)).collect();
    Ok(v1::PreviewScheduleResponse {
        occurrences,
        more: times.next().is_some(),
        explanation: spec.explain_in(&environment).map_err(fault)?,
        lints: spec.lint(&environment, now).map_err(fault)?.into_iter().map(lint).collect(),
    })
}

pub(crate) async fn why(app: &App, asked: v1::WhyScheduleRequest) -> Result<v1::WhyScheduleResponse, Fault> {
    let key = schedule_key(&asked.namespace, &asked.schedule_id)?;
    let time = needed("time", asked.time.as_ref())?;
    let described = app.engine.describe(&key).await?;
    let answer = app.engine.why(&key, time).await?;
    Ok(to_why::why(time, &answer, &described))
}

pub(crate) async fn ledger(
    app: &App,
    asked: v1::ScheduleLedgerRequest,
) -> Result<v1::ScheduleLedgerResponse, Fault> {
    let key = schedule_key(&asked.namespace, &asked.schedule_id)?;
    let size = page::size(asked.page_size)?;
    let wanted: v1::verdict::Word = word("verdict", asked.verdict)?;
    let through = instant("through", asked.through.as_ref())?.unwrap_or(Timestamp::MAX);
    let begin = instant("after", asked.after.as_ref())?.unwrap_or(Timestamp::MIN);
    let (after, shown) = match page::place(List::Ledger, &asked.page_token)? {
        Some(place) => ledger_place(&place).ok_or_else(|| page::invalid(&asked.page_token))?,
        None => (begin, 0),
    };
    let entries = app.engine.ledger(&key, after, through, shown + size + 1).await?;
    let more = entries.len() > shown + size;
    let seen = &entries[..entries.len().min(shown + size)];
    let page = seen.iter().skip(shown).map(entry);
    Ok(v1::ScheduleLedgerResponse {
        entries: page
            .filter(|entry| wanted == v1::verdict::Word::Unspecified || entry.verdict() == wanted)
            .collect(),
        next_page_token: if more { ledger_token(after, seen) } else { String::new() },
    })
}

/// Where a ledger goes on: just before the last entry that was seen, less what was seen from there on. Entries may share
/// their nominal time and may be long, so an instant alone would lose some.
fn ledger_token(after: Timestamp, seen: &[Entry]) -> String {
    let last = seen.last().map_or(after, |entry| entry.from);
    let before = last.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(last).max(after);
    let again = seen.iter().filter(|entry| entry.through > before).count();
    page::token(List::Ledger, &format!("{}/{again}", before.as_nanosecond()))
}

fn ledger_place(place: &str) -> Option<(Timestamp, usize)> {
    let (before, again) = place.split_once('/')?;
    let before = Timestamp::from_nanosecond(before.parse().ok()?).ok()?;
    Some((before, again.parse().ok().filter(|again| *again <= LEDGER_STEP_MAX)?))
}
