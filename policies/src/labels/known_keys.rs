//! The label and annotation keys of lockkeeper, Kueue and Koordinator.
//!
//! The keys of Kueue are from its reference ("Labels and Annotations") and `apis/kueue/v1beta2`, those of
//! Koordinator from `apis/extension`. Other programs may define more in the same domains.

use crate::suppression;
use lockkeeper_api::foreign::{koordinator, kueue};
use lockkeeper_api::labels::{
    ADOPTION, CAN_PREEMPT, DISRUPTION_MODE, JOB, JOB_UID, MAX_EXECUTION_TIME, MIN_PARALLELISM,
    ORIGINAL_PLACEMENT, POD_GROUP_NAME, POD_GROUP_TOTAL_COUNT, POD_SET, PREEMPTIBLE,
    PREEMPTION_PRIORITY_CLASS, PRIORITY_CLASS, QUEUE_NAME, RESOURCE_IN_USE, SOFT_EVICTION,
};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The map in which a key is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyLocation {
    /// Only labels.
    Label,
    /// Only annotations.
    Annotation,
    /// Either, or unknown.
    Either,
}

use KeyLocation::{Annotation, Either, Label};

/// A known key.
pub(crate) type KnownKey = (&'static str, KeyLocation);

/// The domains of the known keys; a key without a domain is listed as its own domain.
pub(crate) const DOMAINS: [&str; 7] = [
    lockkeeper_api::GROUP,
    kueue::GROUP,
    JOB,
    "quota.scheduling.koordinator.sh",
    "scheduling.koordinator.sh",
    "gang.scheduling.koordinator.sh",
    "koordinator.sh",
];

/// All known keys.
pub(crate) fn all() -> impl Iterator<Item = &'static KnownKey> {
    OWN.iter().chain(KUEUE).chain(KOORDINATOR)
}

/// The map in which a key is read; `None` if it is unknown.
pub(crate) fn location(key: &str) -> Option<KeyLocation> {
    let (domain, name) = split_key(key);
    let mut named = by_domain().get(domain)?.iter();
    named.find(|it| it.0 == name).map(|(_, (_, place))| *place)
}

/// The domain of a key, and its name; `None` for a key without a domain.
pub(crate) fn split_key(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or((key, ""))
}

/// The name of a known key below its domain, and the key.
type KeyByName = (&'static str, &'static KnownKey);

/// The known keys of each domain.
pub(crate) fn by_domain() -> &'static BTreeMap<&'static str, Vec<KeyByName>> {
    static KEYS: LazyLock<BTreeMap<&str, Vec<KeyByName>>> = LazyLock::new(|| {
        let mut domains: BTreeMap<&str, Vec<KeyByName>> = BTreeMap::new();
        for known in all() {
            let (domain, name) = split_key(known.0);
            domains.entry(domain).or_default().push((name, known));
        }
        domains
    });
    &KEYS
}

const OWN: &[KnownKey] = &[
    (QUEUE_NAME, Label),
    (PRIORITY_CLASS, Label),
    (PREEMPTION_PRIORITY_CLASS, Label),
    (DISRUPTION_MODE, Label),
    (MAX_EXECUTION_TIME, Label),
    (MIN_PARALLELISM, Annotation),
    (ORIGINAL_PLACEMENT, Annotation),
    (ADOPTION, Annotation),
    (POD_GROUP_NAME, Label),
    (POD_GROUP_TOTAL_COUNT, Annotation),
    (POD_SET, Annotation),
    (JOB_UID, Label),
    (suppression::ANNOTATION, Annotation),
    ("lockkeeper.dev/renew", Annotation),
    (RESOURCE_IN_USE, Either),
];

