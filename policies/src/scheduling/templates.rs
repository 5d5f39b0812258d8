#![doc = include_str!("templates.md")]

use super::group::{TEMPLATES_MAX, repeated, required_name, template_path};
use crate::finding::Findings;
use crate::names::dns_label;
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::{Workload, WorkloadSpec};

pub(super) const RULE: Rule<Workload> = Rule::mirrored(
    "KW004",
    "pod-group-templates-malformed",
    &[
        "kwl-templates-required",
        "kwl-templates-max",
        "kwl-templates-unique",
        "kwl-template-name",
    ],
    include_str!("templates.md"),
    Check::Create(check),
);

fn check(workload: &Workload, _: &Context<'_>, out: &mut Findings) {
    let templates = &workload.spec.pod_group_templates;
    if !count(&workload.spec, out) {
        return;
    }
    for (position, name) in repeated(templates.iter().map(|template| template.name.as_str())) {
        let detail = "each template needs a name of its own";
        out.duplicate(template_path(position, name), name, detail);
    }
    for (position, template) in templates.iter().enumerate() {
        let field = template_path(position, &template.name).field("name");
        required_name(&field, &template.name, dns_label, out);
    }
}

/// Whether there is a good number of templates.
pub(super) fn count(spec: &WorkloadSpec, out: &mut Findings) -> bool {
    let field = FieldPath::new("spec.podGroupTemplates");
    match spec.pod_group_templates.len() {
        0 => out.required(field, "give at least one template"),
        1..=TEMPLATES_MAX => return true,
        count => out.too_many(field, count, TEMPLATES_MAX),
    }
    false
}
