//! Search attributes: which there are, what type each has, and the values that schedules have.

use std::collections::BTreeMap;

use prost::Message;
use punctual_engine::EngineError;
use tonic::Code;

use super::query::Value;
use super::refusal::Refusal;
use super::wire::common::{Payload, SearchAttributes};
pub(super) use super::wire::enums::IndexedValueType as Kind;
use crate::app::App;
use crate::status::found;

/// Names that mean something already, and what they hold. A schedule's own attributes never have these names.
pub(super) const SYSTEM: [(&str, Kind); 27] = [
    ("BatcherNamespace", Kind::Keyword),
    ("BatcherUser", Kind::Keyword),
    ("BinaryChecksums", Kind::KeywordList),
    ("BuildIds", Kind::KeywordList),
    ("CloseTime", Kind::Datetime),
    ("ExecutionDuration", Kind::Int),
    ("ExecutionStatus", Kind::Keyword),
    ("ExecutionTime", Kind::Datetime),
    ("HistoryLength", Kind::Int),
    ("HistorySizeBytes", Kind::Int),
    ("ParentRunId", Kind::Keyword),
    ("ParentWorkflowId", Kind::Keyword),
    ("RootRunId", Kind::Keyword),
    ("RootWorkflowId", Kind::Keyword),
    ("RunId", Kind::Keyword),
    ("StartTime", Kind::Datetime),
    ("StateTransitionCount", Kind::Int),
    ("TaskQueue", Kind::Keyword),
    ("TemporalChangeVersion", Kind::KeywordList),
    ("TemporalNamespaceDivision", Kind::Keyword),
    ("TemporalPauseInfo", Kind::KeywordList),
    ("TemporalReportedProblems", Kind::KeywordList),
    ("TemporalScheduledById", Kind::Keyword),
    ("TemporalScheduledStartTime", Kind::Datetime),
    ("TemporalSchedulePaused", Kind::Bool),
    ("WorkflowId", Kind::Keyword),
    ("WorkflowType", Kind::Keyword),
];

/// What every schedule can be asked for.
pub(super) const OF_SCHEDULES: [(&str, Kind); 6] = [
    ("ScheduleBufferedStartsCount", Kind::Int),
    ("ScheduleId", Kind::Keyword),
    ("ScheduleIdleCloseTime", Kind::Datetime),
    ("ScheduleNextActionTime", Kind::Datetime),
    ("ScheduleRunningWorkflowCount", Kind::Int),
    ("TemporalSchedulePaused", Kind::Bool),
];

/// Attributes of one namespace, and of one schedule, as Temporal bounds them.
const ATTRIBUTES_MAX: usize = 100;
const VALUE_BYTES_MAX: usize = 2 * 1024;
const VALUES_BYTES_MAX: usize = 40 * 1024;

/// How often a change of the types meets other changes before it gives up.
const TRIES_MAX: u32 = 10;

pub(super) fn is_reserved(name: &str) -> bool {
    SYSTEM.iter().chain(&OF_SCHEDULES).any(|(known, _)| *known == name)
}

/// The types of a namespace's attributes.
pub(super) type Types = BTreeMap<String, Kind>;

/// The types as they are kept.
#[derive(Clone, PartialEq, Message)]
struct Record {
    #[prost(btree_map = "string, int32", tag = "1")]
    types: BTreeMap<String, i32>,
}

fn document(namespace: &str) -> String {
    format!("temporal/search-attributes/{namespace}")
}

/// The types of a namespace's attributes, and how often they were changed.
async fn load(app: &App, namespace: &str) -> Result<(Types, u64), Refusal> {
    let Some(document) = app.engine.document(&document(namespace)).await? else {
        return Ok((Types::new(), 0));
    };
    let broken = |_| EngineError::Quarantined("the types of search attributes cannot be read".into());
    let record = Record::decode(&*document.bytes).map_err(broken)?;
    let types = record.types.into_iter();
    let types = types.filter_map(|(name, kind)| Some((name, Kind::try_from(kind).ok()?)));
    Ok((types.collect(), document.version))
}

/// The types of a namespace's attributes.
pub(super) async fn types(app: &App, namespace: &str) -> Result<Types, Refusal> {
    match &app.upstream {
        Some(upstream) => upstream.types(namespace).await,
        None => Ok(load(app, namespace).await?.0),
    }
}

/// Changes the types; the change is done anew if somebody else was faster.
pub(super) async fn change(
    app: &App,
    namespace: &str,
    change: impl Fn(&mut Types) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    for _ in 0..TRIES_MAX {
        let (mut types, version) = load(app, namespace).await?;
        let before = types.clone();
        change(&mut types)?;
        if types == before {
            return Ok(());
        }
        let record = Record { types: types.into_iter().map(|(name, kind)| (name, kind.into())).collect() };
        if app.engine.put_document(&document(namespace), version, &record.encode_to_vec()).await? {
            return Ok(());
        }
    }
    Err(Refusal::new(Code::Unavailable, "others change the search attributes at the same time"))
}

