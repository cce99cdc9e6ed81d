//! What the host of a virtual machine takes: a core that is given to others for a tenth of a second makes starts late by as
//! much, whatever we do. Who reads our figures has to know how often that was.

use std::fs;

/// Time of all cores since the machine started, in ticks: all of it, and what others got.
#[derive(Clone, Copy)]
pub struct Cores {
    all: u64,
    stolen: u64,
}

impl Cores {
    /// Nothing where the system does not tell.
    pub fn now() -> Option<Cores> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        // user, nice, system, idle, waiting, two kinds of interrupts, stolen; what follows is part of the first two.
        let ticks = text.lines().next()?.split_whitespace().skip(1).take(8).map(str::parse);
        let ticks: Vec<u64> = ticks.collect::<Result<_, _>>().ok()?;
        Some(Cores { all: ticks.iter().sum(), stolen: *ticks.get(7)? })
    }

    /// Which share of them others got since then.
    pub fn stolen_since(before: Option<Cores>) -> f64 {
        match (before, Cores::now()) {
            (Some(before), Some(now)) if now.all > before.all => {
                now.stolen.saturating_sub(before.stolen) as f64 / (now.all - before.all) as f64
            }
            _ => 0.0,
        }
    }
}
