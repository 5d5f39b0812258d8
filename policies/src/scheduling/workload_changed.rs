#![doc = include_str!("workload_changed.md")]

use super::templates;
use crate::finding::{Findings, listed, quoted};
use crate::rule::{Change, Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::Workload;

pub(super) const RULE: Rule<Workload> = Rule::mirrored(
    "KW003",
    "workload-spec-changed",
    &["kwl-templates-immutable", "kwl-controller-ref-immutable"],
    include_str!("workload_changed.md"),
    Check::Change(check),
);

fn check(change: &Change<'_, Workload>, _: &Context<'_>, out: &mut Findings) {
    let (old, new) = (&change.old.spec, &change.new.spec);
    if old.controller_ref != new.controller_ref {
        let name = new.controller_ref.as_ref().map(|it| it.name.as_str());
        out.invalid(
            FieldPath::new("spec.controllerRef"),
            name.unwrap_or_default(),
            match &old.controller_ref {
                Some(kept) => format!(
                    "field is immutable; keep {} {}",
                    quoted(&kept.kind),
                    quoted(&kept.name)
                ),
                None => "field is immutable; leave it out".to_owned(),
            },
        );
    }
    if old.pod_group_templates != new.pod_group_templates {
        out.invalid(
            FieldPath::new("spec.podGroupTemplates"),
            listed(new.pod_group_templates.iter().map(|it| it.name.as_str())),
            "field is immutable, with all that is in it; delete the Workload and make a new one",
        );
        templates::count(new, out);
    }
}
