#![doc = include_str!("covered_resources_mismatch.md")]

use crate::cel::CelRule;
use crate::finding::{Findings, join_names, quoted};
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::quota::{FlavorQuotas, ResourceGroup};

fn cel_rule() -> CelRule {
    CelRule::new(
    "spec.resourceGroups[]",
    "self.flavors.all(flavor, flavor.resources.map(it, it.name) == self.coveredResources)",
    "each flavor must list the coveredResources of the group, in order",
)
.message_expression("'each flavor must list the coveredResources of the group, in order: ' + self.coveredResources.join(', ')")
.field_path(".flavors")
.unchanged_when(
    "self.coveredResources == oldSelf.coveredResources && self.flavors.all(flavor, \
     flavor.resources.map(it, it.name) == self.coveredResources \
     || oldSelf.flavors.exists(of, of.name == flavor.name \
     && of.resources.map(it, it.name) == flavor.resources.map(it, it.name)))",
)
}

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CQ004",
        name: "covered-resources-mismatch",
        since: "0.1.0",
        action: T::ACTION,
        covers: &[
            "cq-resources-len-eq-covered",
            "cq-resources-order-eq-covered",
        ],
        layers: &[Layer::Webhook, Layer::Schema(|| vec![cel_rule()])],
        doc: include_str!("covered_resources_mismatch.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: QuotaFields>(object: &T, out: &mut Findings) {
    for (group_index, group) in object.groups().iter().enumerate() {
        for (flavor_index, flavor) in group.flavors.iter().enumerate() {
            if out.is_full() {
                return;
            }
            // For Kueue's kinds the schema reports a different count, at another path.
            compare(group, flavor, T::OWN, |position, seen, accepted| {
                let place = quota::flavor_path(group_index, group, flavor_index, flavor);
                let field = match position {
                    Some(position) => place.field("resources").index(position).field("name"),
                    None => place.field("resources"),
                };
                out.invalid(field, seen, accepted);
            });
        }
    }
}

/// Reports a different number of resources if `counts` is set, and otherwise each resource out of order.
fn compare(
    group: &ResourceGroup,
    flavor: &FlavorQuotas,
    counts: bool,
    mut report: impl FnMut(Option<usize>, String, String),
) {
    let covered = &group.covered_resources;
    let names: Vec<&str> = flavor
        .resources
        .iter()
        .map(|quota| quota.name.as_str())
        .collect();
    if counts && names.len() != covered.len() {
        report(
            None,
            join_names(names.iter().copied()),
            format!(
                "must list the coveredResources of the group, in order: {}",
                join_names(covered.iter().map(String::as_str))
            ),
        );
        return;
    }
    for (position, (name, expected)) in names.iter().zip(covered).enumerate() {
        if name != expected {
            report(
                Some(position),
                (*name).to_owned(),
                format!(
                    "must be {}, as at this place of coveredResources",
                    quoted(expected)
                ),
            );
        }
    }
}
