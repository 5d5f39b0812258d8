#![doc = include_str!("flavor_listed_twice.md")]

use crate::cel::CelRule;
use crate::finding::ErrorKind;
use crate::finding::Findings;
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Layer, Rule};
use std::collections::BTreeMap;

/// A policy, not a schema rule: each flavor is searched in all groups, which costs too much for a schema because there
/// may be a thousand flavors.
fn cel_rule() -> CelRule {
    CelRule::new(
        "spec.resourceGroups",
        "self.all(group, group.flavors.all(it, \
     self.map(other, other.flavors.filter(flavor, flavor.name == it.name).size()).sum() == 1))",
        "a flavor is listed twice; list it once, with all its resources in one group",
    )
    .unchanged_when(
        "self.all(group, group.flavors.all(it, \
     self.map(of, of.flavors.filter(other, other.name == it.name).size()).sum() <= 1 \
     || self.map(of, of.flavors.filter(other, other.name == it.name).size()).sum() \
     <= oldSelf.map(of, of.flavors.filter(other, other.name == it.name).size()).sum()))",
    )
    .with_kind(ErrorKind::Duplicate)
}

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CQ006",
        name: "flavor-listed-twice",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["cq-flavor-unique-across-groups"],
        layers: &[Layer::Webhook, Layer::Policy(|| vec![cel_rule()])],
        doc: include_str!("flavor_listed_twice.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: QuotaFields>(object: &T, out: &mut Findings) {
    let mut first = BTreeMap::new();
    for (group_index, group) in object.groups().iter().enumerate() {
        for (position, flavor) in group.flavors.iter().enumerate() {
            if out.is_full() {
                return;
            }
            let Some(earlier) = first.get(flavor.name.as_str()) else {
                first.insert(flavor.name.as_str(), group_index);
                continue;
            };
            out.duplicate(
                quota::flavor_path(group_index, group, position, flavor).field("name"),
                &flavor.name,
                format!(
                    "spec.resourceGroups[{earlier}] lists it already; list it once, with all its \
                     resources in one group"
                ),
            );
        }
    }
}