/// Adds types. An attribute that has its type already is no fault; one of another type is.
pub(super) fn add(types: &mut Types, added: &BTreeMap<String, i32>) -> Result<(), Refusal> {
    for (name, kind) in added {
        let kind = Kind::try_from(*kind).ok().filter(|kind| *kind != Kind::Unspecified);
        let kind = kind.ok_or_else(|| Refusal::invalid(format!("{} has no known type", found(name))))?;
        if name.is_empty() || name.len() > 255 || is_reserved(name) {
            let message = format!("Search attribute {} is reserved by system.", found(name));
            return Err(Refusal::invalid(message));
        }
        match types.insert(name.clone(), kind) {
            Some(before) if before != kind => {
                let message = format!("Search attribute {name} already exists with another type.");
                return Err(Refusal::new(Code::AlreadyExists, message));
            }
            Some(_) | None => {}
        }
    }
    if types.len() > ATTRIBUTES_MAX {
        let message = format!("a namespace has at most {ATTRIBUTES_MAX} search attributes");
        return Err(Refusal::new(Code::FailedPrecondition, message));
    }
    Ok(())
}

/// Removes types. What schedules have stays with them, and can no longer be asked for.
pub(super) fn remove(types: &mut Types, removed: &[String]) -> Result<(), Refusal> {
    for name in removed {
        if is_reserved(name) {
            return Err(Refusal::invalid(format!("Unable to remove non-custom search attributes: {name}.")));
        }
        if types.remove(name).is_none() {
            return Err(Refusal::not_found(format!("Search attribute {} doesn't exist.", found(name))));
        }
    }
    Ok(())
}

/// Checks values against their types, and writes each one's type beside it, which clients decode by. Reserved names are
/// dropped, as Temporal does.
pub(super) async fn checked(
    app: &App,
    namespace: &str,
    given: Option<SearchAttributes>,
) -> Result<Option<SearchAttributes>, Refusal> {
    let Some(mut given) = given else { return Ok(None) };
    given.indexed_fields.retain(|name, _| !is_reserved(name));
    if given.indexed_fields.is_empty() {
        return Ok(Some(given));
    }
    let count = given.indexed_fields.len();
    if count > ATTRIBUTES_MAX || given.encoded_len() > VALUES_BYTES_MAX {
        let message =
            format!("{count} search attributes are too many, or have more than {VALUES_BYTES_MAX} bytes");
        return Err(Refusal::invalid(message));
    }
    let types = types(app, namespace).await?;
    for (name, payload) in &mut given.indexed_fields {
        let unknown = || {
            Refusal::invalid(format!(
                "Namespace {namespace} has no mapping defined for search attribute {name}"
            ))
        };
        let kind = *types.get(name).ok_or_else(unknown)?;
        if payload.data.len() > VALUE_BYTES_MAX {
            let message = format!("search attribute {name} has more than {VALUE_BYTES_MAX} bytes");
            return Err(Refusal::invalid(message));
        }
        if !is_nothing(payload) && value(payload, kind).is_none() {
            let message = format!("invalid value for search attribute {name} of type {}", word(kind));
            return Err(Refusal::invalid(message));
        }
        payload.metadata.insert("type".into(), word(kind).into());
    }
    given.indexed_fields.retain(|_, payload| !is_nothing(payload));
    Ok(Some(given))
}

/// An attribute without a value is one that the schedule does not have.
fn is_nothing(payload: &Payload) -> bool {
    payload.data.is_empty() || &*payload.data == b"null" || &*payload.data == b"[]"
}

/// A type as clients call it.
fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Unspecified => "Unspecified",
        Kind::Text => "Text",
        Kind::Keyword => "Keyword",
        Kind::Int => "Int",
        Kind::Double => "Double",
        Kind::Bool => "Bool",
        Kind::Datetime => "Datetime",
        Kind::KeywordList => "KeywordList",
    }
}

/// The value of an attribute, by its type.
pub(super) fn value(payload: &Payload, kind: Kind) -> Option<Value> {
    let json: serde_json::Value = serde_json::from_slice(&payload.data).ok()?;
    // A list of one stands for the one.
    let json = match json {
        serde_json::Value::Array(mut items) if kind != Kind::KeywordList && items.len() == 1 => {
            items.remove(0)
        }
        other => other,
    };
    let text = || json.as_str().map(str::to_owned);
    Some(match kind {
        Kind::Unspecified => return None,
        Kind::Text => Value::Text(text()?),
        Kind::Keyword => Value::Keyword(text()?),
        Kind::Int => Value::Int(json.as_i64()?),
        Kind::Double => Value::Double(json.as_f64()?),
        Kind::Bool => Value::Bool(json.as_bool()?),
        Kind::Datetime => Value::Datetime(text()?.parse().ok()?),
        Kind::KeywordList => match &json {
            serde_json::Value::String(one) => Value::KeywordList(vec![one.clone()]),
            serde_json::Value::Array(items) => {
                let items = items.iter().map(|item| item.as_str().map(str::to_owned));
                Value::KeywordList(items.collect::<Option<_>>()?)
            }
            _ => return None,
        },
    })
}
