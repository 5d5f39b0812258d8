#![doc = include_str!("limit_without_parent.md")]

use crate::expression::Expression;
use crate::finding::Findings;
use crate::quota;
use crate::quota::HasQuota;
use crate::rule::{Check, Layer, Rule};

const BORROWING: Expression = Expression::new(
    "spec",
    "(has(self.parentName) && self.parentName != '') || !has(self.resourceGroups) || self.resourceGroups.all(group, \
     group.flavors.all(flavor, flavor.resources.all(it, !has(it.borrowingLimit))))",
    "a borrowingLimit is set, but a root cohort has nobody to borrow from or lend to; set spec.parentName or remove the limit",
)

.blaming(".resourceGroups")
.kept(
    "!(has(oldSelf.parentName) && oldSelf.parentName != '') && self.resourceGroups.all(group, \
     group.flavors.all(flavor, flavor.resources.all(it, !has(it.borrowingLimit) || (has(oldSelf.resourceGroups) \
     && oldSelf.resourceGroups.exists(before, before.coveredResources[0] == group.coveredResources[0] \
     && before.flavors.exists(of, of.name == flavor.name && of.resources.exists(was, was.name == it.name \
     && has(was.borrowingLimit) && quantity(string(was.borrowingLimit)).compareTo(quantity(string(it.borrowingLimit))) == 0)))))))",
);
const LENDING: Expression = Expression::new(
    "spec",
    "(has(self.parentName) && self.parentName != '') || !has(self.resourceGroups) || self.resourceGroups.all(group, \
     group.flavors.all(flavor, flavor.resources.all(it, !has(it.lendingLimit))))",
    "a lendingLimit is set, but a root cohort has nobody to borrow from or lend to; set spec.parentName or remove the limit",
)

.blaming(".resourceGroups")
.kept(
    "!(has(oldSelf.parentName) && oldSelf.parentName != '') && self.resourceGroups.all(group, \
     group.flavors.all(flavor, flavor.resources.all(it, !has(it.lendingLimit) || (has(oldSelf.resourceGroups) \
     && oldSelf.resourceGroups.exists(before, before.coveredResources[0] == group.coveredResources[0] \
     && before.flavors.exists(of, of.name == flavor.name && of.resources.exists(was, was.name == it.name \
     && has(was.lendingLimit) && quantity(string(was.lendingLimit)).compareTo(quantity(string(it.lendingLimit))) == 0)))))))",
);

pub(crate) const fn rule<T: HasQuota>() -> Rule<T> {
    Rule {
        id: "CO001",
        name: "limit-without-parent",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["cohort-limits-need-parent"],
        layers: &[Layer::Webhook, Layer::Schema(&[BORROWING, LENDING])],
        doc: include_str!("limit_without_parent.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: HasQuota>(object: &T, out: &mut Findings) {
    if object.is_in_cohort() {
        return;
    }
    quota::each(object.groups(), out, |place, out| {
        let limits = [
            ("borrowingLimit", place.quota.borrowing_limit),
            ("lendingLimit", place.quota.lending_limit),
        ];
        for (name, limit) in limits {
            if let Some(limit) = limit {
                out.invalid(
                    place.field(name),
                    limit,
                    "a root cohort has nobody to borrow from or lend to; set spec.parentName or \
                     remove the limit",
                );
            }
        }
    });
}
