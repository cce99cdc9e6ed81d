//! The words that options choose from, and what they mean to a spec.

use clap::ValueEnum;
use punctual_spec::{Dialect, Fold, Gap, Roll};

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DialectName {
    /// 5 fields, 6 with a year, 7 with a second too; both day fields must hold
    Temporal,
    /// 5 fields; one of both day fields is enough
    Unix,
    /// 6 fields with the second first, 7 with a year; knows L, W, # and business days
    Quartz,
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Dialect {
        match name {
            DialectName::Temporal => Dialect::Temporal,
            DialectName::Unix => Dialect::Unix,
            DialectName::Quartz => Dialect::Quartz,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum GapName {
    /// It does not fire that day
    Skip,
    /// It fires at the first instant after the gap
    After,
}

impl From<GapName> for Gap {
    fn from(name: GapName) -> Gap {
        match name {
            GapName::Skip => Gap::Skip,
            GapName::After => Gap::After,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FoldName {
    /// It fires both times
    Both,
    /// It fires the first time only
    First,
    /// It fires the last time only
    Last,
}

impl From<FoldName> for Fold {
    fn from(name: FoldName) -> Fold {
        match name {
            FoldName::Both => Fold::Both,
            FoldName::First => Fold::First,
            FoldName::Last => Fold::Last,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum RollName {
    /// It does not fire
    Skip,
    /// It fires on the next date that is allowed
    Forward,
    /// It fires on the date before that is allowed
    Back,
}

impl From<RollName> for Roll {
    fn from(name: RollName) -> Roll {
        match name {
            RollName::Skip => Roll::Skip,
            RollName::Forward => Roll::Forward,
            RollName::Back => Roll::Back,
        }
    }
}
