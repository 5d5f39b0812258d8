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
/// instance when the job is deleted without its dependents.
pub const JOB_UID: &str = "lockkeeper.dev/job-uid";

/// An annotation of `lockkeeper adopt`, which imports a running Job. On the Workload: how far the import is, `Requested` or
/// `Observed`; the controller removes it when the Job has its queue label. On the Job: its own uid.
pub const ADOPTION: &str = "lockkeeper.dev/adoption";

/// The scheduling gate of a pod with the queue label. The controller removes it when the pod is admitted.
pub const ADMISSION_GATE: &str = "lockkeeper.dev/admission";

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
