//! `resume`: the time spent paused is skipped, or caught up.

use super::{Answer, Command};
use crate::generator::last_due;
use crate::ledger::{NotStarted, Verdict};
use crate::mutant::{self, Mutant};
use crate::note::Note;
use crate::rejection::Rejection;
use crate::schedule::OnResume;
use crate::transition::Transition;
use crate::tree::ScheduleTree;

/// The end of a pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// What becomes of the time spent paused; nothing means the schedule's policy.
    pub on_resume: Option<OnResume>,
}

impl ScheduleTree {
    /// Resumes the schedule; one that is not paused stays as it is.
    pub fn resume(&mut self, tx: &mut Transition<'_>, command: Command<Resume>) -> Result<Answer, Rejection> {
        self.once(tx, command, |tree, tx, _, resume| {
            let on_resume = resume.on_resume.unwrap_or(tree.scheduler.policies().on_resume);
            tree.end_pause(tx, on_resume);
            Ok(Vec::new())
        })
    }

    /// A pause with an end is over when its time has come.
    pub(crate) fn resume_when_due(&mut self, tx: &mut Transition<'_>) {
        let until = self.scheduler.pause.as_ref().and_then(|pause| pause.until);
        if until.is_some_and(|until| until <= tx.now()) {
            let on_resume = self.scheduler.policies().on_resume;
            self.end_pause(tx, on_resume);
            self.scheduler.bump_revision();
        }
    }

    pub(super) fn end_pause(&mut self, tx: &mut Transition<'_>, on_resume: OnResume) {
        if self.scheduler.pause.is_none() {
            return;
        }
        if on_resume == OnResume::Skip && !mutant::is(Mutant::ResumeForgetsThePause) {
            self.pass_by(tx, NotStarted::Paused);
        }
        self.scheduler.pause = None;
        self.scheduler.failures_in_a_row = 0;
        tx.changed().state = true;
        tx.note(Note::Resumed);
    }

    /// Decides everything that came due while nothing was taken, as one range.
    pub(super) fn pass_by(&mut self, tx: &mut Transition<'_>, why: NotStarted) {
        if let Some(last) = last_due(&self.scheduler.definition.compiled, tx.now()) {
            let verdict = Verdict::NotStarted(why);
            self.generator.decide_through(tx, &mut self.scheduler, last.nominal_time, verdict);
        }
    }
}
