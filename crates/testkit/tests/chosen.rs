//! Who chooses a PostgreSQL gets that one: else tests on many versions would be tests on one.

use std::fs;
use std::path::{Path, PathBuf};

use punctual_testkit::Postgres;

#[test]
fn the_server_is_the_one_that_was_chosen() {
    let server = Postgres::start_careless().expect("PostgreSQL starts");

    let running = server.query("postgres", "SELECT setting FROM pg_config() WHERE name = 'BINDIR'");
    let running = fs::canonicalize(running.expect("an answer").trim()).expect("a folder");
    let chosen = std::env::var_os("PUNCTUAL_TEST_POSTGRES").map(PathBuf::from);
    match chosen {
        Some(chosen) => assert_eq!(running, fs::canonicalize(chosen).expect("a folder")),
        None => assert!(running.starts_with(Path::new("/usr/lib/postgresql")), "{}", running.display()),
    }
}
