//! The template that a PodGroup was made of.
#![doc = include_str!("template_reference_malformed.md")]
#![doc = include_str!("template_reference_dangling.md")]

use super::gates::{GENERIC_WORKLOAD, is_on};
use super::group::required_name;
use crate::finding::{Findings, listed, quoted};
use crate::names::{dns_label, dns_subdomain};
use crate::rule::{Check, Context, Rule};
use crate::world::Lookup;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::PodGroup;

pub(super) const MALFORMED: Rule<PodGroup> = Rule::mirrored(
    "PG004",
    "template-reference-malformed",
    &["pg-template-ref-one-of", "pg-template-ref-names"],
    include_str!("template_reference_malformed.md"),
    Check::Create(malformed),
);

pub(super) const DANGLING: Rule<PodGroup> = Rule::mirrored(
    "PG005",
    "template-reference-dangling",
    &["pg-template-ref-exists"],
    include_str!("template_reference_dangling.md"),
    Check::Create(dangling),
);

fn malformed(group: &PodGroup, _: &Context<'_>, out: &mut Findings) {
    let Some(reference) = &group.spec.template_ref else {
        return;
    };
    let field = FieldPath::new("spec.podGroupTemplateRef");
    let Some(workload) = &reference.workload else {
        out.invalid(field, "", "name a template of a workload");
        return;
    };
    let field = field.field("workload");
    let name = field.clone().field("workloadName");
    required_name(&name, &workload.workload_name, dns_subdomain, out);
    let name = field.field("podGroupTemplateName");
    required_name(&name, &workload.pod_group_template_name, dns_label, out);
}

fn dangling(group: &PodGroup, context: &Context<'_>, out: &mut Findings) {
    let reference = group.spec.template_ref.as_ref();
    let Some(reference) = reference.and_then(|it| it.workload.as_ref()) else {
        return;
    };
    if !is_on(GENERIC_WORKLOAD, context) {
        return;
    }
    let namespace = group.metadata.namespace.as_deref().unwrap_or_default();
    let field = FieldPath::new("spec.podGroupTemplateRef.workload");
    let workload = &reference.workload_name;
    let template = &reference.pod_group_template_name;
    match context.world.templates(namespace, workload) {
        Lookup::Absent => {
            let detail = "there is no such Workload in this namespace; create it first";
            out.not_found(field.field("workloadName"), workload, detail);
        }
        Lookup::Found(facts) if facts.deleting => {
            let detail = format!("workload {} is being deleted", quoted(workload));
            out.forbidden(field.field("workloadName"), detail);
        }
        Lookup::Found(facts) if !facts.templates.contains(template) => {
            let names = facts.templates.iter().map(String::as_str);
            let detail = format!("workload {} has {}", quoted(workload), listed(names));
            out.not_found(field.field("podGroupTemplateName"), template, detail);
        }
        Lookup::Found(_) | Lookup::Unknown => {}
    }
}
