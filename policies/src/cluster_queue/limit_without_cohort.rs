//! Limits on borrowing and lending in a queue that has nobody to borrow from or lend to.
#![doc = include_str!("borrowing_limit_without_cohort.md")]
#![doc = include_str!("lending_limit_without_cohort.md")]

use crate::expression::Expression;
use crate::finding::Findings;
use crate::quota;
use crate::quota::HasQuota;
use crate::rule::{Check, Layer, Rule};

const BORROWING: Expression = Expression::new(
    "spec",
    "(has(self.cohortName) && self.cohortName != '') || !has(self.resourceGroups) || self.resourceGroups.all(group, \
     group.flavors.all(flavor, flavor.resources.all(it, !has(it.borrowingLimit))))",
    "a borrowingLimit is set, but there is nobody to borrow from without a cohort; set spec.cohortName or remove the limit",
)

.blaming(".resourceGroups")
.kept(
    "!(has(oldSelf.cohortName) && oldSelf.cohortName != '') && self.resourceGroups.all(group, \
     group.flavors.all(flavor, flavor.resources.all(it, !has(it.borrowingLimit) || (has(oldSelf.resourceGroups) \
     && oldSelf.resourceGroups.exists(before, before.coveredResources[0] == group.coveredResources[0] \
     && before.flavors.exists(of, of.name == flavor.name && of.resources.exists(was, was.name == it.name \
     && has(was.borrowingLimit) && quantity(string(was.borrowingLimit)).compareTo(quantity(string(it.borrowingLimit))) == 0)))))))",
);
const LENDING: Expression = Expression::new(
    "spec",
    "(has(self.cohortName) && self.cohortName != '') || !has(self.resourceGroups) || self.resourceGroups.all(group, \
     group.flavors.all(flavor, flavor.resources.all(it, !has(it.lendingLimit))))",
    "a lendingLimit is set, but there is nobody to lend to without a cohort; set spec.cohortName or remove the limit",
)

.blaming(".resourceGroups")
.kept(
    "!(has(oldSelf.cohortName) && oldSelf.cohortName != '') && self.resourceGroups.all(group, \
     group.flavors.all(flavor, flavor.resources.all(it, !has(it.lendingLimit) || (has(oldSelf.resourceGroups) \
     && oldSelf.resourceGroups.exists(before, before.coveredResources[0] == group.coveredResources[0] \
     && before.flavors.exists(of, of.name == flavor.name && of.resources.exists(was, was.name == it.name \
     && has(was.lendingLimit) && quantity(string(was.lendingLimit)).compareTo(quantity(string(it.lendingLimit))) == 0)))))))",
);

pub(crate) const fn borrowing_rule<T: HasQuota>() -> Rule<T> {
    Rule {
        id: "CQ002",
        name: "borrowing-limit-without-cohort",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["cq-borrowing-limit-needs-cohort"],
        layers: &[Layer::Webhook, Layer::Schema(&[BORROWING])],
        doc: include_str!("borrowing_limit_without_cohort.md"),
        check: Check::Object(borrowing::<T>),
    }
}

pub(crate) const fn lending_rule<T: HasQuota>() -> Rule<T> {
    Rule {
        id: "CQ003",
        name: "lending-limit-without-cohort",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["cq-lending-limit-needs-cohort"],
        layers: &[Layer::Webhook, Layer::Schema(&[LENDING])],
        doc: include_str!("lending_limit_without_cohort.md"),
        check: Check::Object(lending::<T>),
    }
}

fn borrowing<T: HasQuota>(object: &T, out: &mut Findings) {
    if object.is_in_cohort() {
        return;
    }
    quota::each(object.groups(), out, |place, out| {
        if let Some(limit) = place.quota.borrowing_limit {
            out.invalid(
                place.field("borrowingLimit"),
                limit,
                "there is nobody to borrow from without a cohort; set spec.cohortName or remove \
                 the limit",
            );
        }
    });
}

fn lending<T: HasQuota>(object: &T, out: &mut Findings) {
    if object.is_in_cohort() {
        return;
    }
    quota::each(object.groups(), out, |place, out| {
        if let Some(limit) = place.quota.lending_limit {
            out.invalid(
                place.field("lendingLimit"),
                limit,
                "there is nobody to lend to without a cohort; set spec.cohortName or remove the \
                 limit",
            );
        }
    });
}