const KUEUE: &[KnownKey] = &[
    ("kueue.x-k8s.io/queue-name", Label),
    ("kueue.x-k8s.io/priority-class", Label),
    ("kueue.x-k8s.io/max-exec-time-seconds", Label),
    // An annotation since 0.18.
    ("kueue.x-k8s.io/prebuilt-workload-name", Either),
    ("kueue.x-k8s.io/job-min-parallelism", Annotation),
    (
        "kueue.x-k8s.io/job-completions-equal-parallelism",
        Annotation,
    ),
    ("kueue.x-k8s.io/elastic-job", Annotation),
    ("kueue.x-k8s.io/podset-required-topology", Annotation),
    ("kueue.x-k8s.io/podset-preferred-topology", Annotation),
    ("kueue.x-k8s.io/podset-unconstrained-topology", Annotation),
    ("kueue.x-k8s.io/podset-slice-required-topology", Annotation),
    (
        "kueue.x-k8s.io/podset-slice-required-topology-constraints",
        Annotation,
    ),
    ("kueue.x-k8s.io/podset-slice-size", Annotation),
    ("kueue.x-k8s.io/podset-group-name", Annotation),
    ("kueue.x-k8s.io/pod-group-total-count", Annotation),
    ("kueue.x-k8s.io/pod-group-fast-admission", Annotation),
    ("kueue.x-k8s.io/pod-group-serving", Annotation),
    ("kueue.x-k8s.io/retriable-in-group", Annotation),
    // Formerly a label; an annotation if the value is too long for a label.
    ("kueue.x-k8s.io/pod-group-name", Either),
    // The remaining keys are written by Kueue, or rarely by users.
    ("kueue.x-k8s.io/admission-gated-by", Either),
    ("kueue.x-k8s.io/auto-generated", Either),
    ("kueue.x-k8s.io/cluster-queue-name", Either),
    ("kueue.x-k8s.io/component-workload-index", Either),
    ("kueue.x-k8s.io/concurrent-admission-parent", Either),
    ("kueue.x-k8s.io/default-queue", Either),
    ("kueue.x-k8s.io/is-group-workload", Either),
    ("kueue.x-k8s.io/job-uid", Either),
    ("kueue.x-k8s.io/local-queue-name", Either),
    ("kueue.x-k8s.io/managed", Either),
    ("kueue.x-k8s.io/multikueue", Either),
    ("kueue.x-k8s.io/multikueue-origin", Either),
    ("kueue.x-k8s.io/multikueue-origin-uid", Either),
    ("kueue.x-k8s.io/multikueue-worker-workload-pod", Either),
    ("kueue.x-k8s.io/node-avoidance-label", Either),
    ("kueue.x-k8s.io/original-node-selectors", Either),
    ("kueue.x-k8s.io/original-pod-sets-info", Either),
    ("kueue.x-k8s.io/parent-workload", Either),
    ("kueue.x-k8s.io/pod-group-max-not-ready-count", Either),
    ("kueue.x-k8s.io/pod-group-pod-index", Either),
    ("kueue.x-k8s.io/pod-group-pod-index-label", Either),
    ("kueue.x-k8s.io/pod-group-role", Either),
    ("kueue.x-k8s.io/pod-group-sets", Either),
    ("kueue.x-k8s.io/pod-index-offset", Either),
    ("kueue.x-k8s.io/pod-suspending-parent", Either),
    ("kueue.x-k8s.io/podset", Either),
    ("kueue.x-k8s.io/podset-replica-sizes", Either),
    ("kueue.x-k8s.io/priority-boost", Either),
    ("kueue.x-k8s.io/raycluster-generation", Either),
    ("kueue.x-k8s.io/raycluster-podset-replica-sizes", Either),
    ("kueue.x-k8s.io/resource-in-use", Either),
    ("kueue.x-k8s.io/role-hash", Either),
    ("kueue.x-k8s.io/safe-to-forcefully-delete", Either),
    ("kueue.x-k8s.io/safe-to-forcefully-terminate", Either),
    ("kueue.x-k8s.io/stopping", Either),
    ("kueue.x-k8s.io/tas", Either),
    ("kueue.x-k8s.io/topology", Either),
    ("kueue.x-k8s.io/was-podgroup", Either),
    ("kueue.x-k8s.io/workload", Either),
    ("kueue.x-k8s.io/workload-allowed-resource-flavors", Either),
    ("kueue.x-k8s.io/workload-slice-name", Either),
    ("kueue.x-k8s.io/workload-slice-replacement-for", Either),
];

