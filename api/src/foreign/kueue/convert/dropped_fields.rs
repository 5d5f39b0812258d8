//! Fields of Kueue that lockkeeper does not have.

/// The kinds that are converted.
pub(super) const CONVERTIBLE_KINDS: [&str; 6] = [
    "ClusterQueue",
    "Cohort",
    "LocalQueue",
    "ResourceFlavor",
    "Workload",
    "WorkloadPriorityClass",
];

const CHECKS_ADVICE: &str = "lockkeeper has no admission checks; provision before a workload is queued, or leave the queue with Kueue";
const TOPOLOGY_ADVICE: &str =
    "lockkeeper admits by quota, not by topology; set it in the affinity of the pods";
const SERVER_ADVICE: &str = "the API server sets it; remove it";

/// The kind, the pointer, and the remedy. An empty kind means all kinds; `*` is any item of a list. The table has the
/// names of both versions.
pub(super) const FIELDS: &[(&str, &str, &str)] = &[
    ("ClusterQueue", "/spec/admissionChecks", CHECKS_ADVICE),
    (
        "ClusterQueue",
        "/spec/admissionChecksStrategy",
        CHECKS_ADVICE,
    ),
    (
        "ClusterQueue",
        "/spec/admissionScope",
        "lockkeeper does not count past usage; share by fairSharing.weight of queues and cohorts",
    ),
    (
        "ClusterQueue",
        "/spec/concurrentAdmissionPolicy",
        "lockkeeper admits a workload to one set of flavors; use flavorFungibility to say which is tried first",
    ),
    (
        "LocalQueue",
        "/spec/fairSharing",
        "lockkeeper shares between ClusterQueues and Cohorts; make a ClusterQueue for each that is to have a share",
    ),
    ("ResourceFlavor", "/spec/topologyName", TOPOLOGY_ADVICE),
    (
        "Workload",
        "/spec/podSets/*/topologyRequest",
        TOPOLOGY_ADVICE,
    ),
    (
        "Workload",
        "/spec/preemptionGates",
        "lockkeeper has no gates of preemption; hold the queue with stopPolicy instead",
    ),
    (
        "Workload",
        "/spec/priority",
        "the priority of lockkeeper's Workloads is that of their class; name a PriorityClass of this value",
    ),
    ("", "/status", "the controller writes it again; remove it"),
    ("", "/metadata/creationTimestamp", SERVER_ADVICE),
    ("", "/metadata/deletionGracePeriodSeconds", SERVER_ADVICE),
    ("", "/metadata/deletionTimestamp", SERVER_ADVICE),
    ("", "/metadata/generation", SERVER_ADVICE),
    ("", "/metadata/managedFields", SERVER_ADVICE),
    ("", "/metadata/resourceVersion", SERVER_ADVICE),
    ("", "/metadata/selfLink", SERVER_ADVICE),
    ("", "/metadata/uid", SERVER_ADVICE),
];

/// The remedy for an object of another kind of Kueue.
pub(super) fn kind_advice(kind: &str) -> &'static str {
    match kind {
        "AdmissionCheck" | "ProvisioningRequestConfig" => CHECKS_ADVICE,
        "Topology" => TOPOLOGY_ADVICE,
        "MultiKueueCluster" | "MultiKueueConfig" => {
            "lockkeeper admits in one cluster; leave queues of several clusters with Kueue"
        }
        _ => "lockkeeper has no such kind; leave what needs it with Kueue",
    }
}

/// The remedy for a label or an annotation of Kueue.
pub(super) fn label_advice(name: &str) -> &'static str {
    match name {
        it if it.starts_with("podset-") => TOPOLOGY_ADVICE,
        it if it.starts_with("provreq.") => CHECKS_ADVICE,
        it if it.starts_with("pod-group-") => {
            "lockkeeper starts and stops Jobs and JobSets; make one of these pods"
        }
        "elastic-job" => "lockkeeper stops and requeues a Job that requests more; remove it",
        _ => "lockkeeper reads nothing like it here; remove it, or leave the object with Kueue",
    }
}

/// The remedy for a queue name on a kind of job that lockkeeper does not start.
pub(super) const JOB_ADVICE: &str =
    "lockkeeper starts and stops Jobs and JobSets; wrap it in one, or leave it with Kueue";

/// The remedy for kubectl's own annotation.
pub(super) const LAST_APPLIED_ADVICE: &str = "kubectl writes it again; remove it";
