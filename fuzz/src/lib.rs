//! What all targets share: a spec drawn from bytes, and the questions that every spec must survive.

use jiff::{SignedDuration, Timestamp};
use punctual_spec::{Calendar, DayOfMonthTerm, DayOfWeekTerm, Environment, Fold, Gap, Interval, Range, Spec};

/// Asks a spec everything, and checks what must hold for every answer.
pub fn ask(spec: &Spec, environment: &Environment) {
    let compiled = match spec.compile_in(environment) {
        Ok(compiled) => compiled,
        Err(error) => {
            assert!(!error.report().is_empty() && !error.to_string().is_empty());
            return;
        }
    };
    assert!(!spec.explain_in(environment).expect("it compiled").is_empty());
    let now = Timestamp::from_second(1_767_225_600).expect("2026");
    let _ = spec.lint(environment, now).expect("it compiled");
    let canonical = spec.canonical(environment).expect("it compiled");
    assert_eq!(canonical.canonical(environment).expect("it is canonical"), canonical);

    let ends = [Timestamp::MIN, Timestamp::MAX];
    assert_eq!(compiled.next(ends[0]).map(|o| o.nominal_time), compiled.first());
    assert_eq!(compiled.previous(ends[1]).map(|o| o.nominal_time), compiled.last());
    assert!(compiled.next(ends[1]).is_none() && compiled.previous(ends[0]).is_none());
    let mut at = now;
    for _ in 0..20 {
        let Some(next) = compiled.next(at) else {
            assert!(compiled.last().is_none_or(|last| last <= at));
            break;
        };
        assert!(next.nominal_time > at && next.due_time >= next.nominal_time);
        assert!(compiled.matches(next.nominal_time));
        assert!(compiled.previous(next.nominal_time).is_none_or(|previous| previous.nominal_time <= at));
        at = next.nominal_time;
    }
}

/// A stream of numbers from bytes; zero when they run out.
pub struct Bytes<'a>(std::slice::Iter<'a, u8>);

impl<'a> Bytes<'a> {
    /// Starts at the first byte.
    pub fn new(data: &'a [u8]) -> Bytes<'a> {
        Bytes(data.iter())
    }

    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn number(&mut self) -> i64 {
        let bytes = [(); 8].map(|()| self.byte());
        i64::from_be_bytes(bytes)
    }

    fn ranges(&mut self, min: i32, max: i32) -> Vec<Range> {
        (0..self.byte() % 4)
            .map(|_| match self.byte() % 8 {
                0 => Range {
                    start: self.number() as i32,
                    end: self.number() as i32,
                    step: self.number() as i32,
                },
                1 => Range::new(min, max, 1),
                _ => {
                    let start = min + i32::from(self.byte()) % (max - min + 1);
                    let end = start + i32::from(self.byte()) % (max - start + 1);
                    Range::new(start, end, i32::from(self.byte()) % 9 + 1)
                }
            })
            .collect()
    }

    fn calendar(&mut self) -> Calendar {
        let mut calendar = if self.byte() % 2 == 0 { Calendar::midnight() } else { Calendar::every_second() };
        let fields = self.byte();
        let mut field = |bit: u8, place: &mut Vec<Range>, min: i32, max: i32| {
            if fields >> bit & 1 == 1 {
                *place = self.ranges(min, max);
            }
        };
        field(0, &mut calendar.second, 0, 59);
        field(1, &mut calendar.minute, 0, 59);
        field(2, &mut calendar.hour, 0, 23);
        field(3, &mut calendar.day_of_month, 1, 31);
        field(4, &mut calendar.month, 1, 12);
        field(5, &mut calendar.day_of_week, 0, 6);
        field(6, &mut calendar.year, 2000, 2100);
        for _ in 0..self.byte() % 3 {
            calendar.day_of_month_terms.push(match self.byte() % 5 {
                0 => DayOfMonthTerm::LastDay { before: self.byte() },
                1 => DayOfMonthTerm::NearestWeekday { day: self.byte() },
                2 => DayOfMonthTerm::LastWeekday,
                3 => DayOfMonthTerm::BusinessDay { nth: self.byte() as i8 },
                _ => DayOfMonthTerm::NearestBusinessDay { day: self.byte() },
            });
            calendar.day_of_week_terms.push(match self.byte() % 2 {
                0 => DayOfWeekTerm::Nth { weekday: self.byte(), nth: self.byte() },
                _ => DayOfWeekTerm::Last { weekday: self.byte() },
            });
        }
        calendar
    }

    fn time(&mut self) -> Timestamp {
        match self.byte() % 4 {
            0 => Timestamp::from_second(self.number()).unwrap_or(Timestamp::MAX),
            1 => Timestamp::from_nanosecond(i128::from(self.number())).unwrap_or(Timestamp::MIN),
            _ => Timestamp::from_second(1_700_000_000 + self.number() % 400_000_000).expect("this century"),
        }
    }

    fn duration(&mut self) -> SignedDuration {
        match self.byte() % 4 {
            0 => SignedDuration::from_nanos(self.number()),
            1 => SignedDuration::from_secs(self.number()),
            _ => SignedDuration::from_secs(i64::from(self.byte()) * 256 + i64::from(self.byte())),
        }
    }

    /// A spec with a little of everything.
    pub fn spec(&mut self) -> Spec {
        let mut spec = Spec::new();
        for _ in 0..self.byte() % 3 {
            spec = spec.calendar(self.calendar());
        }
        for _ in 0..self.byte() % 3 {
            let interval = Interval::every(self.duration());
            spec = spec.interval(match self.byte() % 3 {
                0 => interval,
                1 => interval.phase(self.duration()),
                _ => interval.anchored_at(self.time()),
            });
        }
        for _ in 0..self.byte() % 3 {
            spec = spec.at(self.time());
        }
        for _ in 0..self.byte() % 3 {
            spec = spec.exclude(self.calendar());
        }
        let zones = ["", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Gaza", "America/Nuuk"];
        spec = spec.zone(zones[self.byte() as usize % zones.len()]);
        let choices = self.byte();
        if choices & 1 == 1 {
            spec = spec.start_time(self.time());
        }
        if choices & 2 == 2 {
            spec = spec.end_time(self.time());
        }
        if choices & 4 == 4 {
            spec = spec.jitter(self.duration());
        }
        let gap = if choices & 8 == 8 { Gap::After } else { Gap::Skip };
        spec.gap(gap).fold([Fold::Both, Fold::First, Fold::Last][(choices >> 4) as usize % 3])
    }
}
