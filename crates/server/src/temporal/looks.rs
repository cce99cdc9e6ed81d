//! The verbs that only look at schedules: describe, list, count, matching times.

use punctual_core::ScheduleKey;
use punctual_engine::{Described, EngineError};
use punctual_store::{Lifespan, ScheduleQuery};

use super::attributes::{self, Kind, OF_SCHEDULES, Types};
use super::describe::{Asked, Shown, broken};
use super::query::{self, Condition, Filter, Test, Value};
use super::refusal::{Refusal, of_schedule};
use super::schedules::{key, token};
use super::wire::schedule::ScheduleListEntry;
use super::wire::service;
use crate::app::App;
use crate::convert::page::{self, List};
use crate::convert::time::{needed, to_wire};

/// Schedules of one page.
const PAGE_SIZE_MAX: usize = 1_000;

/// Schedules that one request looks at; who asks for few of many gets a short page and goes on.
const LOOKED_AT_MAX: usize = 10_000;

/// Schedules that are read at a time.
const STEP: usize = 500;

/// Times that are listed.
const TIMES_MAX: usize = 1_000;

/// A schedule that has not ended.
async fn open(app: &App, namespace: &str, schedule: &str) -> Result<Described, Refusal> {
    let key = key(app, namespace, schedule).await?;
    app.engine.describe(&key).await.map_err(|error| of_schedule(schedule, error))
}

fn gone(schedule: &str) -> Refusal {
    of_schedule(schedule, EngineError::NotFound(String::new()))
}

pub(super) async fn describe(
    app: &App,
    asked: service::DescribeScheduleRequest,
) -> Result<service::DescribeScheduleResponse, Refusal> {
    let described = open(app, &asked.namespace, &asked.schedule_id).await?;
    let mut shown = Shown::of(&described).ok_or_else(|| gone(&asked.schedule_id))?;
    shown.look_for_ended(app).await?;
    let about = &described.description;
    Ok(service::DescribeScheduleResponse {
        schedule: Some(shown.schedule()),
        info: Some(shown.info()),
        conflict_token: token(about.revision, about.remaining_actions),
        memo: shown.kept.memo,
        search_attributes: shown.kept.search_attributes,
    })
}

pub(super) async fn matching_times(
    app: &App,
    asked: service::ListScheduleMatchingTimesRequest,
) -> Result<service::ListScheduleMatchingTimesResponse, Refusal> {
    let described = open(app, &asked.namespace, &asked.schedule_id).await?;
    Shown::of(&described).ok_or_else(|| gone(&asked.schedule_id))?;
    let after = needed("start time", asked.start_time.as_ref())?;
    let through = needed("end time", asked.end_time.as_ref())?;
    let compiled = described.description.definition.compiled();
    let times = compiled.iterate(after, through).map(|time| time.due_time);
    let times = times.take_while(|time| *time <= through).take(TIMES_MAX);
    Ok(service::ListScheduleMatchingTimesResponse { start_time: times.map(to_wire).collect() })
}

/// A question about schedules, ready to be asked.
struct Question {
    namespace: String,
    filter: Option<Filter>,
    types: Types,
}

impl Question {
    async fn read(app: &App, namespace: &str, text: &str) -> Result<Question, Refusal> {
        super::namespaces::check(app, namespace).await?;
        let query = query::read(text).map_err(|error| Refusal::invalid(error.to_string()))?;
        let own = |query: &query::Query| query.attributes().iter().any(|name| !attributes::is_reserved(name));
        let types = match query.as_ref().is_some_and(own) {
            true => attributes::types(app, namespace).await?,
            false => Types::new(),
        };
        let filter = query.map(|query| query.check(&|name| kind(&types, name))).transpose();
        let filter = filter.map_err(|error| Refusal::invalid(error.to_string()))?;
        Ok(Question { namespace: namespace.into(), filter, types })
    }

    /// What the store can sort out by itself.
    fn narrowed(&self) -> ScheduleQuery {
        let mut query = ScheduleQuery {
            namespace: self.namespace.as_str().into(),
            lifespan: Some(Lifespan::Open),
            ..ScheduleQuery::default()
        };
        self.filter.iter().for_each(|filter| narrow(filter, &mut query));
        query
    }

