#![doc = include_str!("reserved_name.md")]

use crate::finding::Findings;
use crate::priority_admission::system_class;
use crate::rule::{Check, Context, Rule};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::SYSTEM_PREFIX;

pub(super) const RULE: Rule<PriorityClass> = Rule::mirrored(
    "PC004",
    "reserved-priority-class-name",
    &["pc-system-prefix-reserved", "pc-update-mutable-fields"],
    include_str!("reserved_name.md"),
    Check::Create(check),
);

fn check(class: &PriorityClass, _: &Context<'_>, out: &mut Findings) {
    let name = class.metadata.name.as_deref().unwrap_or_default();
    if !name.starts_with(SYSTEM_PREFIX) {
        return;
    }
    let value = class.value.unwrap_or_default();
    let detail = match system_class(name) {
        None => "names that begin with \"system-\" are reserved for Kubernetes; choose another"
            .to_owned(),
        Some(own) if own.value != value => {
            format!(
                "the built-in class has the value {}, not {value}",
                own.value
            )
        }
        Some(_) if class.global_default == Some(true) => {
            "the built-in class is not the global default".to_owned()
        }
        Some(_) => return,
    };
    out.forbidden(FieldPath::new("metadata.name"), detail);
}
