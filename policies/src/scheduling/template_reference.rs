//! The template of a PodGroup.
#![doc = include_str!("template_reference_malformed.md")]
#![doc = include_str!("template_reference_dangling.md")]
#![doc = include_str!("workload_reference_dangling.md")]

use super::feature_gates::{COMPOSITE, GENERIC_WORKLOAD, is_enabled};
use super::pod_group_view::{check_name, required_name};
use crate::cluster_view::Lookup;
use crate::finding::{Findings, join_names, quoted};
use crate::name_validation::{dns_label, dns_subdomain};
use crate::rule::{Check, Context, Rule};
use kube::Resource as _;
use kube::core::ObjectMeta;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::PodGroup;
use lockkeeper_api::foreign::scheduling::v1beta1;

/// The form of the reference of `v1alpha2`.
pub(super) const MALFORMED_V1ALPHA2: Rule<PodGroup> = malformed(Check::Create(malformed_v1alpha2));

/// The form of the reference of `v1beta1`.
pub(super) const MALFORMED_V1BETA1: Rule<v1beta1::PodGroup> =
    malformed(Check::Create(malformed_v1beta1));

/// An API server of Kubernetes 1.36 rejects a dangling reference.
pub(super) const DANGLING: Rule<PodGroup> = Rule::mirrored(
    "PG005",
    "template-reference-dangling",
    &["pg-template-ref-exists"],
    include_str!("template_reference_dangling.md"),
    Check::Create(dangling_v1alpha2),
);

/// Later versions accept it, and no component reads the template any more.
pub(super) const DANGLING_V1BETA1: Rule<v1beta1::PodGroup> = Rule {
    action: Action::Audit,
    ..Rule::mirrored(
        "PG018",
        "workload-reference-dangling",
        &[],
        include_str!("workload_reference_dangling.md"),
        Check::Create(dangling_v1beta1),
    )
};

const fn malformed<T>(check: Check<T>) -> Rule<T> {
    Rule::mirrored(
        "PG004",
        "template-reference-malformed",
        &["pg-template-ref-one-of", "pg-template-ref-names"],
        include_str!("template_reference_malformed.md"),
        check,
    )
}

fn malformed_v1alpha2(group: &PodGroup, _: &Context<'_>, out: &mut Findings) {
    let Some(reference) = &group.spec.template_ref else {
        return;
    };
    let field = FieldPath::new("spec.podGroupTemplateRef");
    let Some(workload) = &reference.workload else {
        out.invalid(field, "", "name a template of a workload");
        return;
    };
    let name = FieldPath::new(WORKLOAD_FIELD_V1ALPHA2);
    required_name(&name, &workload.workload_name, dns_subdomain, out);
    let name = FieldPath::new(TEMPLATE_FIELD_V1ALPHA2);
    required_name(&name, &workload.pod_group_template_name, dns_label, out);
}

fn malformed_v1beta1(group: &v1beta1::PodGroup, context: &Context<'_>, out: &mut Findings) {
    let spec = &group.spec;
    if let Some(parent) = spec.parent_composite_pod_group_name.as_deref()
        && is_enabled(COMPOSITE, context)
    {
        let field = FieldPath::new("spec.parentCompositePodGroupName");
        check_name(&field, parent, dns_subdomain(parent), out);
        if spec.workload_ref.is_none() {
            let detail = "a group with a parent names the template that it was made of";
            out.required(FieldPath::new("spec.workloadRef"), detail);
        }
    }
    if let Some(reference) = &spec.workload_ref {
        let name = FieldPath::new(WORKLOAD_FIELD_V1BETA1);
        required_name(&name, &reference.workload_name, dns_subdomain, out);
        let name = FieldPath::new(TEMPLATE_FIELD_V1BETA1);
        required_name(&name, &reference.template_name, dns_label, out);
    }
}

fn dangling_v1alpha2(group: &PodGroup, context: &Context<'_>, out: &mut Findings) {
    let reference = group.spec.template_ref.as_ref();
    if let Some(it) = reference.and_then(|it| it.workload.as_ref())
        && is_enabled(GENERIC_WORKLOAD, context)
    {
        let fields = [WORKLOAD_FIELD_V1ALPHA2, TEMPLATE_FIELD_V1ALPHA2];
        let named = [&it.workload_name, &it.pod_group_template_name];
        check_exists(
            group.meta(),
            fields,
            named.map(String::as_str),
            context,
            out,
        );
    }
}

fn dangling_v1beta1(group: &v1beta1::PodGroup, context: &Context<'_>, out: &mut Findings) {
    if let Some(it) = &group.spec.workload_ref {
        let fields = [WORKLOAD_FIELD_V1BETA1, TEMPLATE_FIELD_V1BETA1];
        let named = [&it.workload_name, &it.template_name];
        check_exists(
            group.meta(),
            fields,
            named.map(String::as_str),
            context,
            out,
        );
    }
}

const WORKLOAD_FIELD_V1ALPHA2: &str = "spec.podGroupTemplateRef.workload.workloadName";
const TEMPLATE_FIELD_V1ALPHA2: &str = "spec.podGroupTemplateRef.workload.podGroupTemplateName";
const WORKLOAD_FIELD_V1BETA1: &str = "spec.workloadRef.workloadName";
const TEMPLATE_FIELD_V1BETA1: &str = "spec.workloadRef.templateName";

/// Reports a missing template. The fields contain both names.
fn check_exists(
    metadata: &ObjectMeta,
    fields: [&'static str; 2],
    [workload, template]: [&str; 2],
    context: &Context<'_>,
    out: &mut Findings,
) {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let [of_workload, of_template] = fields.map(FieldPath::new);
    match context.cluster.templates(namespace, workload) {
        Lookup::Absent => {
            let detail = "there is no such Workload in this namespace; create it first";
            out.not_found(of_workload, workload, detail);
        }
        Lookup::Found(facts) if facts.deleting => {
            let detail = format!("workload {} is being deleted", quoted(workload));
            out.forbidden(of_workload, detail);
        }
        Lookup::Found(facts) if !facts.templates.contains(template) => {
            let names = facts.templates.iter().map(String::as_str);
            let detail = format!("workload {} has {}", quoted(workload), join_names(names));
            out.not_found(of_template, template, detail);
        }
        Lookup::Found(_) | Lookup::Unknown => {}
    }
}
