//! Labels, annotations and finalizers that carry meaning.

/// On a Job or pod: the LocalQueue it is submitted to.
pub const QUEUE_NAME: &str = "lockkeeper.dev/queue-name";

/// On a Job or pod: the class that gives its scheduling priority.
pub const PRIORITY_CLASS: &str = "lockkeeper.dev/priority-class";

/// On a Job or pod: the class that gives its preemption priority.
pub const PREEMPTION_PRIORITY_CLASS: &str = "lockkeeper.dev/preemption-priority-class";

/// On a Job or pod: the unit of disruption, `Pod` or `PodGroup`.
pub const DISRUPTION_MODE: &str = "lockkeeper.dev/disruption-mode";

/// On a Job or pod: how long it may run once admitted, in seconds.
pub const MAX_EXECUTION_TIME: &str = "lockkeeper.dev/max-exec-time-seconds";

/// An annotation on a Job: the minimum parallelism for partial admission, when not all its pods fit.
pub const MIN_PARALLELISM: &str = "lockkeeper.dev/job-min-parallelism";

/// An annotation on a Job that was started: its pods' number and placement before those of its flavors were added, as
/// JSON. It is removed when the Job has stopped and they are restored.
pub const ORIGINAL_PLACEMENT: &str = "lockkeeper.dev/original-placement";

/// On a Workload that the controller created: the uid of its job. It remains if the owner reference is removed, for
/// instance when the job is deleted without its dependents. On a pod of a group that the controller has started: the uid in
/// the Workload of its group, so that the pod is found without its queue label.
pub const JOB_UID: &str = "lockkeeper.dev/job-uid";

/// An annotation of `lockkeeper adopt`, which imports a running Job. On the Workload: how far the import is, `Requested` or
/// `Observed`; the controller removes it when the Job has its queue label. On the Job: its own uid.
pub const ADOPTION: &str = "lockkeeper.dev/adoption";

/// The scheduling gate of a pod with the queue label. The controller removes it when the pod is admitted.
pub const ADMISSION_GATE: &str = "lockkeeper.dev/admission";

/// On a pod with the queue label: the name of the group that it is queued with. On the Workload of a group: its name.
pub const POD_GROUP_NAME: &str = "lockkeeper.dev/pod-group-name";

/// An annotation on a pod of a group: how many pods the group has.
pub const POD_GROUP_TOTAL_COUNT: &str = "lockkeeper.dev/pod-group-total-count";

/// An annotation that the controller adds to a pod of a group when it starts: the pod set of the Workload.
pub const POD_SET: &str = "lockkeeper.dev/pod-set";

/// The condition of a pod that its group does not start, with the reason.
pub const POD_GROUP_CONDITION: &str = "lockkeeper.dev/PodGroup";

/// The label of lightweight coscheduling with the name of a pod's group.
pub const COSCHEDULING_NAME: &str = "pod-group.scheduling.sigs.k8s.io/name";

/// The label of lightweight coscheduling with the least pods of a group.
pub const COSCHEDULING_MIN_AVAILABLE: &str = "pod-group.scheduling.sigs.k8s.io/min-available";

/// Koordinator's annotation with the name of a pod's gang.
pub const GANG_NAME: &str = "gang.scheduling.koordinator.sh/name";

/// Koordinator's annotation with the least pods of a gang.
pub const GANG_MIN_AVAILABLE: &str = "gang.scheduling.koordinator.sh/min-available";

/// Koordinator's annotation with the number of pods of a gang; without it, the least.
pub const GANG_TOTAL: &str = "gang.scheduling.koordinator.sh/total-number";

/// The label of a pod of a LeaderWorkerSet with the set's name.
pub const LEADER_WORKER_SET: &str = "leaderworkerset.sigs.k8s.io/name";

/// The label of a pod of a LeaderWorkerSet with the index of its group.
pub const LEADER_WORKER_GROUP: &str = "leaderworkerset.sigs.k8s.io/group-index";

/// The annotation of a pod of a LeaderWorkerSet with the number of pods of its group, leader included.
pub const LEADER_WORKER_SIZE: &str = "leaderworkerset.sigs.k8s.io/size";

/// The finalizer that keeps an object until no other object uses it.
pub const RESOURCE_IN_USE: &str = "lockkeeper.dev/resource-in-use";

/// Koordinator's label on a pod: whether it may be a victim. Only the exact value `false` makes it
/// non-preemptible (Koordinator `apis/extension`, `IsPodNonPreemptible`).
pub const PREEMPTIBLE: &str = "quota.scheduling.koordinator.sh/preemptible";

/// Koordinator's label on a pod: whether it may trigger preemption.
pub const CAN_PREEMPT: &str = "quota.scheduling.koordinator.sh/can-preempt";

/// The label whose value names the job that a pod belongs to (Koordinator, job-level preemption).
pub const JOB: &str = "pod-group.scheduling.sigs.k8s.io";

/// On a victim of job-level preemption: a label with the name of the preemptor's job, and an annotation with the JSON
/// of Koordinator's proposal.
pub const SOFT_EVICTION: &str = "scheduling.koordinator.sh/soft-eviction";
