//! Wall times that a change of the clock skips or repeats within the next two years.

use jiff::civil::Date;

use super::{Lint, LintCode, dates_in_words, finding};
use crate::civil::{SECONDS_PER_DAY, date_of_day};
use crate::compile::CompiledSpec;
use crate::spec::{Fold, Gap};
use crate::wall::{WallRule, first_wall, last_wall};

const TWO_YEARS: i64 = 2 * 366 * SECONDS_PER_DAY;
const HOUR: i64 = 3_600;

/// `some_hours` is the spec without the calendars that fire in every hour of the day.
pub(super) fn lints(compiled: &CompiledSpec, some_hours: &CompiledSpec, now: i64) -> Vec<Lint> {
    let ahead = |start: i64| {
        let (first, last) = compiled.span.unwrap_or((0, i64::MIN));
        start > now && start < now + TWO_YEARS && first < start + SECONDS_PER_DAY && start <= last
    };
    // What fires in every hour goes on through a shift of whole hours; a shorter one it does meet.
    let rules =
        |(from, to): (i64, i64)| if (to - from) % HOUR == 0 { &some_hours.rules } else { &compiled.rules };
    let (mut gaps, mut folds) = (Hits::default(), Hits::default());
    for stretch in compiled.zone.stretches().iter().filter(|stretch| ahead(stretch.start)) {
        if let Some(range) = stretch.gap().filter(|_| compiled.gap == Gap::Skip) {
            gaps.look(rules(range), range);
        }
        if let Some(range) = stretch.fold().filter(|_| compiled.fold == Fold::Both) {
            folds.look(rules(range), range);
        }
    }
    let zone = compiled.zone.name();
    let gap = gaps.lint(LintCode::DstGap, |time, dates| {
        let message = format!("{time} does not exist on {dates} in {zone} and is skipped");
        (message, "choose another time, or the gap policy `after`")
    });
    let fold = folds.lint(LintCode::DstFold, |time, dates| {
        let message = format!("{time} exists twice on {dates} in {zone} and fires twice");
        (message, "choose another time, or the fold policy `first` or `last`")
    });
    gap.into_iter().chain(fold).collect()
}

/// Where the rules name a wall time that a change of the clock touches.
#[derive(Default)]
struct Hits {
    /// The first and the last such time of each change.
    walls: Vec<(i64, i64)>,
}

impl Hits {
    fn look(&mut self, rules: &[WallRule], (from, to): (i64, i64)) {
        if let (Some(first), Some(last)) = (first_wall(rules, from), last_wall(rules, to - 1))
            && first < to
        {
            self.walls.push((first, last));
        }
    }

    fn lint(self, code: LintCode, tell: impl Fn(&str, &str) -> (String, &'static str)) -> Option<Lint> {
        let first = *self.walls.first()?;
        let dates: Vec<Date> =
            self.walls.iter().map(|(wall, _)| date_of_day(wall.div_euclid(SECONDS_PER_DAY) as i32)).collect();
        let (first, last) = (clock(first.0), clock(first.1));
        let time = if first == last { first } else { format!("{first} (through {last})") };
        let (message, help) = tell(&time, &dates_in_words(&dates));
        Some(Lint { dates, ..finding(code, message, help) })
    }
}

fn clock(wall: i64) -> String {
    let second = wall.rem_euclid(SECONDS_PER_DAY);
    match (second / 3600, second / 60 % 60, second % 60) {
        (hour, minute, 0) => format!("{hour:02}:{minute:02}"),
        (hour, minute, second) => format!("{hour:02}:{minute:02}:{second:02}"),
    }
}
