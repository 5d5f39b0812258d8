#![doc = include_str!("second_global_default.md")]

use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(super) const RULE: Rule<PriorityClass> = Rule {
    id: "PC001",
    name: "second-global-default",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["pc-global-default-unique"],
    layers: &[Layer::Webhook],
    doc: include_str!("second_global_default.md"),
    check: Check::Context(check),
};

fn check(class: &PriorityClass, context: &Context<'_>, out: &mut Findings) {
    if class.global_default != Some(true) {
        return;
    }
    match context.cluster.global_default().found() {
        // On an update, the global default may be the stored version of this class.
        Some((other, _)) if class.metadata.name.as_ref() != Some(&other) => out.forbidden(
            FieldPath::new("globalDefault"),
            format!(
                "PriorityClass {} is the global default already; set globalDefault to false here, \
                 or there first",
                quoted(&other),
            ),
        ),
        _ => {}
    }
}
