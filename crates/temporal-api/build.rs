//! Generates messages, servers and clients from the descriptors that `temporalio-protos` publishes to its dependants.
//!
//! The whole contract has 150 methods and far more messages than are needed. What is generated is what the methods below
//! reach, so that it compiles in seconds and a method that is not served answers "unimplemented" by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::PathBuf;

use prost::Message;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};

/// The methods that are served or called, by their service.
const METHODS: &[(&str, &[&str])] = &[
    (
        "temporal.api.workflowservice.v1.WorkflowService",
        &[
            // Schedules.
            "CreateSchedule",
            "DescribeSchedule",
            "UpdateSchedule",
            "PatchSchedule",
            "ListScheduleMatchingTimes",
            "DeleteSchedule",
            "ListSchedules",
            "CountSchedules",
            // What clients ask before anything else.
            "GetSystemInfo",
            "GetClusterInfo",
            "DescribeNamespace",
            "ListNamespaces",
            "RegisterNamespace",
            // Activity workers.
            "PollActivityTaskQueue",
            "RespondActivityTaskCompleted",
            "RespondActivityTaskCompletedById",
            "RespondActivityTaskFailed",
            "RespondActivityTaskFailedById",
            "RespondActivityTaskCanceled",
            "RespondActivityTaskCanceledById",
            "RecordActivityTaskHeartbeat",
            "RecordActivityTaskHeartbeatById",
            "RecordWorkerHeartbeat",
            "ShutdownWorker",
            // Called at a cluster behind this server.
            "StartWorkflowExecution",
            "RequestCancelWorkflowExecution",
            "TerminateWorkflowExecution",
            "DescribeWorkflowExecution",
            "GetWorkflowExecutionHistory",
        ],
    ),
    (
        "temporal.api.operatorservice.v1.OperatorService",
        &["ListSearchAttributes", "AddSearchAttributes", "RemoveSearchAttributes"],
    ),
];

/// Packages that are kept whole: details of errors travel as `Any`, so that no method reaches them.
const WHOLE_PACKAGES: &[&str] = &["temporal.api.errordetails.v1", "google.rpc"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DEP_TEMPORALIO_PROTOS_DESCRIPTOR_PATH");
    let published = std::env::var("DEP_TEMPORALIO_PROTOS_DESCRIPTOR_PATH")?;
    println!("cargo::rerun-if-changed={published}");
    let all = FileDescriptorSet::decode(std::fs::read(&published)?.as_slice())?;
    let kept = prune(all)?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), kept.encode_to_vec())?;

    let mut config = tonic_prost_build::Config::new();
    // The order of a map's entries is part of its bytes, and bytes are kept and compared.
    config.btree_map(["."]);
    config.bytes([".temporal.api.common.v1.Payload.data", ".temporal.api.common.v1.DataBlob.data"]);
    config.enable_type_names();
    config.type_name_domain(["."], "type.googleapis.com");
    // Kept as bytes, so that what this release does not know survives.
    config.extern_path(".temporal.api.schedule.v1.ScheduleAction", "crate::ScheduleAction");
    // Who serves a part of the methods writes that part only.
    tonic_prost_build::configure()
        .generate_default_stubs(true)
        .include_file("contract.rs")
        .compile_fds_with_config(kept, config)?;
    Ok(())
}

/// Drops every method that is not listed, then every message and enum that nothing reaches.
fn prune(mut all: FileDescriptorSet) -> Result<FileDescriptorSet, Box<dyn Error>> {
    let mut found = 0;
    for file in &mut all.file {
        // Comments are attached by position, and positions change.
        file.source_code_info = None;
        let package = file.package().to_owned();
        file.service.retain_mut(|service| {
            let name = format!("{package}.{}", service.name());
            let Some((_, methods)) = METHODS.iter().find(|(listed, _)| *listed == name) else { return false };
            service.method.retain(|method| methods.contains(&method.name()));
            found += service.method.len();
            true
        });
    }
    let wanted: usize = METHODS.iter().map(|(_, methods)| methods.len()).sum();
    if found != wanted {
        return Err(format!("{wanted} methods are wanted, the published contract has {found} of them").into());
    }
    let reached = reached(&all.file);
    for file in &mut all.file {
        let package = file.package().to_owned();
        let is_reached = |name: &str| reached.contains(&format!(".{package}.{name}"));
        file.message_type.retain(|message| is_reached(message.name()));
        file.enum_type.retain(|kind| is_reached(kind.name()));
        // Options are for other generators.
        file.extension.clear();
        file.options = None;
    }
    all.file.retain(|file| {
        !file.message_type.is_empty() || !file.enum_type.is_empty() || !file.service.is_empty()
    });
    let names: BTreeSet<String> = all.file.iter().map(|file| file.name().to_owned()).collect();
    for file in &mut all.file {
        file.dependency.retain(|name| names.contains(name));
        file.public_dependency.clear();
        file.weak_dependency.clear();
    }
    Ok(all)
}

/// The messages and enums at the top of their files that the kept methods reach; what is nested belongs to its parent.
fn reached(files: &[FileDescriptorProto]) -> BTreeSet<String> {
    let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut waiting: Vec<String> = Vec::new();
    for file in files {
        for message in &file.message_type {
            let name = format!(".{}.{}", file.package(), message.name());
            let mut types = Vec::new();
            field_types(message, &mut types);
            if WHOLE_PACKAGES.contains(&file.package()) {
                waiting.push(name.clone());
            }
            fields.insert(name, types);
        }
        for kind in &file.enum_type {
            fields.insert(format!(".{}.{}", file.package(), kind.name()), Vec::new());
        }
        for method in file.service.iter().flat_map(|service| &service.method) {
            waiting.extend([method.input_type().to_owned(), method.output_type().to_owned()]);
        }
    }
    let mut reached = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        // A nested type is called after its parent.
        let top = (0..=name.len())
            .filter(|end| *end == name.len() || name.as_bytes()[*end] == b'.')
            .map(|end| &name[..end])
            .find(|prefix| fields.contains_key(*prefix));
        if let Some(top) = top
            && reached.insert(top.to_owned())
        {
            waiting.extend(fields[top].iter().cloned());
        }
    }
    reached
}

fn field_types(message: &DescriptorProto, types: &mut Vec<String>) {
    types.extend(message.field.iter().filter_map(|field| field.type_name.clone()));
    for nested in &message.nested_type {
        field_types(nested, types);
    }
}
