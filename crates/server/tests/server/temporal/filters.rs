//! Search attributes and list filters.

use std::collections::BTreeMap;

use punctual_temporal_api::temporal::api::common::v1 as common;
use punctual_temporal_api::temporal::api::enums::v1::IndexedValueType as Kind;
use punctual_temporal_api::temporal::api::operatorservice::v1 as operator;
use punctual_temporal_api::temporal::api::workflowservice::v1::UpdateScheduleRequest;
use tonic::Code;

use super::{Front, creation, json, refusal};
use crate::bed::{Bed, on_file};

fn attributes(values: &[(&str, &str)]) -> Option<common::SearchAttributes> {
    let fields = values.iter().map(|(name, text)| ((*name).to_owned(), json(text)));
    Some(common::SearchAttributes { indexed_fields: fields.collect() })
}

const TYPES: [(&str, i32); 7] = [
    ("Team", Kind::Keyword as i32),
    ("About", Kind::Text as i32),
    ("Size", Kind::Int as i32),
    ("Share", Kind::Double as i32),
    ("Live", Kind::Bool as i32),
    ("Since", Kind::Datetime as i32),
    ("Tags", Kind::KeywordList as i32),
];

async fn listed(front: &mut Front) -> BTreeMap<String, i32> {
    let asked = operator::ListSearchAttributesRequest { namespace: "default".into() };
    front.operator.list_search_attributes(asked).await.unwrap().into_inner().custom_attributes
}

#[tokio::test]
async fn schedules_are_found_by_what_they_have() {
    let mut front = Front::new().await;
    front.add_attributes(&TYPES).await.unwrap();
    let mut one = creation("one");
    one.search_attributes = attributes(&[
        ("Team", "\"red\""),
        ("About", "\"Monthly billing\""),
        ("Size", "5"),
        ("Share", "0.5"),
        ("Live", "true"),
        ("Since", "\"2026-01-01T00:00:00Z\""),
        ("Tags", "[\"a\",\"b\"]"),
        ("TemporalSchedulePaused", "true"),
    ]);
    front.create(one).await.unwrap();
    let mut two = creation("two");
    two.search_attributes = attributes(&[("Team", "\"blue\""), ("Size", "9")]);
    two.schedule.as_mut().unwrap().state =
        Some(super::schedule::ScheduleState { paused: true, ..Default::default() });
    front.create(two).await.unwrap();
    for (query, expected) in [
        ("", &["one", "two"][..]),
        ("ScheduleId = 'one'", &["one"]),
        ("ScheduleId != 'one'", &["two"]),
        ("ScheduleId STARTS_WITH 't'", &["two"]),
        ("ScheduleId NOT STARTS_WITH 't'", &["one"]),
        ("ScheduleId IS NOT NULL", &["one", "two"]),
        ("TemporalSchedulePaused = true", &["two"]),
        ("TemporalSchedulePaused = false", &["one"]),
        ("Team = 'red' OR Size > 8", &["one", "two"]),
        ("Team = 'red' AND Size > 8", &[]),
        ("NOT Team = 'red'", &["two"]),
        ("Team IN ('blue', 'green')", &["two"]),
        ("Team NOT IN ('blue', 'green')", &["one"]),
        ("Size BETWEEN 4 AND 6", &["one"]),
        ("Share IS NULL", &["two"]),
        ("About = 'billing' AND Live = true AND Since < '2026-06-01T00:00:00Z'", &["one"]),
        ("Tags = 'b'", &["one"]),
        ("ScheduleRunningWorkflowCount = 0 AND ScheduleBufferedStartsCount = 0", &["one", "two"]),
        ("ScheduleNextActionTime IS NULL", &["one", "two"]),
    ] {
        assert_eq!(front.list(query).await.unwrap(), expected, "{query}");
    }
    for (query, words) in [
        ("Nobody = 1", "there is no search attribute"),
        ("WorkflowId = 'x'", "is no attribute of schedules"),
        ("Size = 'many'", "expected a whole number"),
        ("Team =", "at position 7"),
    ] {
        let (code, message, details) = refusal(&front.list(query).await.unwrap_err());
        assert_eq!((code, details), (Code::InvalidArgument, vec![]));
        assert!(message.starts_with("invalid query: ") && message.contains(words), "{message}");
    }
    front.bed.stop().await;
}

