#![doc = include_str!("impossible_concurrent_admission.md")]

use crate::finding::{Findings, join_names, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::{ClusterQueue, Migration};

pub(super) const RULE: Rule<ClusterQueue> = Rule {
    id: "KQ002",
    name: "impossible-concurrent-admission",
    since: "0.1.0",
    action: Action::Off,
    covers: &[
        "cq-concurrent-admission-one-group",
        "cq-concurrent-admission-max-flavors",
        "cq-concurrent-admission-constraints-mode",
        "cq-concurrent-admission-last-flavor-known",
        "cq-concurrent-admission-no-strict-fifo",
    ],
    layers: &[Layer::Webhook],
    doc: include_str!("impossible_concurrent_admission.md"),
    check: Check::Context(check),
};

/// The maximum number of flavors of a queue with concurrent admission.
const FLAVORS_MAX: usize = 16;

const TRY_PREFERRED: &str = "TryPreferredFlavors";

fn check(queue: &ClusterQueue, context: &Context<'_>, out: &mut Findings) {
    let spec = &queue.spec;
    let Some(policy) = &spec.concurrent_admission_policy else {
        return;
    };
    if !context
        .settings
        .is_gate_enabled("ConcurrentAdmission", false)
    {
        return;
    }
    let groups = &spec.resource_groups;
    if groups.len() != 1 {
        out.invalid(
            FieldPath::new("spec.resourceGroups"),
            groups.len(),
            "with concurrentAdmissionPolicy there is exactly one resource group",
        );
    } else if let Some(group) = groups.first()
        && group.flavors.len() > FLAVORS_MAX
    {
        out.invalid(
            FieldPath::new("spec.resourceGroups")
                .index(0)
                .field("flavors"),
            group.flavors.len(),
            format!("with concurrentAdmissionPolicy there are at most {FLAVORS_MAX} flavors"),
        );
    }
    if spec.queueing_strategy == "StrictFIFO" {
        out.invalid(
            FieldPath::new("spec.queueingStrategy"),
            &spec.queueing_strategy,
            "with concurrentAdmissionPolicy it must be BestEffortFIFO",
        );
    }
    constraints(queue, &policy.migration, out);
}

fn constraints(queue: &ClusterQueue, migration: &Migration, out: &mut Findings) {
    let Some(constraints) = &migration.constraints else {
        return;
    };
    let field = FieldPath::new("spec.concurrentAdmissionPolicy.migration.constraints");
    if !matches!(migration.mode.as_str(), "" | TRY_PREFERRED) {
        out.forbidden(
            field.clone(),
            format!(
                "may only be set with mode {TRY_PREFERRED}, not {}",
                quoted(&migration.mode)
            ),
        );
    }
    if let Some(last) = &constraints.last_acceptable_flavor_name {
        let flavors = queue.spec.resource_groups.iter().flat_map(|it| &it.flavors);
        let names: Vec<&str> = flavors.map(|it| it.name.as_str()).collect();
        if !names.contains(&last.as_str()) {
            let accepted = match names.as_slice() {
                [] => "; it has none".to_owned(),
                names => format!(": {}", join_names(names.iter().copied())),
            };
            out.invalid(
                field.field("lastAcceptableFlavorName"),
                last,
                format!("must be a flavor of the ClusterQueue{accepted}"),
            );
        }
    }
}
