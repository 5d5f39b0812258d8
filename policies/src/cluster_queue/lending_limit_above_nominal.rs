#![doc = include_str!("lending_limit_above_nominal.md")]

use crate::cel::{CelRule, is_quantity, quantity, same_quantity};
use crate::finding::Findings;
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Layer, Rule};

fn cel_rule() -> CelRule {
    CelRule::new(
    "spec.resourceGroups[].flavors[].resources[]",
    format!(
        "!({}) || !({}) || {}.compareTo({}) <= 0",
        is_quantity("lendingLimit"),
        is_quantity("nominalQuota"),
        quantity("self.lendingLimit"),
        quantity("self.nominalQuota")
    ),
    "must be at most the nominalQuota",
)
.message_expression(
    "'\"' + string(self.lendingLimit) + '\": must be at most the nominalQuota, which is ' + string(self.nominalQuota)",
)
.field_path(".lendingLimit")
.unchanged_when(format!(
    "{} && {}",
    same_quantity("nominalQuota"),
    same_quantity("lendingLimit")
))
}

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CQ007",
        name: "lending-limit-above-nominal",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["cq-lending-limit-le-nominal"],
        layers: &[Layer::Webhook, Layer::Schema(|| vec![cel_rule()])],
        doc: include_str!("lending_limit_above_nominal.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: QuotaFields>(object: &T, out: &mut Findings) {
    quota::visit_quotas(object.groups(), out, |place, out| {
        let nominal = place.quota.nominal_quota;
        match place.quota.lending_limit {
            Some(limit) if limit > nominal => out.invalid(
                place.field("lendingLimit"),
                limit,
                format!("must be at most the nominalQuota, which is {nominal}"),
            ),
            _ => {}
        }
    });
}