#[tokio::test]
async fn attributes_come_back_with_their_types_and_change_as_a_whole() {
    let mut front = Front::new().await;
    front.add_attributes(&TYPES).await.unwrap();
    let mut asked = creation("s");
    asked.search_attributes = attributes(&[("Team", "\"red\""), ("Size", "5"), ("Tags", "[]")]);
    front.create(asked).await.unwrap();
    let found = front.describe("s").await.unwrap();
    let fields = found.search_attributes.unwrap().indexed_fields;
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["Size", "Team"], "an empty list is no value");
    assert_eq!(
        (&*fields["Team"].metadata["type"], &*fields["Size"].metadata["type"]),
        (&b"Keyword"[..], &b"Int"[..])
    );
    let update = |search_attributes, memo| UpdateScheduleRequest {
        namespace: "default".into(),
        schedule_id: "s".into(),
        schedule: found.schedule.clone(),
        search_attributes,
        memo,
        ..Default::default()
    };
    let memo = common::Memo { fields: [("k".to_owned(), json("1"))].into() };
    front.update(update(None, Some(memo.clone()))).await.unwrap();
    let again = front.describe("s").await.unwrap();
    assert_eq!((again.search_attributes.unwrap().indexed_fields.len(), again.memo), (2, Some(memo)));
    front.update(update(attributes(&[("Size", "6")]), None)).await.unwrap();
    assert_eq!(front.describe("s").await.unwrap().search_attributes.unwrap().indexed_fields.len(), 1);
    front.update(update(attributes(&[]), Some(common::Memo::default()))).await.unwrap();
    let cleared = front.describe("s").await.unwrap();
    assert!(cleared.search_attributes.is_none() && cleared.memo.is_none());
    for (name, text) in [("Nobody", "1"), ("Size", "\"x\""), ("Team", "5")] {
        let refused = front.update(update(attributes(&[(name, text)]), None)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{name}");
    }
    front.bed.stop().await;
}

#[tokio::test]
async fn types_outlive_the_server_and_are_refused_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("punctual.db");
    let mut front = Front::on(Bed::with(on_file(&path)).await).await;
    front.add_attributes(&TYPES).await.unwrap();
    front.add_attributes(&TYPES[..2]).await.unwrap();
    let other = front.add_attributes(&[("Team", Kind::Int as i32)]).await.unwrap_err();
    assert_eq!(other.code(), Code::AlreadyExists);
    for odd in [("WorkflowId", 1), ("New", 0), ("New", 99), ("", 1)] {
        assert_eq!(front.add_attributes(&[odd]).await.unwrap_err().code(), Code::InvalidArgument, "{odd:?}");
    }
    front.bed.stop().await;

    let mut front = Front::on(Bed::with(on_file(&path)).await).await;
    assert_eq!(listed(&mut front).await, TYPES.map(|(name, kind)| (name.to_owned(), kind)).into());
    let remove = |name: &str| operator::RemoveSearchAttributesRequest {
        namespace: "default".into(),
        search_attributes: vec![name.into()],
    };
    front.operator.remove_search_attributes(remove("Team")).await.unwrap();
    assert!(!listed(&mut front).await.contains_key("Team"));
    let again = front.operator.remove_search_attributes(remove("Team")).await.unwrap_err();
    assert_eq!(again.code(), Code::NotFound);
    let system = front.operator.remove_search_attributes(remove("WorkflowId")).await.unwrap_err();
    assert_eq!(system.code(), Code::InvalidArgument);
    front.bed.stop().await;
}
