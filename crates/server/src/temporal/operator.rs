//! The operator's verbs: which search attributes a namespace has.

use super::attributes::{self, SYSTEM};
use super::namespaces;
use super::refusal::Refusal;
use super::wire::operator;
use crate::app::App;

pub(super) async fn list(
    app: &App,
    asked: operator::ListSearchAttributesRequest,
) -> Result<operator::ListSearchAttributesResponse, Refusal> {
    namespaces::check(app, &asked.namespace).await?;
    let own = attributes::types(app, &asked.namespace).await?;
    Ok(operator::ListSearchAttributesResponse {
        custom_attributes: own.into_iter().map(|(name, kind)| (name, kind.into())).collect(),
        system_attributes: SYSTEM.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).into())).collect(),
        ..Default::default()
    })
}

pub(super) async fn add(
    app: &App,
    asked: operator::AddSearchAttributesRequest,
) -> Result<operator::AddSearchAttributesResponse, Refusal> {
    namespaces::check(app, &asked.namespace).await?;
    if asked.search_attributes.is_empty() {
        return Err(Refusal::invalid("SearchAttributes are not set on request."));
    }
    attributes::change(app, &asked.namespace, |types| attributes::add(types, &asked.search_attributes))
        .await?;
    Ok(operator::AddSearchAttributesResponse::default())
}

pub(super) async fn remove(
    app: &App,
    asked: operator::RemoveSearchAttributesRequest,
) -> Result<operator::RemoveSearchAttributesResponse, Refusal> {
    namespaces::check(app, &asked.namespace).await?;
    if asked.search_attributes.is_empty() {
        return Err(Refusal::invalid("SearchAttributes are not set on request."));
    }
    attributes::change(app, &asked.namespace, |types| attributes::remove(types, &asked.search_attributes))
        .await?;
    Ok(operator::RemoveSearchAttributesResponse::default())
}
