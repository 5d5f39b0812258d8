//! Plans: the next write of an object, with its data, and the time to plan again.

use super::adoption::AdoptionStep;
use super::model::PendingReason;
use super::output::WritePurpose;
use super::pending_decision::{AdmissionDecision, PlacementStep, PreemptionDecision};
use crate::job_adapters::{JobResult, JobView, PodPlacement};
use crate::key::JobKey;
use lockkeeper_api::workload::ReclaimablePod;
use lockkeeper_preemption::requeue::LifecycleStep;

/// The next write of an object, if any, and when to plan it again.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) action: Option<Action<'a>>,
    /// In milliseconds since 1970; `None` if only an input changes the plan.
    pub(super) replan_at_ms: Option<i64>,
}

impl<'a> Plan<'a> {
    pub(super) const NOTHING: Self = Self {
        action: None,
        replan_at_ms: None,
    };

    pub(super) const fn write(action: Action<'a>) -> Self {
        Self {
            action: Some(action),
            replan_at_ms: None,
        }
    }

    pub(super) const fn at(at_ms: i64) -> Self {
        Self {
            action: None,
            replan_at_ms: Some(at_ms),
        }
    }
}

/// A planned write. It borrows its data from the model: a plan is either executed at once or dropped.
#[derive(Debug)]
pub(super) enum Action<'a> {
    Workload(WorkloadAction<'a>),
    Job(JobAction),
    /// The status of a ClusterQueue, Cohort or LocalQueue. The status is computed when the write is built,
    /// because that takes time in proportion to the workloads.
    QueueStatus,
    /// The status of a `JobKind`.
    JobKindStatus,
    RemoveFinalizer,
    /// Restore the finalizer of an object in use.
    AddFinalizer,
    Event,
    VictimPod(VictimPodAction),
}

/// A write of a pod that is evicted for a nominated workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VictimPodAction {
    /// Through the Eviction API.
    Evict,
    /// Add the condition that states the reason of its deletion.
    MarkDisrupted,
    /// Delete it, although a disruption budget is violated.
    Delete,
    /// Mark it, so that another component deletes it.
    SoftEvict,
}

impl Action<'_> {
    pub(super) const fn purpose(&self) -> WritePurpose {
        match self {
            Self::Workload(action) => action.purpose(),
            Self::Job(action) => action.purpose(),
            Self::QueueStatus => WritePurpose::QueueStatus,
            Self::JobKindStatus => WritePurpose::JobKindStatus,
            Self::RemoveFinalizer | Self::AddFinalizer => WritePurpose::Finalizer,
            Self::Event => WritePurpose::Event,
            Self::VictimPod(VictimPodAction::MarkDisrupted) => WritePurpose::MarkVictimPod,
            Self::VictimPod(VictimPodAction::SoftEvict) => WritePurpose::SoftEvictPod,
            Self::VictimPod(_) => WritePurpose::EvictPod,
        }
    }
}

