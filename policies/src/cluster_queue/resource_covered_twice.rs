#![doc = include_str!("resource_covered_twice.md")]

use crate::cel::CelRule;
use crate::finding::ErrorKind;
use crate::finding::Findings;
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Layer, Rule};
use std::collections::BTreeMap;

/// A policy, not a schema rule: each resource is searched in all groups, which costs too much for a schema because
/// there may be a thousand resources.
fn cel_rule() -> CelRule {
    CelRule::new(
    "spec.resourceGroups",
    "self.all(group, group.coveredResources.all(it, self.filter(other, it in other.coveredResources).size() == 1 \
     && group.coveredResources.filter(other, other == it).size() == 1))",
    "a resource is covered twice; keep it in one group",
)

.unchanged_when(
    "self.all(group, group.coveredResources.all(it, \
     self.map(of, of.coveredResources.filter(other, other == it).size()).sum() <= 1 \
     || self.map(of, of.coveredResources.filter(other, other == it).size()).sum() \
     <= oldSelf.map(of, of.coveredResources.filter(other, other == it).size()).sum()))",
)
.with_kind(ErrorKind::Duplicate)
}

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CQ005",
        name: "resource-covered-twice",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["cq-resource-unique-across-groups"],
        layers: &[Layer::Webhook, Layer::Policy(|| vec![cel_rule()])],
        doc: include_str!("resource_covered_twice.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: QuotaFields>(object: &T, out: &mut Findings) {
    let mut first = BTreeMap::new();
    for (group_index, group) in object.groups().iter().enumerate() {
        for (position, name) in group.covered_resources.iter().enumerate() {
            if out.is_full() {
                return;
            }
            let Some(earlier) = first.get(name.as_str()) else {
                first.insert(name.as_str(), group_index);
                continue;
            };
            out.duplicate(
                quota::group_path(group_index, group)
                    .field("coveredResources")
                    .item(position, name),
                name,
                format!("spec.resourceGroups[{earlier}] covers it already; keep it in one group"),
            );
        }
    }
}
