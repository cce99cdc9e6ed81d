//! Specs for the wire.

use anyhow::{Result, ensure};
use punctual_api::v1;
use punctual_spec::{Cron, Dialect, Fold, Gap, Spec};

use super::time;
use crate::fault;
use crate::local_zone::LocalZone;

/// A spec as the server takes it. Its calendars are texts and its dates are its own: the command line makes no others.
pub fn to_wire(spec: &Spec) -> Result<v1::Spec> {
    ensure!(
        spec.calendar_rules.is_empty() && spec.business_calendar.is_none(),
        fault::new(
            "--only-dates, --business-closed and --roll are for previews: the server has no calendars of dates yet",
            "--exclude-date and --exclude-dates without --roll can be stored",
        )
    );
    Ok(v1::Spec {
        calendar_texts: spec.calendar_texts.iter().map(calendar_text).collect(),
        crons: spec.crons.iter().map(cron).collect(),
        intervals: spec.intervals.iter().map(interval).collect(),
        times: spec.times.iter().copied().map(time::to_wire).collect(),
        exclusion_texts: spec.exclusion_texts.iter().map(calendar_text).collect(),
        exclusion_crons: spec.exclusion_crons.iter().map(cron).collect(),
        exclusion_dates: spec.exclusion_dates.iter().map(ToString::to_string).collect(),
        start_time: spec.start_time.map(time::to_wire),
        end_time: spec.end_time.map(time::to_wire),
        jitter: (!spec.jitter.is_zero()).then(|| time::duration_to_wire(spec.jitter)),
        zone: spec.zone.clone(),
        zone_data: spec.zone_data.clone(),
        gap: match spec.gap {
            Gap::Skip => v1::gap::Policy::Skip,
            Gap::After => v1::gap::Policy::After,
        }
        .into(),
        fold: match spec.fold {
            Fold::Both => v1::fold::Policy::Both,
            Fold::First => v1::fold::Policy::First,
            Fold::Last => v1::fold::Policy::Last,
        }
        .into(),
        ..v1::Spec::default()
    })
}

fn calendar_text(text: &punctual_spec::CalendarText) -> v1::CalendarText {
    v1::CalendarText {
        second: text.second.clone(),
        minute: text.minute.clone(),
        hour: text.hour.clone(),
        day_of_month: text.day_of_month.clone(),
        month: text.month.clone(),
        day_of_week: text.day_of_week.clone(),
        year: text.year.clone(),
        comment: text.comment.clone(),
    }
}

fn cron(cron: &Cron) -> v1::Cron {
    let dialect = match cron.dialect {
        Dialect::Unix => v1::dialect::Name::Unix,
        Dialect::Quartz => v1::dialect::Name::Quartz,
        _ => v1::dialect::Name::Temporal,
    };
    v1::Cron { text: cron.text.clone(), dialect: dialect.into() }
}

fn interval(interval: &punctual_spec::Interval) -> v1::Interval {
    v1::Interval {
        every: Some(time::duration_to_wire(interval.every)),
        phase: (!interval.phase.is_zero()).then(|| time::duration_to_wire(interval.phase)),
        anchor: interval.anchor.map(time::to_wire),
    }
}

/// The zone that a stored spec speaks of; UTC where it names none.
pub fn zone(spec: Option<&v1::Spec>) -> LocalZone {
    let Some(spec) = spec else { return LocalZone::utc() };
    let of_cron = || spec.crons.iter().find_map(|cron| cron_zone(&cron.text)).unwrap_or("UTC");
    let name = if spec.zone.is_empty() { of_cron() } else { &spec.zone };
    let zone = match &spec.zone_data {
        Some(bytes) => LocalZone::from_tzif(name, bytes),
        None => LocalZone::named(name),
    };
    zone.unwrap_or_else(|_| LocalZone::utc())
}

fn cron_zone(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let rest = text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ="))?;
    rest.split_whitespace().next()
}