/// A write of a workload.
#[derive(Debug)]
pub(super) enum WorkloadAction<'a> {
    /// The workload has no job, or the job's immutable fields differ.
    Delete,
    /// The spec follows the job.
    Update(&'a JobKey, &'a JobView),
    /// Read the templates of the job for that, because they are not kept.
    ReadTemplates(&'a JobKey, &'a JobView),
    /// A step of `lockkeeper adopt`.
    Adopt(AdoptionStep),
    Finish(&'a JobResult),
    Admit(&'a AdmissionDecision),
    /// The next step of a workload with nominated nodes.
    Place(&'a PlacementStep),
    /// Evict for the quota of a preemptor.
    Preempt(&'a PreemptionDecision),
    /// Evict because the job has changed; with the message.
    EvictForJobChange(String),
    /// Read the state of the job, which is not watched, or search for its pods.
    ReadJob,
    /// Report that the quota was not released within the bound.
    ReportStuckEviction,
    /// A step of the lifecycle that depends on no decision.
    Lifecycle(LifecycleStep),
    /// Mark for deactivation: the workload has run for its maximum execution time.
    ExceedExecutionTime,
    ReleaseQuota,
    /// Release the quota of pods that have succeeded.
    ReclaimPods(Vec<ReclaimablePod>),
    /// Whether all pods of the job are ready.
    PodsReady(bool),
    PendingReason(PendingReason),
    /// Report that a pod has another priority than its workload.
    ReportPodPriority,
}

impl WorkloadAction<'_> {
    pub(super) const fn purpose(&self) -> WritePurpose {
        match self {
            Self::Delete => WritePurpose::DeleteWorkload,
            Self::Update(..) | Self::Adopt(_) => WritePurpose::UpdateWorkload,
            Self::Finish(_) => WritePurpose::Finish,
            Self::Admit(decision) if decision.is_nominated() => WritePurpose::NominateNodes,
            Self::Admit(_) | Self::Place(PlacementStep::Admit(_)) => WritePurpose::Admit,
            Self::Place(PlacementStep::Nominate { .. }) => WritePurpose::NominateNodes,
            Self::Preempt(_)
            | Self::EvictForJobChange(_)
            | Self::Lifecycle(LifecycleStep::Evict(_)) => WritePurpose::Evict,
            Self::ExceedExecutionTime
            | Self::Lifecycle(
                LifecycleStep::SetDeactivationTarget(_) | LifecycleStep::Deactivate,
            ) => WritePurpose::Deactivate,
            Self::Lifecycle(_) => WritePurpose::Requeue,
            Self::ReadJob => WritePurpose::ReadJob,
            Self::ReadTemplates(..) => WritePurpose::ReadTemplates,
            Self::ReportStuckEviction => WritePurpose::StuckEviction,
            Self::ReportPodPriority => WritePurpose::PodPriority,
            Self::ReleaseQuota | Self::Place(PlacementStep::Withdraw(_)) => WritePurpose::Release,
            Self::ReclaimPods(_) => WritePurpose::ReclaimPods,
            Self::PodsReady(_) => WritePurpose::PodsReady,
            Self::PendingReason(_) => WritePurpose::PendingReason,
        }
    }
}

/// A write of a job.
#[derive(Debug)]
pub(super) enum JobAction {
    CreateWorkload,
    /// Read the templates that a write needs, because they are not kept.
    ReadTemplates(TemplateUse),
    /// Start with the placement of the admission.
    Start(Vec<PodPlacement>),
    /// Start a job that its parent has created, as it is.
    StartCovered,
    Suspend,
    /// Start a pod of a group in this pod set of its workload.
    StartMember(PodPlacement, String),
    /// Read a pod of a group that has left the watch.
    ReadPod,
    /// Report why a pod does not start with its group.
    ReportPodGroup(PodGroupReport),
    /// Direct a pod that waits to this node; `None` removes the node.
    NominateNode(Option<String>),
    /// Add the condition to a pod that its controller reads when the pod is deleted.
    MarkDisrupted,
    Delete,
    /// Mark a pod, so that another component deletes it.
    SoftEvict,
    /// Remove the start time of a suspended job, so that its pod templates can be changed.
    ResetStartTime,
    /// Restore the pod templates of a stopped job.
    RestorePlacement,
}

/// The condition [`lockkeeper_api::labels::POD_GROUP_CONDITION`] of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodGroupReport {
    /// Whether the pod starts with its group.
    pub(super) is_member: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// What the templates of a job are needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TemplateUse {
    /// Its workload.
    Workload,
    /// Its start or stop, which others wait for.
    Placement,
}

impl JobAction {
    pub(super) const fn purpose(&self) -> WritePurpose {
        match self {
            Self::CreateWorkload => WritePurpose::CreateWorkload,
            Self::ReadTemplates(TemplateUse::Workload) => WritePurpose::ReadTemplates,
            Self::ReadTemplates(TemplateUse::Placement) => WritePurpose::ReadPlacement,
            Self::Start(_) | Self::StartCovered | Self::StartMember(..) => WritePurpose::StartJob,
            Self::ReadPod => WritePurpose::ReadPod,
            Self::ReportPodGroup(report) if report.is_member => WritePurpose::ReportPodGroup,
            Self::ReportPodGroup(_) => WritePurpose::PodGroupProblem,
            Self::NominateNode(_) => WritePurpose::NominatePodNode,
            Self::Suspend => WritePurpose::SuspendJob,
            Self::MarkDisrupted | Self::Delete => WritePurpose::StopPod,
            Self::SoftEvict => WritePurpose::SoftEvictPod,
            Self::ResetStartTime => WritePurpose::ResetJob,
            Self::RestorePlacement => WritePurpose::RestoreJob,
        }
    }
}
