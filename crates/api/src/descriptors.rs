//! What the contract says about itself: its descriptors, with the comments of the `.proto` files.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, FileDescriptor, MessageDescriptor, MethodDescriptor};

/// The contract as an encoded `FileDescriptorSet`, for gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/punctual.v1.bin");

/// The package of every message and service.
pub const PACKAGE: &str = "punctual.v1";

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET);
    pool.unwrap_or_else(|error| unreachable!("the descriptors are made together with the code: {error}"))
});

static COMMENTS: LazyLock<BTreeMap<(String, Vec<i32>), String>> =
    LazyLock::new(|| POOL.files().flat_map(|file| comments(&file)).collect());

/// All descriptors, decoded once.
///
/// ```
/// let schedule = punctual_api::descriptors::pool().get_message_by_name("punctual.v1.Schedule").unwrap();
/// assert!(schedule.get_field_by_name("spec").is_some());
/// ```
pub fn pool() -> &'static DescriptorPool {
    &POOL
}

/// The descriptor of a generated message.
///
/// ```
/// use punctual_api::{descriptors, v1};
/// assert_eq!(descriptors::message::<v1::Spec>().full_name(), "punctual.v1.Spec");
/// ```
pub fn message<M: prost::Name>() -> MessageDescriptor {
    let name = M::full_name();
    pool().get_message_by_name(&name).unwrap_or_else(|| unreachable!("{name} is not part of the contract"))
}

/// The rpc of a full name such as `punctual.v1.Schedules/Pause`.
///
/// ```
/// let pause = punctual_api::descriptors::rpc("punctual.v1.Schedules/Pause").unwrap();
/// assert_eq!(pause.input().name(), "PauseScheduleRequest");
/// ```
pub fn rpc(full_name: &str) -> Option<MethodDescriptor> {
    let (service, name) = full_name.split_once('/')?;
    pool().get_service_by_name(service)?.methods().find(|method| method.name() == name)
}

/// The comment above a thing of a file, as paragraphs; empty if there is none.
pub fn comment(file: &FileDescriptor, path: &[i32]) -> &'static str {
    COMMENTS.get(&(file.name().to_owned(), path.to_vec())).map_or("", String::as_str)
}

fn comments(file: &FileDescriptor) -> Vec<((String, Vec<i32>), String)> {
    let locations = file.file_descriptor_proto().source_code_info.iter().flat_map(|info| &info.location);
    let commented = locations.filter_map(|location| {
        let text = location.leading_comments.as_deref()?;
        Some(((file.name().to_owned(), location.path.clone()), paragraphs(text)))
    });
    commented.collect()
}

/// Joins the lines of each paragraph.
fn paragraphs(comment: &str) -> String {
    let paragraphs = comment.split("\n\n").map(|paragraph| {
        paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    });
    paragraphs.filter(|paragraph| !paragraph.is_empty()).collect::<Vec<_>>().join("\n\n")
}
