#![doc = include_str!("unknown_flavor_of_check.md")]

use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::ClusterQueue;
use std::collections::BTreeSet;

pub(super) const RULE: Rule<ClusterQueue> = Rule {
    id: "KQ001",
    name: "unknown-flavor-of-check",
    since: "0.1.0",
    action: Action::Off,
    covers: &["cq-admission-check-on-flavors-known"],
    layers: &[Layer::Webhook],
    doc: include_str!("unknown_flavor_of_check.md"),
    check: Check::Object(check),
};

fn check(queue: &ClusterQueue, out: &mut Findings) {
    let flavors = queue.spec.resource_groups.iter().flat_map(|it| &it.flavors);
    let flavors: BTreeSet<&str> = flavors.map(|it| it.name.as_str()).collect();
    let accepted: Vec<&str> = flavors.iter().copied().collect();
    let checks = queue.spec.admission_checks_strategy.iter();
    let checks = checks.flat_map(|it| it.admission_checks.iter().enumerate());
    for (at, check) in checks {
        for (place, flavor) in check.on_flavors.iter().enumerate() {
            if !flavors.contains(flavor.as_str()) {
                let field = FieldPath::new("spec.admissionChecksStrategy.admissionChecks");
                let field = field.item(at, &check.name).field("onFlavors").index(place);
                out.not_supported(field, flavor, &accepted);
            }
        }
    }
}
