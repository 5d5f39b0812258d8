//! CEL about the metadata of an object, given the name of its variable.

/// The condition that an object has a label.
#[must_use]
pub fn has_label(object: &str, key: &str) -> String {
    format!("(has({object}.metadata.labels) && '{key}' in {object}.metadata.labels)")
}

/// The condition that a label is the same in two objects, or in neither.
#[must_use]
pub fn same_label(new: &str, old: &str, key: &str) -> String {
    let (has_new, has_old) = (has_label(new, key), has_label(old, key));
    format!(
        "{has_new} ? ({has_old} && {new}.metadata.labels['{key}'] == {old}.metadata.labels['{key}']) : !{has_old}"
    )
}

/// The list of the controller references of an object, by the fields that identify the owner. There is at most one.
#[must_use]
pub fn controllers(object: &str) -> String {
    format!(
        "(has({object}.metadata.ownerReferences) ? {object}.metadata.ownerReferences.filter(it, has(it.controller) \
         && it.controller).map(it, [it.apiVersion, it.kind, it.name, it.uid]) : [])"
    )
}
