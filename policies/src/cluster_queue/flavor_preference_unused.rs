#![doc = include_str!("flavor_preference_unused.md")]

use crate::cel::CelRule;
use crate::finding::Findings;
use crate::quota::QueueFields;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::field_path::FieldPath;

fn cel_rule() -> CelRule {
    CelRule::new(
    "spec.flavorFungibility",
    "!has(self.preference) || (has(self.whenCanBorrow) && self.whenCanBorrow == 'TryNextFlavor' \
     && (!has(self.whenCanPreempt) || self.whenCanPreempt == 'TryNextFlavor'))",
    "there is something to prefer only when all flavors are tried; set whenCanBorrow and whenCanPreempt to \
     TryNextFlavor, or remove the preference",
)
.message_expression(
    "'\"' + self.preference + '\": there is something to prefer only when all flavors are tried; set whenCanBorrow and \
     whenCanPreempt to TryNextFlavor, or remove the preference'",
)
.field_path(".preference")
.unchanged_when(
    "has(oldSelf.preference) && self.preference == oldSelf.preference \
     && !(has(oldSelf.whenCanBorrow) && oldSelf.whenCanBorrow == 'TryNextFlavor' \
     && (!has(oldSelf.whenCanPreempt) || oldSelf.whenCanPreempt == 'TryNextFlavor'))",
)
}

pub(crate) const fn rule<T: QueueFields>() -> Rule<T> {
    Rule {
        id: "CQ012",
        name: "flavor-preference-unused",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["cq-fungibility-preference-needs-try-next"],
        layers: &[Layer::Webhook, Layer::Schema(|| vec![cel_rule()])],
        doc: include_str!("flavor_preference_unused.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: QueueFields>(object: &T, out: &mut Findings) {
    if let Some(preference) = object.fungibility_preference()
        && !object.tries_all_flavors()
    {
        out.invalid(
            FieldPath::new("spec.flavorFungibility.preference"),
            preference,
            "there is something to prefer only when all flavors are tried; set whenCanBorrow and \
             whenCanPreempt to TryNextFlavor, or remove the preference",
        );
    }
}
