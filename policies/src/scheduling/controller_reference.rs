#![doc = include_str!("controller_reference.md")]

use super::pod_group_view::{HasController, check_name, required_name};
use crate::finding::Findings;
use crate::name_validation::{dns_subdomain, path_segment};
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;

pub(super) const fn workload<T: HasController>() -> Rule<T> {
    Rule::mirrored(
        "KW005",
        "controller-reference-malformed",
        &[
            "kwl-controller-ref-api-group",
            "kwl-controller-ref-kind-name",
        ],
        include_str!("controller_reference.md"),
        Check::Create(check::<T>),
    )
}

fn check<T: HasController>(workload: &T, _: &Context<'_>, out: &mut Findings) {
    let Some(controller) = workload.controller() else {
        return;
    };
    let field = FieldPath::new("spec.controllerRef");
    if !controller.api_group.is_empty() {
        let faults = dns_subdomain(&controller.api_group);
        let field = field.clone().field("apiGroup");
        check_name(&field, &controller.api_group, faults, out);
    }
    for (name, value) in [("kind", &controller.kind), ("name", &controller.name)] {
        required_name(&field.clone().field(name), value, path_segment, out);
    }
}
