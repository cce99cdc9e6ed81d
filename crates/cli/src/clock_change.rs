//! Marks occurrences that a change of the clock touches.

use anyhow::Result;
use jiff::Timestamp;
use jiff::tz::Offset;
use punctual_spec::{CompiledSpec, Gap, Repeat};

use crate::local_zone::LocalZone;
use crate::output::offset_text;
use crate::request::Request;

/// Marks occurrences, asked in order. A mark belongs to the occurrence: it does not depend on where a list begins.
pub struct ClockChanges<'a> {
    zone: &'a LocalZone,
    compiled: &'a CompiledSpec,
    /// The same spec with gaps skipped, if it moves times out of them.
    unmoved: Option<CompiledSpec>,
    /// The offset of the occurrence before.
    offset_before: Option<Offset>,
}

impl<'a> ClockChanges<'a> {
    pub fn new(request: &'a Request) -> Result<ClockChanges<'a>> {
        let unmoved = match request.spec.gap {
            Gap::Skip => None,
            Gap::After => Some(request.spec.clone().gap(Gap::Skip).compile_in(&request.environment)?),
        };
        Ok(ClockChanges { zone: &request.zone, compiled: &request.compiled, unmoved, offset_before: None })
    }

    /// What a change of the clock did to this occurrence; empty if nothing.
    pub fn mark(&mut self, nominal_time: Timestamp) -> String {
        let offset = self.zone.offset(nominal_time);
        let before = self.offset_before.or_else(|| {
            self.compiled.previous(nominal_time).map(|before| self.zone.offset(before.nominal_time))
        });
        self.offset_before = Some(offset);

        let mut marks = Vec::new();
        if self.unmoved.as_ref().is_some_and(|unmoved| !unmoved.matches(nominal_time)) {
            marks.push("after gap".to_owned());
        }
        match self.compiled.zone().repeat_at(nominal_time) {
            Some(Repeat::First) => marks.push("repeated (1st)".to_owned()),
            Some(Repeat::Last) => marks.push("repeated (2nd)".to_owned()),
            None => {}
        }
        if let Some(before) = before.filter(|before| *before != offset) {
            marks.push(format!("offset {} -> {}", offset_text(before), offset_text(offset)));
        }
        marks.join(", ")
    }
}
