//! The pages of `docs/reference` that are made from code are up to date.

use std::path::Path;

#[test]
fn the_reference_pages_are_fresh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for (name, text) in punctual_server::reference::pages() {
        let path = folder.join(name);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "docs/reference/{name} is stale: UPDATE_EXPECT=1 cargo test -p punctual-server"
        );
    }
}
