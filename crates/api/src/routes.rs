//! The one place that names HTTP paths: which of them is which rpc.

use prost_reflect::MethodDescriptor;

use crate::descriptors;

/// An HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Ask.
    Get,
    /// Make, or do.
    Post,
    /// Change.
    Patch,
    /// Take away.
    Delete,
}

impl Method {
    /// As HTTP spells it.
    ///
    /// ```
    /// assert_eq!(punctual_api::routes::Method::Patch.as_str(), "PATCH");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }
}

/// One HTTP path and the rpc behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path; names in braces are fields of the request.
    pub path: &'static str,
    /// The rpc, such as `punctual.v1.Schedules/Pause`.
    pub rpc: &'static str,
    /// Whether the rest of the request is the body; else it is the query.
    pub body: bool,
    /// Whether the answer is a stream of server-sent events.
    pub stream: bool,
}

impl Route {
    /// The descriptor of its rpc.
    ///
    /// ```
    /// let route = punctual_api::routes::ROUTES[0];
    /// assert_eq!(route.descriptor().unwrap().name(), "Create");
    /// ```
    pub fn descriptor(&self) -> Option<MethodDescriptor> {
        descriptors::rpc(self.rpc)
    }

    /// The names in braces, in order.
    ///
    /// ```
    /// let route = punctual_api::routes::ROUTES[0];
    /// assert_eq!(route.parameters().collect::<Vec<_>>(), ["namespace"]);
    /// ```
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

const fn get(path: &'static str, rpc: &'static str) -> Route {
    Route { method: Method::Get, path, rpc, body: false, stream: false }
}

const fn post(path: &'static str, rpc: &'static str) -> Route {
    Route { method: Method::Post, path, rpc, body: true, stream: false }
}

const fn patch(path: &'static str, rpc: &'static str) -> Route {
    Route { method: Method::Patch, path, rpc, body: true, stream: false }
}

const fn delete(path: &'static str, rpc: &'static str) -> Route {
    Route { method: Method::Delete, path, rpc, body: false, stream: false }
}

const fn watch(path: &'static str, rpc: &'static str) -> Route {
    Route { method: Method::Get, path, rpc, body: false, stream: true }
}

macro_rules! schedules {
    ($rest:literal) => {
        concat!("/v1/namespaces/{namespace}/schedules", $rest)
    };
}

macro_rules! runs {
    ($rest:literal) => {
        concat!("/v1/namespaces/{namespace}/runs", $rest)
    };
}

macro_rules! queues {
    ($rest:literal) => {
        concat!("/v1/namespaces/{namespace}/queues", $rest)
    };
}

macro_rules! workers {
    ($rest:literal) => {
        concat!("/v1/namespaces/{namespace}/workers/{worker_id}", $rest)
    };
}

/// Every route.
pub const ROUTES: &[Route] = &[
    post(schedules!(""), "punctual.v1.Schedules/Create"),
    get(schedules!(""), "punctual.v1.Schedules/List"),
    get(schedules!("-count"), "punctual.v1.Schedules/Count"),
    get(schedules!("/{schedule_id}"), "punctual.v1.Schedules/Describe"),
    patch(schedules!("/{schedule_id}"), "punctual.v1.Schedules/Update"),
    delete(schedules!("/{schedule_id}"), "punctual.v1.Schedules/Delete"),
    post(schedules!("/{schedule_id}/pause"), "punctual.v1.Schedules/Pause"),
    post(schedules!("/{schedule_id}/resume"), "punctual.v1.Schedules/Resume"),
    post(schedules!("/{schedule_id}/trigger"), "punctual.v1.Schedules/Trigger"),
    post(schedules!("/{schedule_id}/backfills"), "punctual.v1.Schedules/Backfill"),
    delete(schedules!("/{schedule_id}/backfills/{backfill_id}"), "punctual.v1.Schedules/CancelBackfill"),
    post(schedules!("/{schedule_id}/skip"), "punctual.v1.Schedules/Skip"),
    post(schedules!("/{schedule_id}/unskip"), "punctual.v1.Schedules/Unskip"),
    get(schedules!("/{schedule_id}/preview"), "punctual.v1.Schedules/Preview"),
    post("/v1/preview", "punctual.v1.Schedules/Preview"),
    get(schedules!("/{schedule_id}/why"), "punctual.v1.Schedules/Why"),
    get(schedules!("/{schedule_id}/ledger"), "punctual.v1.Schedules/Ledger"),
    watch(schedules!("/{schedule_id}/watch"), "punctual.v1.Schedules/Watch"),
    watch("/v1/namespaces/{namespace}/watch", "punctual.v1.Schedules/Watch"),
    get(runs!(""), "punctual.v1.Runs/List"),
    get(runs!("/{run_id}"), "punctual.v1.Runs/Describe"),
    post(runs!("/{run_id}/cancel"), "punctual.v1.Runs/Cancel"),
    post(runs!("/{run_id}/terminate"), "punctual.v1.Runs/Terminate"),
    get(runs!("/{run_id}/logs"), "punctual.v1.Runs/Logs"),
    post(runs!("/{run_id}/retry"), "punctual.v1.Runs/Retry"),
    post(queues!("/{queue}/runs"), "punctual.v1.Runs/Enqueue"),
    post(queues!(""), "punctual.v1.Queues/Create"),
    get(queues!(""), "punctual.v1.Queues/List"),
    get(queues!("/{queue}"), "punctual.v1.Queues/Describe"),
    patch(queues!("/{queue}"), "punctual.v1.Queues/Update"),
    post(queues!("/{queue}/pause"), "punctual.v1.Queues/Pause"),
    post(queues!("/{queue}/resume"), "punctual.v1.Queues/Resume"),
    post(queues!("/{queue}/purge"), "punctual.v1.Queues/Purge"),
    post(queues!("/{queue}/retry"), "punctual.v1.Queues/RetryDeadLetters"),
    post(queues!("/{queue}/claim"), "punctual.v1.Workers/Claim"),
    post(workers!("/heartbeat"), "punctual.v1.Workers/Heartbeat"),
    post(workers!("/complete"), "punctual.v1.Workers/Complete"),
    get("/v1/info", "punctual.v1.Server/Info"),
    get("/v1/stats", "punctual.v1.Server/Stats"),
    post("/v1/examine", "punctual.v1.Server/Examine"),
    get("/v1/nodes", "punctual.v1.Server/Nodes"),
    post("/v1/nodes/{node_id}/drain", "punctual.v1.Server/Drain"),
];
