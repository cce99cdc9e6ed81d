//! Who a server on this machine says that it is: `localhost`, by the word of an authority that only tests know.

use std::path::{Path, PathBuf};

/// What the authority signed.
pub const CERTIFICATE: &[u8] = include_bytes!("../fixtures/server.pem");

/// What proves that it is ours.
pub const KEY: &[u8] = include_bytes!("../fixtures/server.key");

/// The file with the authority's own, for clients that are to trust it.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/root.pem")
}
