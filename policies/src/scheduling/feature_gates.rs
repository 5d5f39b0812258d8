//! The feature gates that the rules check; all off by default in Kubernetes 1.36 and 1.37.

use crate::rule::Context;
use crate::settings::Settings;

/// Serves Workload and PodGroup at all.
pub(crate) const GENERIC_WORKLOAD: &str = "GenericWorkload";

/// For `schedulingConstraints`.
pub(super) const TOPOLOGY: &str = "TopologyAwareWorkloadScheduling";

/// For `disruptionMode`, `priorityClassName` and `priority`, in 1.36 alone.
pub(super) const PREEMPTION: &str = "WorkloadAwarePreemption";

/// For `resourceClaims`.
pub(super) const RESOURCE_CLAIMS: &str = "DRAWorkloadResourceClaims";

/// For `preemptionPolicy`, from 1.37 on.
pub(super) const PREEMPTION_POLICY: &str = "PodGroupPreemptionPolicy";

/// For groups of groups, from 1.37 on.
pub(super) const COMPOSITE: &str = "CompositePodGroup";

/// Whether a gate is on.
pub(super) fn is_enabled(gate: &str, context: &Context<'_>) -> bool {
    is_enabled_in(gate, context.settings)
}

/// Whether a gate is on, from the settings alone.
pub(super) fn is_enabled_in(gate: &str, settings: &Settings) -> bool {
    settings.is_gate_enabled(gate, false)
}
