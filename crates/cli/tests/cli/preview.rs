//! `preview`: the next times, with marks where the clock changes.

use std::process::Stdio;

use super::{check, command, file, run, text};

#[test]
fn preview_marks_the_first_occurrence_after_the_clocks_of_berlin_go_forward() {
    check(
        &["preview", "0 9 * * MON-FRI", "--zone", "Europe/Berlin", "--from", "2026-03-26", "--count", "4"],
        0,
        "\
At 09:00, Monday through Friday, in Europe/Berlin.

#  local (Europe/Berlin)    UTC                   offset  relative       clock change
1  Thu 2026-03-26 09:00:00  2026-03-26T08:00:00Z  +01:00  in 9 h
2  Fri 2026-03-27 09:00:00  2026-03-27T08:00:00Z  +01:00  in 1 day 9 h
3  Mon 2026-03-30 09:00:00  2026-03-30T07:00:00Z  +02:00  in 4 days 8 h  offset +01:00 -> +02:00
4  Tue 2026-03-31 09:00:00  2026-03-31T07:00:00Z  +02:00  in 5 days 8 h
",
        "",
    );
}

#[test]
fn preview_warns_of_a_time_that_is_skipped_and_shows_where_the_gap_policy_moves_it() {
    let args = ["preview", "30 2 * * *", "--zone", "Europe/Berlin", "--count", "2"];
    check(
        &args,
        0,
        "\
At 02:30 every day, in Europe/Berlin.

#  local (Europe/Berlin)    UTC                   offset  relative        clock change
1  Sat 2026-03-28 02:30:00  2026-03-28T01:30:00Z  +01:00  in 13 h 30 min
2  Mon 2026-03-30 02:30:00  2026-03-30T00:30:00Z  +02:00  in 2 days 12 h  offset +01:00 -> +02:00
",
        "\
warning: 02:30 does not exist on 2026-03-29, 2027-03-28 and 2028-03-26 in Europe/Berlin and is skipped (dst_gap)
warning: 02:30 exists twice on 2026-10-25 and 2027-10-31 in Europe/Berlin and fires twice (dst_fold)
",
    );
    check(
        &[&args[..], &["--gap", "after", "--fold", "first"]].concat(),
        0,
        "\
At 02:30 every day, in Europe/Berlin. A time that the clock skips happens right after the change; \
a time that the clock repeats happens the first time only.

#  local (Europe/Berlin)    UTC                   offset  relative        clock change
1  Sat 2026-03-28 02:30:00  2026-03-28T01:30:00Z  +01:00  in 13 h 30 min
2  Sun 2026-03-29 03:00:00  2026-03-29T01:00:00Z  +02:00  in 1 day 13 h   after gap, offset +01:00 -> +02:00
",
        "",
    );
}

#[test]
fn preview_tells_the_two_copies_of_a_repeated_half_hour_on_lord_howe_apart() {
    let output = run(&[
        "preview",
        "*/15 1 * * *",
        "--zone=Australia/Lord_Howe",
        "--from=2026-04-05",
        "--to=2026-04-06T01:00",
    ]);
    assert_eq!(
        text(&output.stdout),
        "\
At 01:00, 01:15, 01:30 and 01:45 every day, in Australia/Lord_Howe.

#  local (Australia/Lord_Howe)  UTC                   offset  relative       clock change
1  Sun 2026-04-05 01:00:00      2026-04-04T14:00:00Z  +11:00  in 1 h
2  Sun 2026-04-05 01:15:00      2026-04-04T14:15:00Z  +11:00  in 1 h 15 min
3  Sun 2026-04-05 01:30:00      2026-04-04T14:30:00Z  +11:00  in 1 h 30 min  repeated (1st)
4  Sun 2026-04-05 01:45:00      2026-04-04T14:45:00Z  +11:00  in 1 h 45 min  repeated (1st)
5  Sun 2026-04-05 01:30:00      2026-04-04T15:00:00Z  +10:30  in 2 h         repeated (2nd), offset +11:00 -> +10:30
6  Sun 2026-04-05 01:45:00      2026-04-04T15:15:00Z  +10:30  in 2 h 15 min  repeated (2nd)
7  Mon 2026-04-06 01:00:00      2026-04-05T14:30:00Z  +10:30  in 1 day 1 h
"
    );
}

