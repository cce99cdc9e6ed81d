//! What a schedule starts, kept as the bytes that came.

use prost::DecodeError;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType};
use prost::{Message, Name};

use crate::fields::Fields;
use crate::temporal::api::workflow::v1::NewWorkflowExecutionInfo;

/// `temporal.api.schedule.v1.ScheduleAction`. A client that is newer than this release may say more than this release
/// knows; whoever describes the schedule, and updates it with what was described, must not lose that.
///
/// ```
/// use prost::Message;
/// use punctual_temporal_api::ScheduleAction;
/// use punctual_temporal_api::temporal::api::workflow::v1::NewWorkflowExecutionInfo;
///
/// let info = NewWorkflowExecutionInfo { workflow_id: "report".into(), ..Default::default() };
/// let action = ScheduleAction::start_workflow(&info);
/// let again = ScheduleAction::decode(action.encode_to_vec().as_slice())?;
/// assert_eq!(again.started_workflow()?, Some(info));
/// # Ok::<(), prost::DecodeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleAction(pub Fields);

/// The number of the only kind of action there is.
const START_WORKFLOW: u32 = 1;

impl ScheduleAction {
    /// An action that starts this workflow.
    pub fn start_workflow(info: &NewWorkflowExecutionInfo) -> ScheduleAction {
        let mut action = ScheduleAction::default();
        action.0.put(START_WORKFLOW, info.encode_to_vec());
        action
    }

    /// What it starts, as far as this release understands it; nothing if it is of another kind.
    pub fn started_workflow(&self) -> Result<Option<NewWorkflowExecutionInfo>, DecodeError> {
        self.0.content(START_WORKFLOW).map(|bytes| NewWorkflowExecutionInfo::decode(&*bytes)).transpose()
    }

    /// Changes fields of what it starts and leaves all others as they came.
    pub fn edit_workflow(&mut self, edit: impl FnOnce(&mut Fields)) -> Result<(), DecodeError> {
        if let Some(bytes) = self.0.content(START_WORKFLOW) {
            let mut fields = Fields::read(&bytes)?;
            edit(&mut fields);
            self.0.put(START_WORKFLOW, fields.bytes());
        }
        Ok(())
    }
}

impl Message for ScheduleAction {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        self.0.write(buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        _ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        self.0.take(tag, wire_type, buf)
    }

    fn encoded_len(&self) -> usize {
        self.0.length()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

impl Name for ScheduleAction {
    const NAME: &'static str = "ScheduleAction";
    const PACKAGE: &'static str = "temporal.api.schedule.v1";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::api::schedule::v1::Schedule;

    /// A newer contract: another kind of action, and a field that a workflow does not have today.
    fn newer() -> Vec<u8> {
        let mut workflow = Fields::default();
        workflow.put(1, b"report".to_vec());
        workflow.put_number(9000, 7);
        let mut action = Fields::default();
        action.put(1, workflow.bytes());
        action.put(77, b"from the future".to_vec());
        action.bytes()
    }

    #[test]
    fn what_is_not_known_survives() {
        let action = ScheduleAction::decode(newer().as_slice()).unwrap();
        assert_eq!(action.started_workflow().unwrap().unwrap().workflow_id, "report");
        let schedule = Schedule { action: Some(action), ..Default::default() };
        let again = Schedule::decode(schedule.encode_to_vec().as_slice()).unwrap();
        assert_eq!(again.action.unwrap().encode_to_vec(), newer());
    }

    #[test]
    fn an_edit_leaves_the_rest_as_it_came() {
        let mut action = ScheduleAction::decode(newer().as_slice()).unwrap();
        action.edit_workflow(|fields| fields.put(1, b"other".to_vec())).unwrap();
        let again = ScheduleAction::decode(action.encode_to_vec().as_slice()).unwrap();
        assert_eq!(again.started_workflow().unwrap().unwrap().workflow_id, "other");
        assert_eq!(again.encode_to_vec().len(), newer().len() - 1);
    }
}
