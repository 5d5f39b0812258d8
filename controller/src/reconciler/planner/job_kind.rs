//! Plans the status of a `JobKind`.

use crate::reconciler::plan::{Action, Plan};
use crate::reconciler::state::View;
use crate::reconciler::status::job_kind::build_job_kind_status_write;

pub(crate) fn plan_job_kind<'a>(view: View<'a>, name: &str) -> Plan<'a> {
    if build_job_kind_status_write(view, name).is_some() {
        Plan::write(Action::JobKindStatus)
    } else {
        Plan::NOTHING
    }
}
