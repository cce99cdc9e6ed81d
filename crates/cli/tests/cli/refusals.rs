//! What is wrong is refused with a reason, a way out and an exit code of its own.

use super::server::TestServer;
use super::{run, text};

#[test]
fn no_server_is_one_clear_line() {
    let output = run(&["schedule", "list", "--address=127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(
        text(&output.stderr),
        "error: no server at 127.0.0.1:1 (connection refused), start one with: punctual serve\n"
    );
    let output = run(&["run", "list", "--address=no address"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: --address is no address, found `no address`"));
}

#[test]
fn wrong_flags_are_wrong_usage() {
    for args in [
        &["schedule"][..],
        &["schedule", "create"],
        &["schedule", "create", "x", "@daily", "--overlap=sometimes"],
        &["schedule", "create", "x", "@daily", "--concurrency=-1"],
        &["schedule", "backfill", "x"],
        &["schedule", "list", "--limit=0"],
        &["schedule", "list", "--output=xml"],
        &["worker", "--queue=q"],
        &["worker", "--exec=true"],
        &["run", "describe"],
        &["serve", "--port=1"],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
        assert!(
            text(&output.stderr).contains("Usage:") || text(&output.stderr).contains("error:"),
            "{args:?}"
        );
    }
}

#[test]
fn bad_input_is_refused_with_its_reason() {
    let server = TestServer::start();
    server.ok(&["queue", "create", "default"]);
    let create = ["schedule", "create", "x"];
    for (args, exit_code, said) in [
        (&["@daily", "--zone=Europe/Berln"][..], 2, "did you mean `Europe/Berlin`?"),
        (&["@daily", "--start-to-close=-5m"], 2, "--start-to-close is negative"),
        (&["@daily", "--catchup-window=soon"], 2, "--catchup-window"),
        (&["@daily", "--catchup-window=1s"], 6, "--catchup-window is 1s, at least 10s is needed"),
        (&["@daily", "--input={customer: 7}"], 2, "--input is not JSON"),
        (&["@daily", "--input=@missing.json"], 2, "--input @missing.json: No such file"),
        (&["@daily", "--input=9007199254740993"], 2, "would be rounded"),
        (&["@daily", "--queue=nope"], 6, "help: declare it with: punctual queue create nope"),
        (&["@daily", "--seed=x"], 2, "--seed is for previews"),
        (&["@daily", "--manual"], 2, "--manual"),
        (&["0 25 * * *"], 2, "Hour is not in range"),
        (&["0 0 31 2 *"], 6, "never fires"),
        (&[], 2, "or --manual to start it by hand only"),
        (&["0", "9", "*", "*", "*"], 2, "put the whole string in quotes"),
    ] {
        let stderr = server.fails(&[&create[..], args].concat(), exit_code);
        assert!(stderr.starts_with("error: ") && stderr.contains(said), "{args:?}: {stderr}");
    }
    for (args, exit_code, said) in [
        (&["schedule", "describe", "nope"][..], 3, "nope"),
        (&["schedule", "trigger", "nope"], 3, "nope"),
        (&["schedule", "update", "nope", "--overlap=skip"], 3, "nope"),
        (&["schedule", "update", "nope"], 2, "there is nothing to change"),
        (&["schedule", "watch", "nope"], 3, "nope"),
        (&["schedule", "why", "nope", "soon"], 3, "nope"),
        (&["schedule", "create", "a\nb", "@daily"], 6, "error: "),
        (&["schedule", "create", "", "@daily"], 6, "error: "),
        (&["run", "describe", "12345"], 3, "12345"),
        (&["run", "describe", "abc"], 6, "abc"),
        (&["run", "logs", "12345"], 3, "12345"),
        (&["queue", "describe", "nope"], 3, "nope"),
        (&["queue", "create", "q", "--rate=fast"], 2, "write it as `100/1m`"),
        (&["schedule", "list", "--timeout=0s"], 2, "--timeout is too short"),
        (&["worker", "--queue=q", "--exec=true", "--lease=1ms"], 2, "--lease is too short"),
    ] {
        let stderr = server.fails(args, exit_code);
        assert!(stderr.starts_with("error: ") && stderr.contains(said), "{args:?}: {stderr}");
    }
    let stderr = server
        .fails(&["schedule", "backfill", "x", "--from=2026-02-01T00:00Z", "--through=2026-01-01T00:00Z"], 2);
    assert!(stderr.contains("--through is 2026-01-01T00:00Z, before --from"), "{stderr}");

    server.ok(&["schedule", "create", "x", "@daily"]);
    assert!(server.fails(&["schedule", "create", "x", "@daily"], 4).contains("exists already"));
    let stderr = server.fails(&["schedule", "why", "x", "soon"], 2);
    assert!(stderr.contains("INSTANT is not an instant, found `soon`"), "{stderr}");
}

#[test]
fn a_worker_on_an_undeclared_queue_says_so_and_ends() {
    let server = TestServer::start();
    let output = server.run(&["worker", "--queue=nope", "--exec=true"]);
    let code = output.status.code();
    assert!(code == Some(3) || code == Some(6), "{code:?}: {}", text(&output.stderr));
    assert!(text(&output.stderr).contains("nope"));
}
