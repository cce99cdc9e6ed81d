//! What clients ask before anything else: which server this is, and what it can do.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::namespaces::CLUSTER;
use super::refusal::Refusal;
use super::wire::{service, version};
use crate::app::App;

/// The release of Temporal whose contract and behaviour are followed; clients compare it with what they need.
pub(super) const CONTRACT_VERSION: &str = "1.32.0";

/// Clients that this contract is for, by the names that they give themselves.
const CLIENTS: [&str; 9] = [
    "temporal-cli",
    "temporal-dotnet",
    "temporal-go",
    "temporal-java",
    "temporal-php",
    "temporal-python",
    "temporal-ruby",
    "temporal-rust",
    "temporal-typescript",
];

pub(super) async fn system(
    _app: &App,
    _asked: service::GetSystemInfoRequest,
) -> Result<service::GetSystemInfoResponse, Refusal> {
    Ok(service::GetSystemInfoResponse {
        server_version: CONTRACT_VERSION.into(),
        capabilities: Some(service::get_system_info_response::Capabilities {
            signal_and_query_header: true,
            internal_error_differentiation: true,
            activity_failure_include_heartbeat: true,
            supports_schedules: true,
            encoded_failure_attributes: true,
            upsert_memo: true,
            sdk_metadata: true,
            ..Default::default()
        }),
    })
}

pub(super) async fn cluster(
    app: &App,
    _asked: service::GetClusterInfoRequest,
) -> Result<service::GetClusterInfoResponse, Refusal> {
    // The database's own secret is the one thing that every node of it shares and no other has.
    let secret =
        app.engine.secret(*Uuid::new_v4().as_bytes().repeat(2).first_chunk().unwrap_or(&[0; 32])).await?;
    let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, &[b"punctual cluster".as_slice(), &secret].concat());
    let release = version::ReleaseInfo { version: CONTRACT_VERSION.into(), ..Default::default() };
    let clients = CLIENTS.map(|client| (client.to_owned(), "<3.0.0".to_owned()));
    Ok(service::GetClusterInfoResponse {
        supported_clients: BTreeMap::from(clients),
        server_version: CONTRACT_VERSION.into(),
        cluster_id: id.to_string(),
        cluster_name: CLUSTER.into(),
        version_info: Some(version::VersionInfo { current: Some(release), ..Default::default() }),
        persistence_store: app.store.into(),
        visibility_store: app.store.into(),
        ..Default::default()
    })
}
