//! Cuts exclusions out of rules. A rule is a product of days, hours, minutes and seconds; what is left of a
//! product after taking another one away is a few products again.

use super::Meter;
use crate::days::DaySet;
use crate::error::Error;
use crate::time_of_day::TimeOfDay;
use crate::wall::WallRule;

/// The rules without the seconds of the exclusions.
pub(super) fn cut(
    mut rules: Vec<WallRule>,
    excluded: &[WallRule],
    meter: &mut Meter,
) -> Result<Vec<WallRule>, Error> {
    for exclusion in excluded {
        let mut left = Vec::with_capacity(rules.len());
        for rule in rules {
            meter.step(1, "cutting the exclusions out of the calendars")?;
            if rule.time.intersect(exclusion.time).is_empty() {
                left.push(rule);
            } else {
                let before = left.len();
                cut_one(&rule, exclusion, &mut left);
                for part in &left[before..] {
                    meter.days(&part.days, "cutting the exclusions out of the calendars")?;
                }
            }
            meter.rules(left.len())?;
        }
        rules = left;
    }
    Ok(rules)
}

fn cut_one(rule: &WallRule, exclusion: &WallRule, left: &mut Vec<WallRule>) {
    let shared_days = rule.days.intersect(&exclusion.days);
    if shared_days.is_empty() {
        left.push(rule.clone());
        return;
    }
    let mut keep = |days: DaySet, time: TimeOfDay| {
        let rule = WallRule { days, time };
        if !rule.is_empty() {
            left.push(rule);
        }
    };
    keep(rule.days.subtract(&exclusion.days), rule.time);
    let (mine, theirs) = (rule.time, exclusion.time);
    let both = mine.intersect(theirs);
    keep(shared_days.clone(), TimeOfDay { hours: mine.hours & !theirs.hours, ..mine });
    keep(
        shared_days.clone(),
        TimeOfDay { hours: both.hours, minutes: mine.minutes & !theirs.minutes, ..mine },
    );
    keep(shared_days, TimeOfDay { seconds: mine.seconds & !theirs.seconds, ..both });
}
