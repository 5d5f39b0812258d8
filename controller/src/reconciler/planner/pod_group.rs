//! Plans groups of pods: a group gets a workload when all its pods exist, and its pods start and stop with it.

use super::orphan::READ_PAUSE_MS;
use super::pod_node::plan_node;
use super::suspension::plan_suspension;
use crate::job_adapters::GroupClaim;
use crate::key::JobKey;
use crate::reconciler::job_sync::{admission_mismatch, admitted_placements, can_start};
use crate::reconciler::model::{JobSource, TrackedJob, TrackedWorkload};
use crate::reconciler::plan::{Action, JobAction, Plan, PodGroupReport};
use crate::reconciler::pod_groups::member_role::{MemberProblem, MemberRole};
use crate::reconciler::state::View;
use crate::reconciler::status::conditions::has_status;
use lockkeeper_api::labels;

/// How long the pods of a group may take to be created before a pod that waits for others says so, in milliseconds.
const REPORT_DELAY_MS: i64 = 3_000;

/// Plans a group: it gets a workload.
pub(crate) fn plan_group<'a>(view: View<'a>, key: &JobKey, tracked: &TrackedJob) -> Plan<'a> {
    let group = &*tracked.view;
    let has_workload = view
        .model
        .workloads
        .contains_key(&group.workload_name(key.kind));
    let is_due = !has_workload
        && tracked.workload_created_at.is_none()
        && tracked.source == JobSource::Watch
        && group.is_stopped()
        && !group.is_incomplete;
    Plan {
        action: is_due.then_some(Action::Job(JobAction::CreateWorkload)),
        replan_at_ms: view.model.pod_groups.next_change_ms(&key.name),
    }
}

/// Plans a pod of a group.
pub(crate) fn plan_member<'a>(
    view: View<'a>,
    key: &JobKey,
    tracked: &TrackedJob,
    claim: &GroupClaim,
) -> Plan<'a> {
    let pod = &*tracked.view;
    let read_at_ms = match tracked.source {
        JobSource::Watch | JobSource::Covered => None,
        JobSource::Unread => return write(JobAction::ReadPod),
        JobSource::Read(at_ms) => Some(at_ms.saturating_add(READ_PAUSE_MS)),
    };
    // It does not run again, and is forgotten with the quota of its group.
    if pod.result.is_some() {
        return Plan::NOTHING;
    }
    if read_at_ms.is_some_and(|at_ms| at_ms <= view.now_ms) {
        return write(JobAction::ReadPod);
    }
    if pod.is_deleted {
        return read_at_ms.map_or(Plan::NOTHING, Plan::at);
    }
    let may_run = !pod.is_suspended || tracked.tracker.outcome_unknown;
    if read_at_ms.is_some() {
        // It is no longer managed: it is deleted, and keeps its quota until then.
        return if may_run {
            plan_suspension(view, key, tracked)
        } else {
            read_at_ms.map_or(Plan::NOTHING, Plan::at)
        };
    }
    let own = view.model.workload_of(key, pod);
    let own = own.filter(|it| it.object.metadata.deletion_timestamp.is_none());
    let role = view.model.pod_groups.role(&claim.group, &key.name);
    let pod_set = match role {
        Some(MemberRole::Member(name)) => {
            let groups = &view.model.pod_groups;
            Some((name.as_str(), groups.position(&claim.group, &key.name)))
        }
        _ => None,
    };
    if own.is_none_or(|it| it.tracker.is_settled())
        && let Some(action) = plan_node(pod, own, pod_set)
    {
        return write(action);
    }
    match (own, role) {
        // The admission may be written or released without the watch having shown it.
        (Some(it), _) if !it.tracker.is_settled() => Plan::NOTHING,
        (Some(it), Some(MemberRole::Member(pod_set))) if it.should_run() => {
            if pod.is_suspended {
                plan_start(view, claim, it, pod_set)
            } else {
                Plan::NOTHING
            }
        }
        _ if may_run => plan_suspension(view, key, tracked),
        _ => plan_report(view, claim, own, role),
    }
}

const fn write<'a>(action: JobAction) -> Plan<'a> {
    Plan::write(Action::Job(action))
}

