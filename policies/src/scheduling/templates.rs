#![doc = include_str!("templates.md")]

use super::pod_group_view::{
    TEMPLATES_MAX, composite_path, duplicates, required_name, template_path, visit_template_lists,
};
use crate::finding::Findings;
use crate::name_validation::dns_label;
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::v1beta1;
use lockkeeper_api::foreign::scheduling::{Workload, WorkloadSpec};
use std::collections::BTreeSet;

/// The rule for `v1alpha2`.
pub(super) const V1ALPHA2: Rule<Workload> = rule(Check::Create(check_v1alpha2));

/// The rule for `v1beta1`.
pub(super) const V1BETA1: Rule<v1beta1::Workload> = rule(Check::Create(check_v1beta1));

const fn rule<T>(check: Check<T>) -> Rule<T> {
    Rule::mirrored(
        "KW004",
        "pod-group-templates-malformed",
        &[
            "kwl-templates-required",
            "kwl-templates-max",
            "kwl-templates-unique",
            "kwl-template-name",
        ],
        include_str!("templates.md"),
        check,
    )
}

fn check_v1alpha2(workload: &Workload, _: &Context<'_>, out: &mut Findings) {
    if check_count(&workload.spec, out) {
        let templates = workload.spec.pod_group_templates.iter();
        let names: Vec<&str> = templates.map(|it| it.name.as_str()).collect();
        check_names(&FieldPath::new("spec"), template_path, &names, out);
    }
}

/// Whether the number of templates is valid.
pub(super) fn check_count(spec: &WorkloadSpec, out: &mut Findings) -> bool {
    let field = FieldPath::new("spec.podGroupTemplates");
    match spec.pod_group_templates.len() {
        0 => out.required(field, "give at least one template"),
        1..=TEMPLATES_MAX => return true,
        count => out.too_many(field, count, TEMPLATES_MAX),
    }
    false
}

fn check_v1beta1(workload: &v1beta1::Workload, _: &Context<'_>, out: &mut Findings) {
    let templates = &workload.spec.templates;
    check_one_of(templates, out);
    let mut seen = BTreeSet::new();
    visit_template_lists(templates, &mut |above, templates| {
        let pods = templates.pod_group_templates.iter();
        let pods: Vec<&str> = pods.map(|it| it.name.as_str()).collect();
        check_list(
            above,
            ("podGroupTemplates", template_path),
            &pods,
            &mut seen,
            out,
        );
        let groups = templates.composite_pod_group_templates.iter();
        let groups: Vec<&str> = groups.map(|it| it.name.as_str()).collect();
        let place: TemplateList = ("compositePodGroupTemplates", composite_path);
        check_list(above, place, &groups, &mut seen, out);
    });
}

/// Reports a Workload that does not have exactly one of the two lists.
pub(super) fn check_one_of(templates: &v1beta1::Templates, out: &mut Findings) {
    let pods = !templates.pod_group_templates.is_empty();
    let groups = !templates.composite_pod_group_templates.is_empty();
    let field = FieldPath::new("spec");
    if pods && groups {
        let given = "podGroupTemplates, compositePodGroupTemplates";
        out.invalid(field, given, "give only one of them");
    } else if !pods && !groups {
        let detail = "give one of podGroupTemplates and compositePodGroupTemplates";
        out.invalid(field, "", detail);
    }
}

/// The path of an item.
type ItemPath = fn(&FieldPath, usize, &str) -> FieldPath;

/// The name of a list, and the paths of its items.
type TemplateList = (&'static str, ItemPath);

fn check_list<'a>(
    above: &FieldPath,
    (field, path): TemplateList,
    names: &[&'a str],
    seen: &mut BTreeSet<&'a str>,
    out: &mut Findings,
) {
    if names.len() > TEMPLATES_MAX {
        out.too_many(above.clone().field(field), names.len(), TEMPLATES_MAX);
        return;
    }
    check_names(above, path, names, out);
    for (position, name) in names.iter().enumerate() {
        // A name of another list; duplicates within this one are reported above.
        if seen.contains(name) {
            let field = path(above, position, name).field("name");
            let detail = "each template of the Workload needs a name of its own";
            out.duplicate(field, name, detail);
        }
    }
    seen.extend(names);
}

/// Reports the faults of the names in one list.
fn check_names(above: &FieldPath, path: ItemPath, names: &[&str], out: &mut Findings) {
    for (position, name) in duplicates(names.iter().copied()) {
        let detail = "each template needs a name of its own";
        out.duplicate(path(above, position, name), name, detail);
    }
    for (position, name) in names.iter().enumerate() {
        let field = path(above, position, name).field("name");
        required_name(&field, name, dns_label, out);
    }
}
