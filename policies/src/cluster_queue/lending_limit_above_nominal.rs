#![doc = include_str!("lending_limit_above_nominal.md")]

use crate::cel::{CelRule, is_amount, quantity, same_amount};
use crate::finding::Findings;
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Layer, Rule};

const EXPRESSION: CelRule = CelRule::new(
    "spec.resourceGroups[].flavors[].resources[]",
    concat!(
        "!(",
        is_amount!("lendingLimit"),
        ") || !(",
        is_amount!("nominalQuota"),
        ") || ",
        quantity!("self.lendingLimit"),
        ".compareTo(",
        quantity!("self.nominalQuota"),
        ") <= 0",
    ),
    "must be at most the nominalQuota",
)
.message_expression(
    "'\"' + string(self.lendingLimit) + '\": must be at most the nominalQuota, which is ' + string(self.nominalQuota)",
)
.field_path(".lendingLimit")
.unchanged_when(concat!(
    same_amount!("nominalQuota"),
    " && ",
    same_amount!("lendingLimit")
));

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CQ007",
        name: "lending-limit-above-nominal",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["cq-lending-limit-le-nominal"],
        layers: &[Layer::Webhook, Layer::Schema(&[EXPRESSION])],
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
