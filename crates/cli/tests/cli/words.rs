//! `explain`, `lint`, `diff`, completions and help.

use super::{check, run, text};

#[test]
fn explain_says_it_in_words() {
    check(
        &["explain", "0 30 9 ? * FRIL", "--dialect=quartz", "--zone=Asia/Tokyo"],
        0,
        "At 09:30 on the last Friday of the month, in Asia/Tokyo.\n",
        "",
    );
    check(
        &["explain", "@daily", "--output=json"],
        0,
        "{\n  \"explain\": \"At 00:00 every day, in UTC.\",\n  \"tzdata\": \"TZDATA\",\n  \"zone\": \"UTC\"\n}\n",
        "",
    );
}

#[test]
fn lint_exits_with_one_if_and_only_if_it_finds_something() {
    check(&["lint", "0 9 * * *", "--zone=Europe/Berlin"], 0, "no findings\n", "");
    check(
        &["lint", "30 2 13 * 5", "--zone=Europe/Berlin", "--now=2027-01-01"],
        1,
        "\
day_fields_anded: day of month and day of week must both hold, unlike in classic cron
  in: 30 2 13 * 5
  help: if either should be enough, use the unix dialect or two cron strings
",
        "",
    );
    check(
        &["lint", "0 0 1 1 * 2026", "--output=json"],
        1,
        r#"{
  "lints": [
    {
      "code": "never_again",
      "dates": [],
      "field": "",
      "help": "check years and end time",
      "message": "never fires again: the last occurrence was 2026-01-01T00:00:00Z"
    }
  ]
}
"#,
        "",
    );
}

#[test]
fn diff_lists_what_comes_and_goes() {
    let args = ["diff", "0 9 * * *", "0 9,17 * * MON-FRI", "--zone=Europe/Berlin", "--to=2026-03-31"];
    check(
        &args,
        0,
        "\
old: At 09:00 every day, in Europe/Berlin.
new: At 09:00 and 17:00, Monday through Friday, in Europe/Berlin.
in (2026-03-27T12:00:00Z, 2026-03-30T22:00:00Z]

   local (Europe/Berlin)    UTC                   offset
+  Fri 2026-03-27 17:00:00  2026-03-27T16:00:00Z  +01:00
-  Sat 2026-03-28 09:00:00  2026-03-28T08:00:00Z  +01:00
-  Sun 2026-03-29 09:00:00  2026-03-29T07:00:00Z  +02:00
+  Mon 2026-03-30 17:00:00  2026-03-30T15:00:00Z  +02:00

2 added, 2 removed, 0 moved, 1 kept
",
        "",
    );
    let all = run(&[&args[..], &["--all"]].concat());
    assert!(text(&all.stdout).contains("\n=  Mon 2026-03-30 09:00:00  2026-03-30T07:00:00Z  +02:00\n"));
}

#[test]
fn diff_shows_moved_due_times_and_is_bounded() {
    let output = run(&["diff", "@hourly", "*/30 * * * *", "--jitter=45m", "--to=2026-03-27T13:00"]);
    assert_eq!(
        text(&output.stdout).split_once("\n\n").unwrap().1.trim_start(),
        "\
local (UTC)              UTC                   offset  due
+  Fri 2026-03-27 12:30:00  2026-03-27T12:30:00Z  +00:00  2026-03-27 12:44:54.357
~  Fri 2026-03-27 13:00:00  2026-03-27T13:00:00Z  +00:00  2026-03-27 13:25:03.026 -> 2026-03-27 13:16:42.017

1 added, 0 removed, 1 moved, 0 kept
"
    );

    let output = run(&["diff", "* * * * *", "* * * * * * *", "--to=2026-04-10"]);
    assert_eq!(text(&output.stdout).lines().filter(|line| line.starts_with('+')).count(), 10_000);
    assert_eq!(
        text(&output.stderr),
        "\
note: only the first 10000 are listed
note: compared 1000000 occurrences and stopped before 2026-04-08T01:46:41Z
"
    );
}

#[test]
fn completions_and_version_are_there() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(&["completions", shell]);
        assert!(output.status.success() && text(&output.stdout).contains("exclude-dates"), "{shell}");
    }
    check(&["--version"], 0, concat!("punctual ", env!("CARGO_PKG_VERSION"), " (tz data TZDATA)\n"), "");
}

#[test]
fn every_command_helps_with_examples() {
    let verbs = |noun: &str, verbs: &str| -> Vec<String> {
        verbs.split(' ').map(|verb| format!("{noun} {verb}")).collect()
    };
    let schedule = "create describe list count update pause resume trigger backfill cancel-backfill skip unskip delete \
                    preview why ledger watch";
    let mut names = vec!["preview", "explain", "lint", "diff", "completions", "serve", "worker", "config"];
    names.extend(["schedule", "run", "queue", "top", "doctor", "backup", "restore", "migrate"]);
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    names.extend(verbs("schedule", schedule));
    names.extend(verbs("run", "enqueue list describe cancel terminate retry logs"));
    names.extend(verbs("queue", "create update pause resume list describe purge retry"));
    for name in names {
        let mut args: Vec<&str> = name.split(' ').collect();
        args.push("--help");
        let output = run(&args);
        assert!(text(&output.stdout).contains(&format!("Examples:\n  punctual {name}")), "{name}");
    }
    let help = run(&["--help"]);
    assert!(text(&help.stdout).contains("Exit codes:\n  0  it worked"), "{}", text(&help.stdout));
}
