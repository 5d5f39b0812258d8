//! Defaults of a PodGroup.

use super::feature_gates::{GENERIC_WORKLOAD, PREEMPTION, PREEMPTION_POLICY, is_enabled};
use crate::cluster_view::PreemptionPolicy;
use crate::defaulting::Defaults;
use crate::priority_admission::resolve;
use crate::rule::Context;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::v1beta1;
use lockkeeper_api::foreign::scheduling::{
    DISRUPTION_MODE_POD, Group, POD_GROUP_PROTECTION, PodGroup, PodGroupSpec,
};
use std::collections::BTreeMap;

/// The schema's default, the defaults of the plugin Priority, and the finalizer of `PodGroupProtection`. Without its
/// feature gate, an API server sets the disruption mode and drops it again, so it is not set here.
pub(super) fn defaults_v1alpha2(
    group: &PodGroup,
    old: Option<&PodGroup>,
    context: &Context<'_>,
) -> Defaults {
    let mut out = Defaults::default();
    let spec = &group.spec;
    // An empty specification may be absent, and no field can be added to an absent one.
    if is_enabled(PREEMPTION, context) && *spec != PodGroupSpec::default() {
        if spec.group.disruption_mode.is_none() {
            out.set(FieldPath::new("spec.disruptionMode"), DISRUPTION_MODE_POD);
        }
        if old.is_none() {
            priority(&spec.group, context, &mut out);
        }
    }
    if old.is_none() && is_enabled(GENERIC_WORKLOAD, context) {
        out.add_named_finalizer(POD_GROUP_PROTECTION, group.metadata.finalizers.as_ref());
    }
    out
}

/// The defaults from `v1alpha3` on.
pub(super) fn defaults_v1beta1(
    group: &v1beta1::PodGroup,
    old: Option<&v1beta1::PodGroup>,
    context: &Context<'_>,
) -> Defaults {
    let mut out = Defaults::default();
    let spec = &group.spec;
    if *spec != v1beta1::PodGroupSpec::default() {
        if spec.group.base.disruption_mode.is_none() {
            let single = BTreeMap::from([("single", BTreeMap::<&str, &str>::new())]);
            out.set(FieldPath::new("spec.disruptionMode"), single);
        }
        if is_enabled(PREEMPTION_POLICY, context) && spec.group.preemption_policy.is_none() {
            let field = FieldPath::new("spec.preemptionPolicy");
            out.set(field, PreemptionPolicy::PreemptLowerPriority.as_str());
        }
        if old.is_none() {
            priority(&spec.group.base, context, &mut out);
        }
    }
    if old.is_none() && is_enabled(GENERIC_WORKLOAD, context) {
        out.add_named_finalizer(POD_GROUP_PROTECTION, group.metadata.finalizers.as_ref());
    }
    out
}

fn priority(group: &Group, context: &Context<'_>, out: &mut Defaults) {
    let given = &group.priority_class_name;
    let Some(priority) = resolve(context.cluster, given).found() else {
        return;
    };
    if let Some(class) = priority.class.filter(|_| given.is_empty()) {
        out.set(FieldPath::new("spec.priorityClassName"), class);
    }
    if group.priority.is_none() {
        out.set(FieldPath::new("spec.priority"), priority.value);
    }
}
