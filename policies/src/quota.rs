//! Access to the quota of ClusterQueues and Cohorts, lockkeeper's and Kueue's.

mod queue_fields;
mod queue_preemption;
mod quota_fields;

pub(crate) use queue_fields::QueueFields;
pub(crate) use quota_fields::{QuotaFields, flavor_path, group_path, visit_flavors, visit_quotas};
