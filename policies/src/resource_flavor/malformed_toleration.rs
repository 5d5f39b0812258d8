#![doc = include_str!("malformed_toleration.md")]

use crate::cel::CelRule;
use crate::finding::Findings;
use crate::name_validation;
use crate::rule::{Check, Layer, Rule};
use k8s_openapi::api::core::v1::Toleration;
use lockkeeper_api::ResourceFlavor;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

const EXISTS: &str = "Exists";
const NO_EXECUTE: &str = "NoExecute";

fn key() -> CelRule {
    CelRule::new(
    "spec.tolerations[]",
    "(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')",
    "must be Exists without a key, which tolerates all keys; or give a key",
)
.message_expression(
    "'\"' + (has(self.operator) ? self.operator : '') + '\": must be Exists without a key, which tolerates all keys; or \
     give a key'",
)
.field_path(".operator")
.unchanged_when(
    "!(has(oldSelf.key) && oldSelf.key != '') && has(self.operator) == has(oldSelf.operator) \
     && (!has(self.operator) || self.operator == oldSelf.operator)",
)
}

fn seconds() -> CelRule {
    CelRule::new(
    "spec.tolerations[]",
    "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
    "must be NoExecute with tolerationSeconds; or leave out tolerationSeconds",
)
.message_expression(
    "'\"' + (has(self.effect) ? self.effect : '') + '\": must be NoExecute with tolerationSeconds; or leave out \
     tolerationSeconds'",
)
.field_path(".effect")
.unchanged_when(
    "has(oldSelf.tolerationSeconds) && has(self.effect) == has(oldSelf.effect) \
     && (!has(self.effect) || self.effect == oldSelf.effect)",
)
}

fn no_value() -> CelRule {
    CelRule::new(
    "spec.tolerations[]",
    "!has(self.value) || self.value == '' || !has(self.operator) || self.operator != 'Exists'",
    "must be left out with the operator Exists; with Equal it is compared",
)
.message_expression("'\"' + self.value + '\": must be left out with the operator Exists; with Equal it is compared'")
.field_path(".value")
.unchanged_when(
    "has(oldSelf.operator) && oldSelf.operator == 'Exists' && has(oldSelf.value) && self.value == oldSelf.value",
)
}

fn value() -> CelRule {
    CelRule::new(
    "spec.tolerations[]",
    "!has(self.value) || (has(self.operator) && self.operator == 'Exists') \
     || !format.labelValue().validate(self.value).hasValue()",
    "must be a label value: alphanumeric characters, '-', '_' or '.', with an alphanumeric one first and last",
)
.message_expression(
    "'\"' + self.value + '\": must be a label value: alphanumeric characters, - and _ and ., with an alphanumeric one \
     first and last'",
)
.field_path(".value")
.unchanged_when(
    "!(has(oldSelf.operator) && oldSelf.operator == 'Exists') && has(oldSelf.value) && self.value == oldSelf.value",
)
}

pub(super) const RULE: Rule<ResourceFlavor> = Rule {
    id: "RF005",
    name: "malformed-toleration",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &[
        "toleration-empty-key-exists",
        "toleration-seconds-need-no-execute",
        "toleration-exists-no-value",
    ],
    layers: &[
        Layer::Webhook,
        Layer::Schema(|| vec![key(), seconds(), no_value(), value()]),
    ],
    doc: include_str!("malformed_toleration.md"),
    check: Check::Object(check),
};

fn check(flavor: &ResourceFlavor, out: &mut Findings) {
    for (position, toleration) in flavor.spec.tolerations.iter().enumerate() {
        let field = |name| {
            FieldPath::new("spec.tolerations")
                .index(position)
                .field(name)
        };
        let operator = toleration.operator.as_deref().unwrap_or_default();
        if toleration.key.as_deref().unwrap_or_default().is_empty() && operator != EXISTS {
            out.invalid(
                field("operator"),
                operator,
                "must be Exists without a key, which tolerates all keys; or give a key",
            );
        }
        let effect = toleration.effect.as_deref().unwrap_or_default();
        if toleration.toleration_seconds.is_some() && effect != NO_EXECUTE {
            out.invalid(
                field("effect"),
                effect,
                "must be NoExecute with tolerationSeconds; or leave out tolerationSeconds",
            );
        }
        for fault in faults_of_value(toleration) {
            let value = toleration.value.as_deref().unwrap_or_default();
            out.invalid(field("value"), value, fault);
        }
    }
}

fn faults_of_value(toleration: &Toleration) -> Vec<&'static str> {
    let value = toleration.value.as_deref().unwrap_or_default();
    if toleration.operator.as_deref() != Some(EXISTS) {
        name_validation::label_value(value)
    } else if value.is_empty() {
        Vec::new()
    } else {
        vec!["must be left out with the operator Exists; with Equal it is compared"]
    }
}
