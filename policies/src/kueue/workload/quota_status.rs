//! Properties of a Workload that several rules check.

use crate::settings::Settings;
use lockkeeper_api::foreign::kueue::Workload;
use std::collections::{BTreeMap, BTreeSet};

/// Kueue's feature gate for jobs whose number of pods changes while they run.
pub(super) const ELASTIC_GATE: &str = "ElasticJobsViaWorkloadSlices";

/// The annotation of such jobs.
pub(super) const ELASTIC_ANNOTATION: &str = "kueue.x-k8s.io/elastic-job";

/// The condition of a workload that holds quota.
const QUOTA_RESERVED: &str = "QuotaReserved";

/// The default count of a pod set.
pub(super) const COUNT_DEFAULT: i32 = 1;

/// Whether quota is reserved for the workload.
pub(super) fn has_quota_reserved(workload: &Workload) -> bool {
    let mut conditions = workload.status.conditions.iter();
    conditions
        .find(|it| it.type_ == QUOTA_RESERVED)
        .is_some_and(|it| it.status == "True")
}

/// Whether the number of pods may change while the workload runs.
pub(super) fn is_elastic(workload: &Workload, settings: &Settings) -> bool {
    settings.is_gate_enabled(ELASTIC_GATE, true)
        && annotation(workload, ELASTIC_ANNOTATION) == Some("true")
}

/// The value of an annotation.
pub(super) fn annotation<'a>(workload: &'a Workload, key: &str) -> Option<&'a str> {
    let annotations = workload.metadata.annotations.as_ref()?;
    annotations.get(key).map(String::as_str)
}

/// The pods of each pod set.
pub(super) fn pod_counts(workload: &Workload) -> BTreeMap<&str, i32> {
    let pod_sets = workload.spec.pod_sets.iter();
    pod_sets
        .map(|it| (it.name.as_str(), it.count.unwrap_or(COUNT_DEFAULT)))
        .collect()
}

/// The names of the pod sets.
pub(super) fn pod_set_names(workload: &Workload) -> BTreeSet<&str> {
    let pod_sets = workload.spec.pod_sets.iter();
    pod_sets.map(|it| it.name.as_str()).collect()
}