const KOORDINATOR: &[KnownKey] = &[
    (JOB, Label),
    ("pod-group.scheduling.sigs.k8s.io/name", Label),
    ("pod-group.scheduling.sigs.k8s.io/min-available", Label),
    ("pod-group.scheduling.sigs.k8s.io/match-policy", Annotation),
    (PREEMPTIBLE, Label),
    (CAN_PREEMPT, Label),
    (koordinator::QUOTA_NAME, Label),
    (koordinator::PARENT, Label),
    (koordinator::IS_PARENT, Label),
    (koordinator::IS_ROOT, Label),
    (koordinator::TREE_ID, Label),
    (koordinator::ALLOW_FORCE_UPDATE, Label),
    ("quota.scheduling.koordinator.sh/allow-lent-resource", Label),
    ("quota.scheduling.koordinator.sh/ignore-default-tree", Label),
    ("quota.scheduling.koordinator.sh/profile", Label),
    (koordinator::SHARED_WEIGHT, Annotation),
    (koordinator::NAMESPACES, Annotation),
    (koordinator::GUARANTEED, Annotation),
    (koordinator::STRICT_RESOURCES, Annotation),
    ("quota.scheduling.koordinator.sh/admission", Annotation),
    ("quota.scheduling.koordinator.sh/allocated", Annotation),
    ("quota.scheduling.koordinator.sh/child-request", Annotation),
    (
        "quota.scheduling.koordinator.sh/non-preemptible-request",
        Annotation,
    ),
    (
        "quota.scheduling.koordinator.sh/non-preemptible-used",
        Annotation,
    ),
    ("quota.scheduling.koordinator.sh/request", Annotation),
    ("quota.scheduling.koordinator.sh/resource-keys", Annotation),
    ("quota.scheduling.koordinator.sh/runtime", Annotation),
    ("quota.scheduling.koordinator.sh/total-resource", Annotation),
    (
        "quota.scheduling.koordinator.sh/unschedulable-resource",
        Annotation,
    ),
    ("scheduling.koordinator.sh/preemption-policy", Label),
    ("scheduling.koordinator.sh/disable-preemptible", Label),
    ("scheduling.koordinator.sh/reservation-ignored", Label),
    ("scheduling.koordinator.sh/reservation-order", Label),
    (koordinator::RESERVE_POD, Annotation),
    ("scheduling.koordinator.sh/device-allocate-hint", Annotation),
    ("scheduling.koordinator.sh/device-allocated", Annotation),
    (
        "scheduling.koordinator.sh/device-joint-allocate",
        Annotation,
    ),
    (
        "scheduling.koordinator.sh/exact-match-reservation",
        Annotation,
    ),
    ("scheduling.koordinator.sh/gpu-partition-spec", Annotation),
    ("scheduling.koordinator.sh/gpu-partitions", Annotation),
    ("scheduling.koordinator.sh/reservation-affinity", Annotation),
    (
        "scheduling.koordinator.sh/reservation-allocated",
        Annotation,
    ),
    (
        "scheduling.koordinator.sh/reservation-restricted-options",
        Annotation,
    ),
    ("scheduling.koordinator.sh/resource-spec", Annotation),
    ("scheduling.koordinator.sh/resource-status", Annotation),
    ("scheduling.koordinator.sh/usage-thresholds", Annotation),
    // A label on lockkeeper's victims, an annotation on Koordinator's.
    (SOFT_EVICTION, Either),
    ("scheduling.koordinator.sh/bind-gang-group-id", Either),
    ("scheduling.koordinator.sh/bind-gang-member-count", Either),
    ("scheduling.koordinator.sh/eviction-cost", Either),
    ("gang.scheduling.koordinator.sh/name", Annotation),
    ("gang.scheduling.koordinator.sh/groups", Annotation),
    ("gang.scheduling.koordinator.sh/match-policy", Annotation),
    (koordinator::GANG_MIN_AVAILABLE, Annotation),
    ("gang.scheduling.koordinator.sh/mode", Annotation),
    (
        "gang.scheduling.koordinator.sh/network-topology-index",
        Annotation,
    ),
    (
        "gang.scheduling.koordinator.sh/network-topology-spec",
        Annotation,
    ),
    ("gang.scheduling.koordinator.sh/timeout", Annotation),
    (koordinator::GANG_TOTAL_NUMBER, Annotation),
    ("gang.scheduling.koordinator.sh/waiting-time", Annotation),
    (koordinator::QOS_CLASS, Label),
    (koordinator::SUB_PRIORITY, Label),
    (koordinator::PRIORITY_CLASS, Label),
    ("koordinator.sh/cpuBurst", Annotation),
    ("koordinator.sh/blkioQOS", Either),
    ("koordinator.sh/enable-colocation", Either),
    ("koordinator.sh/gpu-isolation-provider", Either),
    ("koordinator.sh/memoryQOS", Either),
    ("koordinator.sh/netQoSClass", Either),
    ("koordinator.sh/networkQOS", Either),
];

#[cfg(test)]
mod tests {
    use super::{DOMAINS, all, by_domain};
    use std::collections::BTreeSet;

    #[test]
    fn known_keys_are_unique() {
        let keys: BTreeSet<&str> = all().map(|(key, _)| *key).collect();
        assert_eq!(keys.len(), all().count());
    }

    #[test]
    fn every_domain_has_keys() {
        let domains: BTreeSet<&str> = by_domain().keys().copied().collect();
        assert_eq!(domains, BTreeSet::from(DOMAINS));
    }
}