    fn wants(&self, shown: &Shown<'_>) -> bool {
        let facts = Asked { shown, types: &self.types };
        self.filter.as_ref().is_none_or(|filter| filter.is_met(&facts))
    }

    /// What a list shows of a schedule, if it is asked for.
    fn entry(
        &self,
        key: &ScheduleKey,
        described: &Result<Described, EngineError>,
    ) -> Option<ScheduleListEntry> {
        match described {
            Ok(described) => {
                Shown::of(described).filter(|shown| self.wants(shown)).map(|shown| shown.listed())
            }
            // Nobody knows what it would answer.
            Err(_) => self.filter.is_none().then(|| broken(key)),
        }
    }
}

/// Conditions that all must hold make the store's question narrower.
fn narrow(filter: &Filter, query: &mut ScheduleQuery) {
    match filter {
        Filter::Both(left, right) => {
            narrow(left, query);
            narrow(right, query);
        }
        Filter::Condition(Condition { attribute, test }) => match (attribute.as_str(), test) {
            ("TemporalSchedulePaused", Test::Is(query::Order::Equal, Value::Bool(paused))) => {
                query.paused = Some(*paused);
            }
            ("ScheduleId", Test::StartsWith(prefix)) => query.prefix = prefix.as_str().into(),
            ("ScheduleId", Test::Is(query::Order::Equal, Value::Keyword(id))) => {
                query.prefix = id.as_str().into();
            }
            _ => {}
        },
        Filter::Either(..) | Filter::Not(_) => {}
    }
}

fn kind(types: &Types, name: &str) -> Result<Kind, String> {
    let known = OF_SCHEDULES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
    if let Some(kind) = known.or_else(|| types.get(name).copied()) {
        return Ok(kind);
    }
    Err(match attributes::is_reserved(name) {
        true => format!("{name} is no attribute of schedules"),
        false => format!("there is no search attribute {}", crate::status::found(name)),
    })
}

pub(super) async fn list(
    app: &App,
    asked: service::ListSchedulesRequest,
) -> Result<service::ListSchedulesResponse, Refusal> {
    let question = Question::read(app, &asked.namespace, &asked.query).await?;
    let size =
        usize::try_from(asked.maximum_page_size).ok().filter(|size| (1..=PAGE_SIZE_MAX).contains(size));
    let size = size.unwrap_or(PAGE_SIZE_MAX);
    let token =
        String::from_utf8(asked.next_page_token).map_err(|_| Refusal::invalid("invalid page token"))?;
    let mut query = question.narrowed();
    query.after = page::place(List::Schedules, &token)?.map(Into::into);
    // Without a filter everything that is read is shown.
    query.count = if question.filter.is_none() { size.min(STEP) } else { STEP };
    let (mut schedules, mut looked_at) = (Vec::new(), 0);
    loop {
        let page = app.engine.list(query.clone()).await?;
        query.after = page.next;
        for (place, (key, described)) in page.items.iter().enumerate() {
            schedules.extend(question.entry(key, described));
            if schedules.len() == size && place + 1 < page.items.len() {
                query.after = Some(key.schedule.clone());
                break;
            }
        }
        looked_at += query.count;
        if query.after.is_none() || schedules.len() >= size || looked_at >= LOOKED_AT_MAX {
            break;
        }
    }
    let next = query.after.map(|next| page::token(List::Schedules, &next).into_bytes());
    Ok(service::ListSchedulesResponse { schedules, next_page_token: next.unwrap_or_default() })
}

pub(super) async fn count(
    app: &App,
    asked: service::CountSchedulesRequest,
) -> Result<service::CountSchedulesResponse, Refusal> {
    let question = Question::read(app, &asked.namespace, &asked.query).await?;
    let mut query = question.narrowed();
    if question.filter.is_none() {
        let count = app.engine.count(query).await?;
        return Ok(service::CountSchedulesResponse { count: count as i64, ..Default::default() });
    }
    let mut count = 0;
    query.count = STEP;
    loop {
        let page = app.engine.list(query.clone()).await?;
        let shown = page.items.iter().filter_map(|(_, described)| Shown::of(described.as_ref().ok()?));
        count += shown.filter(|shown| question.wants(shown)).count() as i64;
        query.after = page.next;
        if query.after.is_none() {
            return Ok(service::CountSchedulesResponse { count, ..Default::default() });
        }
    }
}
