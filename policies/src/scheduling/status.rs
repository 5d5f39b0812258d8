//! The status of a PodGroup. The API server drops it on creation, so only updates are checked.
#![doc = include_str!("conditions.md")]
#![doc = include_str!("claim_status.md")]
#![doc = include_str!("claim_status_unknown.md")]

use super::pod_group_view::{check_name, duplicates};
use super::resource_claims::CLAIMS_MAX;
use crate::finding::Findings;
use crate::name_validation::{dns_subdomain, is_condition_reason, label_key};
use crate::rule::{Change, Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::v1beta1;
use lockkeeper_api::foreign::scheduling::{
    Condition, PodGroup, PodGroupStatus, ResourceClaim, ResourceClaimStatus,
};
use std::collections::BTreeSet;

const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// The most bytes of the reason of a condition.
const REASON_LENGTH_MAX: usize = 1024;

/// The most bytes of the message of a condition.
const MESSAGE_LENGTH_MAX: usize = 32 * 1024;

/// The zero time of Go.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// A PodGroup of either version.
pub(super) trait HasStatus {
    /// The observed state.
    fn status(&self) -> &PodGroupStatus;

    /// The claims that its pods share.
    fn claims(&self) -> &[ResourceClaim];
}

impl HasStatus for PodGroup {
    fn status(&self) -> &PodGroupStatus {
        &self.status
    }

    fn claims(&self) -> &[ResourceClaim] {
        &self.spec.group.resource_claims
    }
}

impl HasStatus for v1beta1::PodGroup {
    fn status(&self) -> &PodGroupStatus {
        &self.status
    }

    fn claims(&self) -> &[ResourceClaim] {
        &self.spec.group.base.resource_claims
    }
}

pub(super) const fn conditions<T: HasStatus>() -> Rule<T> {
    Rule::mirrored(
        "PG014",
        "pod-group-conditions-malformed",
        &["pg-status-conditions"],
        include_str!("conditions.md"),
        Check::Change(check_conditions::<T>),
    )
}

pub(super) const fn claims<T: HasStatus>() -> Rule<T> {
    Rule::mirrored(
        "PG015",
        "pod-group-claim-status-malformed",
        &["pg-status-claims"],
        include_str!("claim_status.md"),
        Check::Change(check_claims::<T>),
    )
}

pub(super) const fn unknown_claim<T: HasStatus>() -> Rule<T> {
    Rule::mirrored(
        "PG016",
        "pod-group-claim-status-unknown",
        &["pg-status-claim-known"],
        include_str!("claim_status_unknown.md"),
        Check::Change(check_unknown_claim::<T>),
    )
}

fn check_conditions<T: HasStatus>(change: &Change<'_, T>, _: &Context<'_>, out: &mut Findings) {
    let conditions = &change.new.status().conditions;
    // The engine drops no pre-existing findings of a `Change` rule, so the rule ratchets.
    if change.old.status().conditions == *conditions {
        return;
    }
    let mut seen = BTreeSet::new();
    for (position, item) in conditions.iter().enumerate() {
        let field = FieldPath::new("status.conditions").item(position, &item.kind);
        if !seen.insert(&item.kind) {
            let detail = "each type has one condition";
            out.duplicate(field.clone().field("type"), &item.kind, detail);
        }
        condition(&field, item, out);
    }
}

/// Validates one condition like metav1's `ValidateCondition`.
fn condition(field: &FieldPath, condition: &Condition, out: &mut Findings) {
    let child = |name| field.clone().field(name);
    let faults = label_key(&condition.kind);
    check_name(&child("type"), &condition.kind, faults, out);
    if !STATUSES.contains(&condition.status.as_str()) {
        out.not_supported(child("status"), &condition.status, &STATUSES);
    }
    if condition.observed_generation < 0 {
        let generation = condition.observed_generation;
        out.invalid(
            child("observedGeneration"),
            generation,
            "must not be below 0",
        );
    }
    let time = condition.last_transition_time.as_deref();
    if time.is_none_or(|time| time == ZERO_TIME) {
        let detail = "set when the status last changed";
        out.required(child("lastTransitionTime"), detail);
    }
    if condition.reason.is_empty() {
        out.required(
            child("reason"),
            "set the reason for the last change, in one word",
        );
    } else {
        if !is_condition_reason(&condition.reason) {
            let detail = "must be letters, digits, '_', ',' and ':', start with a letter and end with a \
                          letter, a digit or '_', such as \"ReasonA\"";
            out.invalid(child("reason"), &condition.reason, detail);
        }
        length(child("reason"), &condition.reason, REASON_LENGTH_MAX, out);
    }
    length(
        child("message"),
        &condition.message,
        MESSAGE_LENGTH_MAX,
        out,
    );
}

fn length(field: FieldPath, value: &str, max: usize, out: &mut Findings) {
    if value.len() > max {
        let seen = value.len();
        out.too_long(
            field,
            format!("has {seen} bytes; must have no more than {max}"),
        );
    }
}

fn check_claims<T: HasStatus>(change: &Change<'_, T>, _: &Context<'_>, out: &mut Findings) {
    let before = &change.old.status().resource_claim_statuses;
    let statuses = &change.new.status().resource_claim_statuses;
    if before == statuses {
        return;
    }
    let field = FieldPath::new("status.resourceClaimStatuses");
    if statuses.len() > CLAIMS_MAX {
        out.too_many(field, statuses.len(), CLAIMS_MAX);
        return;
    }
    for (position, name) in duplicates(statuses.iter().map(|status| status.name.as_str())) {
        let detail = "each claim has one status";
        out.duplicate(field.clone().item(position, name), name, detail);
    }
    for (position, status) in statuses.iter().enumerate() {
        let claim = status.resource_claim_name.as_deref();
        // A name that the stored status has already is not validated again.
        if let Some(claim) = claim.filter(|_| !stood(before, status)) {
            let field = field.clone().item(position, &status.name);
            let field = field.field("resourceClaimName");
            check_name(&field, claim, dns_subdomain(claim), out);
        }
    }
}

/// Whether the stored status has the same claim for this name.
fn stood(before: &[ResourceClaimStatus], status: &ResourceClaimStatus) -> bool {
    let same = before.iter().find(|other| other.name == status.name);
    same.is_some_and(|other| other.resource_claim_name == status.resource_claim_name)
}

fn check_unknown_claim<T: HasStatus>(change: &Change<'_, T>, _: &Context<'_>, out: &mut Findings) {
    let statuses = &change.new.status().resource_claim_statuses;
    if change.old.status().resource_claim_statuses == *statuses {
        return;
    }
    let claims = change.new.claims().iter();
    let claims: BTreeSet<&str> = claims.map(|claim| claim.name.as_str()).collect();
    for (position, status) in statuses.iter().enumerate() {
        if !claims.contains(status.name.as_str()) {
            let field = FieldPath::new("status.resourceClaimStatuses");
            out.invalid(
                field.item(position, &status.name).field("name"),
                &status.name,
                "must be the name of a claim in spec.resourceClaims",
            );
        }
    }
}
