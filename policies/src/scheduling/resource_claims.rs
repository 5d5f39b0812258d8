//! The claims that the pods of a group share.
#![doc = include_str!("template_resource_claims.md")]
#![doc = include_str!("pod_group_resource_claims.md")]

use super::pod_group_view::{PodGroupFields, check_name, duplicates, required_name};
use crate::finding::Findings;
use crate::name_validation::{dns_label, dns_subdomain};
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::ResourceClaim;

const COVERS: &[&str] = &[
    "pg-resource-claims-max",
    "pg-resource-claim-one-of",
    "pg-resource-claim-names",
];

/// The most claims of a group.
pub(super) const CLAIMS_MAX: usize = 4;

pub(super) const fn workload<T: PodGroupFields>() -> Rule<T> {
    Rule::mirrored(
        "KW008",
        "template-resource-claims-malformed",
        COVERS,
        include_str!("template_resource_claims.md"),
        Check::Create(check::<T>),
    )
}

pub(super) const fn pod_group<T: PodGroupFields>() -> Rule<T> {
    Rule::mirrored(
        "PG008",
        "pod-group-resource-claims-malformed",
        COVERS,
        include_str!("pod_group_resource_claims.md"),
        Check::Create(check::<T>),
    )
}

fn check<T: PodGroupFields>(object: &T, _: &Context<'_>, out: &mut Findings) {
    for group in object.groups() {
        let claims = group.resource_claims;
        let field = group.path.field("resourceClaims");
        if claims.len() > CLAIMS_MAX {
            out.too_many(field, claims.len(), CLAIMS_MAX);
            continue;
        }
        for (position, name) in duplicates(claims.iter().map(|claim| claim.name.as_str())) {
            let detail = "each claim needs a name of its own";
            out.duplicate(field.clone().item(position, name), name, detail);
        }
        for (position, item) in claims.iter().enumerate() {
            claim(&field.clone().item(position, &item.name), item, out);
        }
    }
}

fn claim(field: &FieldPath, claim: &ResourceClaim, out: &mut Findings) {
    let direct = claim.resource_claim_name.as_deref();
    let template = claim.resource_claim_template_name.as_deref();
    match (direct, template) {
        (None, None) => {
            let detail = "give one of resourceClaimName and resourceClaimTemplateName";
            out.invalid(field.clone(), "", detail);
        }
        (Some(_), Some(_)) => {
            let given = "resourceClaimName, resourceClaimTemplateName";
            out.invalid(field.clone(), given, "give only one of them");
        }
        _ => {}
    }
    required_name(&field.clone().field("name"), &claim.name, dns_label, out);
    for (name, value) in [
        ("resourceClaimName", direct),
        ("resourceClaimTemplateName", template),
    ] {
        if let Some(value) = value {
            check_name(&field.clone().field(name), value, dns_subdomain(value), out);
        }
    }
}