#[test]
fn preview_as_json_is_json_alone() {
    check(
        &["preview", "CRON_TZ=Europe/Berlin 0 2 * * *", "--from=2026-10-24T12:00", "-n1", "--output=json"],
        0,
        r#"{
  "ended": false,
  "explain": "At 02:00 every day, in Europe/Berlin.",
  "lints": [
    {
      "code": "dst_gap",
      "dates": [
        "2027-03-28",
        "2028-03-26"
      ],
      "field": "",
      "help": "choose another time, or the gap policy `after`",
      "message": "02:00 does not exist on 2027-03-28 and 2028-03-26 in Europe/Berlin and is skipped"
    },
    {
      "code": "dst_fold",
      "dates": [
        "2026-10-25",
        "2027-10-31"
      ],
      "field": "",
      "help": "choose another time, or the fold policy `first` or `last`",
      "message": "02:00 exists twice on 2026-10-25 and 2027-10-31 in Europe/Berlin and fires twice"
    }
  ],
  "occurrences": [
    {
      "due_time": "2026-10-25T00:00:00Z",
      "local_time": "2026-10-25T02:00:00",
      "nominal_time": "2026-10-25T00:00:00Z",
      "note": "repeated (1st)",
      "offset": "+02:00"
    }
  ],
  "tzdata": "TZDATA",
  "zone": "Europe/Berlin"
}
"#,
        "",
    );
}

#[test]
fn preview_says_when_it_is_over_and_shows_due_times_when_there_is_jitter() {
    check(
        &["preview", "@daily", "--end=2026-03-29", "--jitter=1h", "--seed=x"],
        0,
        "\
At 00:00 every day, in UTC. Not after 2026-03-29 00:00 UTC. Each one is spread over up to 1 hour after its time.

#  local (UTC)              UTC                   offset  relative       due                      clock change
1  Sat 2026-03-28 00:00:00  2026-03-28T00:00:00Z  +00:00  in 12 h        2026-03-28 00:46:27.973
2  Sun 2026-03-29 00:00:00  2026-03-29T00:00:00Z  +00:00  in 1 day 12 h  2026-03-29 00:49:28.568

no more occurrences: the last is Sun 2026-03-29 00:00:00 (2026-03-29T00:00:00Z)
",
        "",
    );
    check(
        &["preview", "0 9 * * *", "--to", "2026-03-28"],
        0,
        "\
At 09:00 every day, in UTC.

no occurrences in (2026-03-27T12:00:00Z, 2026-03-28T00:00:00Z]: the next is Sat 2026-03-28 09:00:00 \
(2026-03-28T09:00:00Z)
",
        "",
    );
    check(
        &["preview", "0 0 31 2 *"],
        0,
        "At 00:00 on the 31st of February, in UTC.\n\nno occurrences: it never fires\n",
        "warning: never fires: no date fits all of its fields (never_fires)\n",
    );
}

#[test]
fn preview_takes_the_zone_from_the_cron_string_or_from_a_file() {
    let output = run(&["preview", "CRON_TZ=Asia/Tokyo 0 9 * * *", "-n1"]);
    assert!(text(&output.stdout).contains("in Asia/Tokyo."));
    assert!(text(&output.stdout).contains("local (Asia/Tokyo)"));

    let zone = file("quarter.tzif", &tzif("<+0345>-3:45"));
    let output = run(&["preview", "0 9 * * *", "--tzif", &zone, "--zone", "Custom/Quarter", "-n1"]);
    assert_eq!(
        text(&output.stdout),
        "\
At 09:00 every day, in Custom/Quarter.

#  local (Custom/Quarter)   UTC                   offset  relative        clock change
1  Sat 2026-03-28 09:00:00  2026-03-28T05:15:00Z  +03:45  in 17 h 15 min
"
    );
}

/// Time zone data with no past and a rule for the future.
fn tzif(rule: &str) -> Vec<u8> {
    let block = |counts: [u32; 6]| {
        let mut bytes = b"TZif2".to_vec();
        bytes.extend([0; 15]);
        counts.iter().for_each(|count| bytes.extend(count.to_be_bytes()));
        bytes.extend([0, 0, 0, 0, 0, 0]); // one local time type: offset 0, no saving, designation 0
        bytes.extend(b"LMT\0");
        bytes
    };
    let counts = [0, 0, 0, 0, 1, 4];
    [block(counts), block(counts), format!("\n{rule}\n").into_bytes()].concat()
}

