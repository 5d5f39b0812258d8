//! Templates of groups of groups.
#![doc = include_str!("composite_malformed.md")]

use super::pod_group_view::{composite_path, visit_template_lists};
use crate::finding::Findings;
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::v1beta1::{CompositePodGroupTemplate, Workload};

/// The maximum nesting depth of templates, including those of pods.
const DEPTH_MAX: usize = 4;

pub(super) const RULE: Rule<Workload> = Rule::mirrored(
    "KW012",
    "composite-template-malformed",
    &[],
    include_str!("composite_malformed.md"),
    Check::Context(check),
);

fn check(workload: &Workload, _: &Context<'_>, out: &mut Findings) {
    let templates = &workload.spec.templates;
    let composite = templates.composite_pod_group_templates.iter();
    for (at, template) in composite.enumerate() {
        if is_too_deep(template, 1) {
            let field = composite_path(&FieldPath::new("spec"), at, &template.name);
            let detail =
                format!("templates nest at most {DEPTH_MAX} levels deep, those of pods included");
            out.invalid(field, template.name.as_str(), detail);
        }
    }
    visit_template_lists(templates, &mut |above, templates| {
        let composite = templates.composite_pod_group_templates.iter();
        for (at, template) in composite.enumerate() {
            let below = &template.templates;
            if below.pod_group_templates.is_empty()
                && below.composite_pod_group_templates.is_empty()
            {
                let field = composite_path(above, at, &template.name);
                let detail = "give at least one of podGroupTemplates and compositePodGroupTemplates below it";
                out.invalid(field, template.name.as_str(), detail);
            }
        }
    });
}

/// Whether the templates below a template at this level exceed the maximum depth.
fn is_too_deep(template: &CompositePodGroupTemplate, level: usize) -> bool {
    let mut below = template.templates.composite_pod_group_templates.iter();
    // Below the deepest allowed composite template are only the templates of pods.
    level == DEPTH_MAX || below.any(|it| is_too_deep(it, level + 1))
}
