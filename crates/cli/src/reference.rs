//! The reference page of the command line, made from the commands themselves.

use std::fs;
use std::path::Path;

use clap::CommandFactory;

use crate::command::Cli;
use crate::exit_code;

const INTRODUCTION: &str = "\
# Command line

Made from the commands themselves: `UPDATE_EXPECT=1 cargo test -p punctual reference` writes it anew.

Commands that talk to a server find it by `--address` or `PUNCTUAL_ADDRESS`. Every command that lists or tells has
`--output json`; what changes something takes a `--request-id`, so that repeating it is harmless.
";

#[test]
fn the_reference_page_says_what_the_commands_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let page = page();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/reference/cli.md is stale: UPDATE_EXPECT=1 cargo test -p punctual reference"
    );
}

fn page() -> String {
    let codes = exit_code::TABLE.iter().map(|(code, meaning)| format!("| {} | {meaning} |\n", code.number()));
    let mut page = format!(
        "{INTRODUCTION}\n## Exit codes\n\n| code | meaning |\n|--:|---|\n{}",
        codes.collect::<String>()
    );
    let mut root = Cli::command().term_width(110);
    root.build();
    section(&mut page, &mut root);
    page
}

fn section(page: &mut String, command: &mut clap::Command) {
    if command.get_name() == "help" {
        return;
    }
    let help = command.render_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    page.push_str(&format!("\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n").trim_end()));
    for inner in command.get_subcommands_mut() {
        section(page, inner);
    }
}