#[test]
fn preview_joins_all_sources_and_obeys_all_exclusions() {
    let dates = file("closed.txt", "\u{feff}# closed\n\n2026-03-30 # a Monday\r\n2026-04-01\n".as_bytes());
    let output = run(&[
        "preview",
        "0 9 * * *",
        "--calendar=hour=10 minute=30 dayOfWeek=mon-fri comment=with blanks",
        "--every=24h/12h",
        "--at=2026-03-28T23:00",
        "--exclude=* 9 * * SUN",
        "--exclude-date=2026-03-31",
        "--exclude-dates",
        &dates,
        "--to=2026-04-02",
        "--start=2026-03-28T08:00:00Z",
        "--zone=UTC",
    ]);
    let times: Vec<&str> =
        text(&output.stdout).lines().skip(3).map(|row| row.split_whitespace().nth(4).unwrap()).collect();
    assert_eq!(
        times,
        ["2026-03-28T09:00:00Z", "2026-03-28T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T12:00:00Z"]
    );
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn dates_in_files_roll_and_close_business() {
    let first_local_date = |args: &[&str]| {
        let output = run(&[&["preview", "-n1"], args].concat());
        text(&output.stdout).lines().nth(3).unwrap().split_whitespace().nth(2).unwrap().to_owned()
    };
    let dates = file("holidays.txt", b"2026-03-31\n2026-04-01\n");

    let first = ["0 9 1 4 *", "--exclude-dates", &dates];
    assert_eq!(first_local_date(&first), "2027-04-01");
    assert_eq!(first_local_date(&[&first[..], &["--roll=forward"]].concat()), "2026-04-02");
    assert_eq!(first_local_date(&[&first[..], &["--roll=back"]].concat()), "2026-03-30");
    assert_eq!(first_local_date(&["@daily", "--only-dates", &dates]), "2026-03-31");
    let last_business_day = ["0 0 9 LB * ?", "--dialect=quartz", "--business-closed", &dates];
    assert_eq!(first_local_date(&last_business_day), "2026-03-30");
}

#[test]
fn a_local_time_that_is_skipped_or_repeated_is_read_with_a_note() {
    let output = run(&[
        "preview",
        "@daily",
        "-n1",
        "--zone=Europe/Berlin",
        "--from=2026-03-29T02:30",
        "--to=2026-10-25 02:30",
    ]);
    assert_eq!(
        text(&output.stderr),
        "\
note: --from 2026-03-29T02:30 does not exist in Europe/Berlin, it is read as 2026-03-29T03:00:00 (2026-03-29T01:00:00Z)
note: --to 2026-10-25 02:30 exists twice in Europe/Berlin, it is read as the first (2026-10-25T00:30:00Z); \
write an offset to choose
"
    );
}

#[test]
fn count_is_bounded_and_a_long_range_is_cut_with_a_note() {
    let lines = |args: &[&str]| text(&run(args).stdout).lines().count();
    assert_eq!(lines(&["preview", "@hourly", "--count=1"]), 4);
    assert_eq!(lines(&["preview", "@hourly", "--count=10000"]), 10_003);
    assert_eq!(lines(&["preview", "@hourly"]), 13);
    for count in ["0", "10001", "-1", "ten"] {
        let output = run(&["preview", "@hourly", &format!("--count={count}")]);
        assert_eq!(output.status.code(), Some(2), "{count}");
        assert!(
            text(&output.stderr).starts_with(&format!("error: invalid value '{count}' for '--count <N>'"))
        );
    }

    let output = run(&["preview", "@hourly", "--to=2030-01-01"]);
    assert_eq!(text(&output.stdout).lines().count(), 10_003);
    assert_eq!(
        text(&output.stderr),
        "note: there are more than 10000 up to --to, only the first 10000 are listed\n"
    );
}

#[test]
fn a_reader_that_leaves_early_is_no_fault() {
    let mut child = command(&["preview", "* * * * *", "--count=10000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

// Refusals
