//! Wrong input is refused with the place at fault and a way out.

use super::{check_refused, file};

#[test]
fn a_fault_in_the_text_has_a_caret_under_it() {
    check_refused(
        &["preview", "0 25 * * *"],
        "\
error: 0 25 * * *
         ^^ Hour is not in range [0-23], found `25`
",
    );
    check_refused(
        &["explain", "0 0 L * *"],
        "\
error: 0 0 L * *
           ^ DayOfMonth is not in range [1-31], found `L`
       help: `L`, `W`, `#` and `?` belong to the quartz dialect
",
    );
    check_refused(
        &["lint", "0 9 * * MÖN"],
        "\
error: 0 9 * * MÖN
               ^^^ DayOfWeek is not in range [0-7], found `MÖN`
",
    );
    check_refused(
        &["preview", &format!("{}99 9 * * *", "0,".repeat(900))],
        "\
error: …0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,99 9 * * *
                                                ^^ Minute is not in range [0-59], found `99`
",
    );
}

#[test]
fn a_fault_that_has_no_text_names_its_option() {
    check_refused(
        &["preview", "--calendar=hour=25"],
        "\
error: --calendar:
       25
       ^^ Hour is not in range [0-23], found `25`
",
    );
    check_refused(
        &["preview", "--every=5x"],
        "\
error: --every:
       5x
        ^ duration has no unit, found `x`
       help: units are d, h, m, s, ms, us and ns, as in `1h30m`
",
    );
    check_refused(
        &["preview", "--every=500ms"],
        "error: --every: interval is too small, at least 1s is needed, found 500ms\n",
    );
    check_refused(
        &["preview", "--calendar=hours=9"],
        "\
error: --calendar has an unknown key, found `hours`
       help: the keys are second, minute, hour, day_of_month, month, day_of_week, year and comment, as in `hour=9`
",
    );
    check_refused(
        &["preview", "@daily", "--jitter=-5m"],
        "error: --jitter is negative, found `-5m`\n       help: an occurrence is never due early\n",
    );
    check_refused(
        &["preview", "CRON_TZ=Asia/Tokyo 0 9 * * *", "0 9 * * *"],
        "\
error: 0 9 * * *
       ^^^^^^^^^ conflicting timezone names: the first cron string has `Asia/Tokyo`, this one no zone
",
    );
}

#[test]
fn a_misspelt_zone_gets_a_suggestion() {
    check_refused(
        &["preview", "0 9 * * *", "--zone=Europe/Berln"],
        "error: unknown time zone `Europe/Berln`\n       help: did you mean `Europe/Berlin`?\n",
    );
}

#[test]
fn instants_and_ranges_that_make_no_sense_are_refused() {
    check_refused(
        &["preview", "@daily", "--from=tomorrow"],
        "\
error: --from is not an instant, found `tomorrow`
       help: write `2026-03-29T01:00:00Z`, a local `2026-03-29T02:30` or `2026-03-29`, or `now`
",
    );
    check_refused(
        &["preview", "@daily", "--from=2026-04-01", "--to=2026-03-01"],
        "\
error: --to is 2026-03-01T00:00:00Z, not after --from, 2026-04-01T00:00:00Z
       help: the range is (from, to]
",
    );
    check_refused(
        &["preview", "@daily", "--exclude-date=2026-02-30"],
        "error: --exclude-date is not a date, found `2026-02-30`\n       help: write it as `2026-12-25`\n",
    );
}

#[test]
fn a_fault_in_a_file_names_the_file_and_the_line() {
    let dates = file("faulty.txt", b"# closed\n2026-12-25\nsoon\n");
    check_refused(
        &["preview", "@daily", "--exclude-dates", &dates],
        &format!(
            "\
error: --exclude-dates {dates}:3 is not a date, found `soon`
       help: write one date a line, as in `2026-12-25`, and remarks after a `#`
"
        ),
    );
    check_refused(
        &["preview", "@daily", "--only-dates", "missing.txt"],
        "error: --only-dates missing.txt: No such file or directory (os error 2)\n",
    );
    check_refused(
        &["preview", "@daily", "--tzif", &dates],
        &format!(
            "error: --tzif {dates}: time zone data is not valid TZif: invalid 32-bit TZif header: too short\n"
        ),
    );
}

#[test]
fn nothing_to_fire_and_an_unquoted_cron_string_are_explained() {
    check_refused(
        &["preview"],
        "\
error: there is nothing that could fire
       help: give a cron string in quotes, as in '0 9 * * MON-FRI', or --every, --at or --calendar
",
    );
    check_refused(
        &["preview", "0", "9", "*", "*", "MON-FRI"],
        "\
error: `0` is no cron string, only a part of one
       help: put the whole string in quotes, or the shell splits it: '0 9 * * MON-FRI'
",
    );
}
