#![doc = include_str!("deleted_while_used.md")]

use crate::finding::Findings;
use crate::rule::{Check, Context, Layer, Rule};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(super) const RULE: Rule<PriorityClass> = Rule {
    id: "PC002",
    name: "priority-class-deleted-while-used",
    since: "0.1.0",
    action: Action::Warn,
    covers: &[],
    layers: &[Layer::Webhook],
    doc: include_str!("deleted_while_used.md"),
    check: Check::Delete(check),
};

fn check(class: &PriorityClass, context: &Context<'_>, out: &mut Findings) {
    let name = class.metadata.name.as_deref().unwrap_or_default();
    let users = context.cluster.priority_class_referrers(name, 0);
    if users.total == 0 {
        return;
    }
    let subject = if users.total == 1 {
        "1 Workload still names it".to_owned()
    } else {
        format!("{} Workloads still name it", users.total)
    };
    out.forbidden(FieldPath::new("metadata.name"), subject);
}
