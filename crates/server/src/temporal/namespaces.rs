//! Namespaces: `default` is there, another one is as soon as it has a queue.

use punctual_store::QueueSettings;
use uuid::Uuid;

use super::refusal::Refusal;
use super::wire::service;
use super::wire::{enums, namespace, replication};
use crate::app::{App, NAMESPACE_DEFAULT, QUEUE_DEFAULT};
use crate::convert::action::WORKFLOWS_QUEUE;
use crate::convert::time::length_to_wire;
use crate::limits::PAYLOAD_BYTES_MAX;
use tonic::Code;

/// What Temporal calls the only cluster there is.
pub(super) const CLUSTER: &str = "active";

/// Whether the namespace of a request exists; Temporal has no default for one that is not named.
pub(super) async fn check(app: &App, name: &str) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(Refusal::invalid("Namespace not set on request."));
    }
    if let Some(upstream) = &app.upstream {
        // Where schedules are, it was there when they were made: they are managed while the cluster is away, too.
        return match app.engine.has_queue(name, WORKFLOWS_QUEUE).await? {
            true => Ok(()),
            false => upstream.check_namespace(name).await,
        };
    }
    if name == NAMESPACE_DEFAULT || app.engine.has_namespace(name).await? {
        return Ok(());
    }
    Err(Refusal::unknown_namespace(name))
}

/// Sees to it that the queue exists which the runs of a schedule go to.
pub(super) async fn declare(app: &App, namespace: &str, queue: &str) -> Result<(), Refusal> {
    if app.engine.has_queue(namespace, queue).await? {
        return Ok(());
    }
    match app.engine.create_queue(namespace, queue, QueueSettings::default()).await {
        // Somebody else declared it at the same time, with settings of their own.
        Ok(_) | Err(punctual_engine::EngineError::AlreadyExists(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The id of a namespace: always the same one for the same name.
fn id(name: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("punctual namespace {name}").as_bytes()).to_string()
}

fn shown(app: &App, name: &str) -> service::DescribeNamespaceResponse {
    let limits = namespace::namespace_info::Limits {
        blob_size_limit_error: PAYLOAD_BYTES_MAX as i64,
        memo_size_limit_error: PAYLOAD_BYTES_MAX as i64,
        ..Default::default()
    };
    service::DescribeNamespaceResponse {
        namespace_info: Some(namespace::NamespaceInfo {
            name: name.into(),
            id: id(name),
            state: enums::NamespaceState::Registered.into(),
            capabilities: Some(namespace::namespace_info::Capabilities {
                // A worker that shuts down leaves its polls to us, so that no task is lost on its way.
                worker_poll_complete_on_shutdown: true,
                ..Default::default()
            }),
            limits: Some(limits),
            supports_schedules: true,
            ..Default::default()
        }),
        config: Some(namespace::NamespaceConfig {
            workflow_execution_retention_ttl: Some(length_to_wire(app.run_retention)),
            history_archival_state: enums::ArchivalState::Disabled.into(),
            visibility_archival_state: enums::ArchivalState::Disabled.into(),
            ..Default::default()
        }),
        replication_config: Some(replication::NamespaceReplicationConfig {
            active_cluster_name: CLUSTER.into(),
            clusters: vec![replication::ClusterReplicationConfig {
                cluster_name: CLUSTER.into(),
                ..Default::default()
            }],
            state: enums::ReplicationState::Normal.into(),
        }),
        ..Default::default()
    }
}

async fn all(app: &App) -> Result<Vec<String>, Refusal> {
    let mut names = app.engine.namespaces().await?;
    if !names.iter().any(|name| **name == *NAMESPACE_DEFAULT) {
        names.insert(0, NAMESPACE_DEFAULT.into());
    }
    Ok(names.iter().map(ToString::to_string).collect())
}

pub(super) async fn describe(
    app: &App,
    asked: service::DescribeNamespaceRequest,
) -> Result<service::DescribeNamespaceResponse, Refusal> {
    if asked.namespace.is_empty() && !asked.id.is_empty() {
        let names = all(app).await?;
        let name = names.iter().find(|name| id(name) == asked.id);
        return name.map(|name| shown(app, name)).ok_or_else(|| Refusal::unknown_namespace(&asked.id));
    }
    check(app, &asked.namespace).await?;
    Ok(shown(app, &asked.namespace))
}

/// Namespaces of one page, if the client names no number.
const PAGE_SIZE: usize = 100;

pub(super) async fn list(
    app: &App,
    asked: service::ListNamespacesRequest,
) -> Result<service::ListNamespacesResponse, Refusal> {
    let after =
        String::from_utf8(asked.next_page_token).map_err(|_| Refusal::invalid("Invalid NextPageToken."))?;
    let size = usize::try_from(asked.page_size).ok().filter(|size| (1..=1_000).contains(size));
    let size = size.unwrap_or(PAGE_SIZE);
    let mut names = all(app).await?;
    names.sort();
    names.retain(|name| after.is_empty() || *name > after);
    let more = names.len() > size;
    names.truncate(size);
    Ok(service::ListNamespacesResponse {
        namespaces: names.iter().map(|name| shown(app, name)).collect(),
        next_page_token: names.last().filter(|_| more).map(|name| name.clone().into()).unwrap_or_default(),
    })
}

/// Makes a namespace by giving it a queue. How long runs are kept is a setting of the server, so nothing else is obeyed.
pub(super) async fn register(
    app: &App,
    asked: service::RegisterNamespaceRequest,
) -> Result<service::RegisterNamespaceResponse, Refusal> {
    if asked.namespace.is_empty() {
        return Err(Refusal::invalid("Namespace not set on request."));
    }
    if check(app, &asked.namespace).await.is_ok() {
        return Err(Refusal::new(
            Code::AlreadyExists,
            format!("Namespace {} already exists.", asked.namespace),
        ));
    }
    app.engine.create_queue(&asked.namespace, QUEUE_DEFAULT, QueueSettings::default()).await?;
    Ok(service::RegisterNamespaceResponse::default())
}
