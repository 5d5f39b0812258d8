//! Helpers for object metadata and status conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, OwnerReference};

/// The condition of this type, if there is one.
#[must_use]
pub fn find_condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|it| it.type_ == type_)
}

/// Whether the condition of this type exists and is `True`.
#[must_use]
pub fn is_condition_true(conditions: &[Condition], type_: &str) -> bool {
    find_condition(conditions, type_).is_some_and(|it| it.status == "True")
}

/// The owner reference with `controller: true`; an object has at most one.
#[must_use]
pub fn controlling_owner(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|it| it.controller == Some(true))
}

/// `metadata.resourceVersion` as a number; `None` if it is unset or not a number.
#[must_use]
pub fn resource_version(metadata: &ObjectMeta) -> Option<u64> {
    metadata.resource_version.as_deref()?.parse().ok()
}
