//! The facts that rules need from objects, and reading objects into an index.

mod extract;
mod ingest;

pub use extract::{
    cluster_queue_facts, cohort_facts, elastic_quota_facts, flavor_facts, is_finished,
    kueue_cluster_queue_facts, kueue_cohort_facts, kueue_flavor_facts, kueue_local_queue_facts,
    local_queue_facts, object_name, own_local_queue_facts, partial_pod_facts, pod_facts,
    pod_preemption_labels, priority_class_facts, template_facts, template_facts_v1beta1,
    workload_facts, workload_priority_class_facts,
};
pub use ingest::{IngestOutcome, collect, ingest};