/// Starts a pod. The first pods of a group start only when all exist, as they were admitted.
fn plan_start<'a>(
    view: View<'a>,
    claim: &GroupClaim,
    workload: &TrackedWorkload,
    pod_set: &str,
) -> Plan<'a> {
    let Some(group) = view.model.jobs.get(&claim.key()) else {
        return Plan::NOTHING;
    };
    let group = &*group.view;
    let is_admitted = if group.is_suspended {
        can_start(group, workload)
    } else {
        admission_mismatch(group, workload).is_none()
    };
    if !is_admitted {
        return Plan::NOTHING;
    }
    let placements = admitted_placements(view.cluster, group, workload);
    let placement = group
        .pod_sets
        .iter()
        .zip(placements)
        .find(|(it, _)| it.name == pod_set);
    let Some((_, mut placement)) = placement else {
        return Plan::NOTHING;
    };
    placement.count = None;
    // The report is corrected first: after the start its reason is over.
    if claim.reported.is_some() {
        return write(JobAction::ReportPodGroup(member_report()));
    }
    write(JobAction::StartMember(placement, pod_set.to_owned()))
}

/// Reports why a pod that waits does not start with its group, and corrects the report when it does.
fn plan_report<'a>(
    view: View<'a>,
    claim: &GroupClaim,
    workload: Option<&TrackedWorkload>,
    role: Option<&MemberRole>,
) -> Plan<'a> {
    let is_finished = workload.is_some_and(|it| has_status(&it.object, "Finished", "True"));
    let group = view.model.jobs.get(&claim.key());
    let is_incomplete = group.is_some_and(|it| it.view.is_incomplete);
    let report = match role {
        _ if is_finished => finished_report(),
        None => return Plan::NOTHING,
        Some(MemberRole::Excluded(MemberProblem::NoPodGroup)) => {
            if let Some(at_ms) = report_delay_end_ms(view, claim) {
                return Plan::at(at_ms);
            }
            problem_report(MemberProblem::NoPodGroup)
        }
        Some(MemberRole::Excluded(problem)) => problem_report(*problem),
        Some(MemberRole::Member(_)) if is_incomplete => {
            if let Some(at_ms) = report_delay_end_ms(view, claim) {
                return Plan::at(at_ms);
            }
            incomplete_report(claim.needed)
        }
        Some(MemberRole::Member(_)) => member_report(),
    };
    let is_reported = match &claim.reported {
        None => report.is_member,
        Some(message) => !report.is_member && *message == report.message,
    };
    if is_reported {
        Plan::NOTHING
    } else {
        write(JobAction::ReportPodGroup(report))
    }
}

/// When a pod that waits for other objects says so, in milliseconds since 1970; `None` if it is time.
fn report_delay_end_ms(view: View<'_>, claim: &GroupClaim) -> Option<i64> {
    let created_ms = claim.created_s.saturating_mul(1000);
    let at_ms = created_ms.saturating_add(REPORT_DELAY_MS);
    (at_ms > view.now_ms).then_some(at_ms)
}

fn member_report() -> PodGroupReport {
    PodGroupReport {
        is_member: true,
        reason: "PodGroupComplete",
        message: "The pod starts with its group".to_owned(),
    }
}

fn finished_report() -> PodGroupReport {
    excluded(
        "PodGroupFinished",
        "The group has finished; delete its pods before others of this name start, or use another name".to_owned(),
    )
}

/// The number of pods that exist is left out: each new pod would cost a write of every other.
fn incomplete_report(needed: i32) -> PodGroupReport {
    excluded(
        "PodGroupIncomplete",
        format!("Fewer pods of the group exist than the {needed} that start together"),
    )
}

fn problem_report(problem: MemberProblem) -> PodGroupReport {
    match problem {
        MemberProblem::NoTotal => excluded(
            "PodGroupInvalid",
            format!(
                "The annotation {} of the first pod of the group is missing, or no positive number",
                labels::POD_GROUP_TOTAL_COUNT
            ),
        ),
        MemberProblem::NoPodGroup => excluded(
            "PodGroupNotFound",
            "The PodGroup in spec.schedulingGroup does not exist".to_owned(),
        ),
        MemberProblem::Differs(field) => excluded(
            "PodGroupInvalid",
            format!("The {field} differs from that of the first pod of the group"),
        ),
        MemberProblem::Full => excluded(
            "PodGroupFull",
            "All pods of the group exist without it, or the group was admitted without a place for its requests and placement"
                .to_owned(),
        ),
    }
}

const fn excluded(reason: &'static str, message: String) -> PodGroupReport {
    PodGroupReport {
        is_member: false,
        reason,
        message,
    }
}
