//! Kubernetes' validation of the metadata of every object (apimachinery, `api/validation/objectmeta.go`).

use crate::finding::{Findings, quoted};
use crate::name_validation::{NameErrors, dns_label, dns_subdomain, label_key, label_value};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::ObjectMeta;
use lockkeeper_api::field_path::FieldPath;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The most bytes of all annotations of an object: 256 KiB.
const ANNOTATIONS_SIZE_MAX: usize = 256 * 1024;

/// Kubernetes' own finalizers, which have no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

fn field(name: &'static str) -> FieldPath {
    FieldPath::new("metadata").field(name)
}

fn invalid(field: &FieldPath, value: &str, faults: NameErrors, out: &mut Findings) {
    for fault in faults {
        out.invalid(field.clone(), value, fault);
    }
}

/// Checks the metadata of a new object, whose name is a DNS subdomain. If the API server generates the name, only the
/// prefix can be checked.
pub(crate) fn check_on_create(metadata: &ObjectMeta, is_namespaced: bool, out: &mut Findings) {
    let generated = metadata.generate_name.as_deref().unwrap_or_default();
    if !generated.is_empty() {
        let faults = dns_subdomain(&without_random_suffix(generated));
        invalid(&field("generateName"), generated, faults, out);
    }
    match metadata.name.as_deref().unwrap_or_default() {
        "" if generated.is_empty() => out.required(field("name"), "give a name or a generateName"),
        "" => {}
        name => invalid(&field("name"), name, dns_subdomain(name), out),
    }
    match (
        is_namespaced,
        metadata.namespace.as_deref().unwrap_or_default(),
    ) {
        (true, "") => out.required(field("namespace"), "set the namespace of the object"),
        (true, name) => invalid(&field("namespace"), name, dns_label(name), out),
        (false, "") => {}
        (false, _) => out.forbidden(
            field("namespace"),
            "objects of this kind have no namespace; remove it",
        ),
    }
    if let Some(generation) = metadata.generation.filter(|it| *it < 0) {
        out.invalid(field("generation"), generation, "must not be below 0");
    }
    labels(metadata, out);
    annotations(metadata, out);
    check_owners(metadata, out);
    finalizers(metadata, out);
}

/// The prefix of a generated name in a form that can be checked as a name, because a prefix may end in '-'. As in
/// Kubernetes, the '-' and the character before it are replaced by 'a', so that character is not checked.
fn without_random_suffix(start: &str) -> Cow<'_, str> {
    let kept = start.strip_suffix('-').and_then(|rest| {
        let end = rest.len().checked_sub(1)?;
        rest.get(..end)
    });
    kept.map_or(start.into(), |kept| format!("{kept}a").into())
}

fn labels(metadata: &ObjectMeta, out: &mut Findings) {
    let field = field("labels");
    for (key, value) in metadata.labels.iter().flatten() {
        invalid(&field, key, label_key(key), out);
        invalid(&field, value, label_value(value), out);
    }
}

fn annotations(metadata: &ObjectMeta, out: &mut Findings) {
    let field = field("annotations");
    let mut size: usize = 0;
    for (key, value) in metadata.annotations.iter().flatten() {
        // As in apimachinery (`ValidateAnnotations`), the case of an annotation key is ignored.
        invalid(&field, key, label_key(&key.to_lowercase()), out);
        size = size.saturating_add(key.len()).saturating_add(value.len());
    }
    if size > ANNOTATIONS_SIZE_MAX {
        out.too_long(field, "all annotations together may have 262144 bytes");
    }
}

fn check_owners(metadata: &ObjectMeta, out: &mut Findings) {
    let field = field("ownerReferences");
    let owners = metadata.owner_references.iter().flatten();
    for owner in owners.clone() {
        let version = match owner.api_version.split_once('/') {
            Some((_, version)) => version,
            None => &owner.api_version,
        };
        for (name, value, is_empty) in [
            (
                "apiVersion",
                &owner.api_version,
                version.is_empty() || version.contains('/'),
            ),
            ("kind", &owner.kind, owner.kind.is_empty()),
            ("name", &owner.name, owner.name.is_empty()),
            ("uid", &owner.uid, owner.uid.is_empty()),
        ] {
            if is_empty {
                out.invalid(field.clone().field(name), value, "must not be empty");
            }
        }
        if owner.api_version == "v1" && owner.kind == "Event" {
            out.invalid(field.clone(), "Event", "an Event owns nothing");
        }
    }
    let is_controller = |owner: &&OwnerReference| owner.controller == Some(true);
    // The first controller is valid; each further one is reported.
    for owner in owners.filter(is_controller).skip(1) {
        let detail = "only one owner may be the controller";
        out.invalid(field.clone(), &owner.name, detail);
    }
}

fn finalizers(metadata: &ObjectMeta, out: &mut Findings) {
    let field = field("finalizers");
    let names = metadata.finalizers.as_deref().unwrap_or_default();
    for (position, name) in names.iter().enumerate() {
        invalid(&field, name, label_key(name), out);
        check_domain(name, position, out);
    }
    let has = |name: &str| names.iter().any(|other| other == name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "\"orphan\" and \"foregroundDeletion\" contradict each other";
        out.invalid(field, "orphan", detail);
    }
}

/// Checks the metadata of an update. Name, namespace and uid are immutable; labels, annotations, owners and finalizers
/// are checked if they changed. Fields that the API server writes (resource version, times) are not checked.
pub(crate) fn check_on_update(old: &ObjectMeta, new: &ObjectMeta, out: &mut Findings) {
    for (name, before, after) in [
        ("name", &old.name, &new.name),
        ("namespace", &old.namespace, &new.namespace),
        ("uid", &old.uid, &new.uid),
    ] {
        let before = before.as_deref().unwrap_or_default();
        let after = after.as_deref().unwrap_or_default();
        if before != after {
            let detail = if before.is_empty() {
                "field is immutable; leave it out".to_owned()
            } else {
                format!("field is immutable; keep {}", quoted(before))
            };
            out.invalid(field(name), after, detail);
        }
    }
    if new.generation.unwrap_or_default() < old.generation.unwrap_or_default() {
        let generation = new.generation.unwrap_or_default();
        out.invalid(field("generation"), generation, "must not become smaller");
    }
    if old.labels != new.labels {
        labels(new, out);
    }
    if old.annotations != new.annotations {
        annotations(new, out);
    }
    if old.owner_references != new.owner_references {
        check_owners(new, out);
    }
    added_finalizers(old, new, out);
}

fn added_finalizers(old: &ObjectMeta, new: &ObjectMeta, out: &mut Findings) {
    let before: BTreeSet<&String> = old.finalizers.iter().flatten().collect();
    let names = new.finalizers.as_deref().unwrap_or_default();
    let added = |name: &String| !before.contains(name);
    // A new finalizer would delay a deletion that has begun; removals stay allowed.
    if old.deletion_timestamp.is_some() && names.iter().any(added) {
        let detail = "no finalizer can be added to an object that is being deleted";
        out.forbidden(field("finalizers"), detail);
    }
    for (position, name) in names.iter().enumerate() {
        if added(name) {
            check_domain(name, position, out);
        }
    }
}

/// Checks that a finalizer has a domain or is one of Kubernetes' own.
fn check_domain(name: &str, position: usize, out: &mut Findings) {
    if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
        let detail = "must have a domain, such as \"example.com/my-finalizer\"";
        out.invalid(field("finalizers").index(position), name, detail);
    }
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "cases read better with values"
)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn metadata(fields: Value) -> ObjectMeta {
        serde_json::from_value(fields).unwrap()
    }

    fn texts(out: Findings) -> Vec<String> {
        let items = out.into_items().into_iter();
        items
            .map(|it| format!("{} {}", it.field, it.kind.reason()))
            .collect()
    }

    /// Checks the findings for a valid object with these additional fields.
    #[track_caller]
    fn check_created(fields: Value, expected: &[&str]) {
        let mut all = json!({"name": "a", "namespace": "b"});
        for (key, value) in fields.as_object().unwrap() {
            all[key] = value.clone();
        }
        let mut out = Findings::new("XX001");
        check_on_create(&metadata(all), true, &mut out);
        assert_eq!(texts(out), expected, "{fields}");
    }

    #[track_caller]
    fn check_changed(old: Value, new: Value, expected: &[&str]) {
        let mut out = Findings::new("XX001");
        check_on_update(&metadata(old), &metadata(new), &mut out);
        assert_eq!(texts(out), expected);
    }

    #[test]
    fn created_metadata_is_checked() {
        const OWNERS: &str = "metadata.ownerReferences FieldValueInvalid";
        let owner = |version: &str, kind: &str| {
            let (controller, name) = (true, "c");
            json!({"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": controller})
        };
        check_created(json!({"generation": 0}), &[]);
        let generation = "metadata.generation FieldValueInvalid";
        check_created(json!({"generation": -1}), &[generation]);
        for (length, expected) in [
            (ANNOTATIONS_SIZE_MAX - 1, vec![]),
            (
                ANNOTATIONS_SIZE_MAX,
                vec!["metadata.annotations FieldValueTooLong"],
            ),
        ] {
            let annotations = json!({"annotations": {"k": "v".repeat(length)}});
            check_created(annotations, &expected);
        }
        // The case of an annotation's key does not matter, even in its domain.
        check_created(json!({"annotations": {"Example.com/A": ""}}), &[]);
        let one = json!({"ownerReferences": [owner("batch/v1", "Job")]});
        check_created(one, &[]);
        let two = json!({"ownerReferences": [owner("v1", "Pod"), owner("v1", "Pod")]});
        check_created(two, &[OWNERS]);
        check_created(
            json!({"ownerReferences": [owner("v1", "Event")]}),
            &[OWNERS],
        );
        let version = "metadata.ownerReferences.apiVersion FieldValueInvalid";
        for bad in ["", "batch/", "a/b/c"] {
            check_created(json!({"ownerReferences": [owner(bad, "Job")]}), &[version]);
        }
        check_created(json!({"finalizers": ["orphan"]}), &[]);
        let both = json!({"finalizers": ["orphan", "foregroundDeletion"]});
        check_created(both, &["metadata.finalizers FieldValueInvalid"]);
        let alone = json!({"finalizers": ["kubernetes", "mine"]});
        check_created(alone, &["metadata.finalizers[1] FieldValueInvalid"]);
    }

    #[test]
    fn generate_name_is_checked_as_prefix() {
        for (start, is_good) in [
            ("a-", true),
            ("ab--", true),
            ("a", true),
            ("-", false),
            ("A-", true),
            ("A.b-", false),
        ] {
            assert_eq!(
                dns_subdomain(&without_random_suffix(start)).is_empty(),
                is_good,
                "{start}"
            );
        }
    }

    #[test]
    fn changed_metadata_is_checked() {
        let bad = || {
            json!({"labels": {"a": "-"}, "annotations": {"-": ""}, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "", "uid": "u"},
        ], "finalizers": ["mine"]})
        };
        check_changed(bad(), bad(), &[]);
        let all = [
            "metadata.labels FieldValueInvalid",
            "metadata.annotations FieldValueInvalid",
            "metadata.ownerReferences.name FieldValueInvalid",
            "metadata.finalizers[0] FieldValueInvalid",
        ];
        check_changed(json!({}), bad(), &all);
        check_changed(json!({"generation": 2}), json!({"generation": 2}), &[]);
        let generation = "metadata.generation FieldValueInvalid";
        check_changed(
            json!({"generation": 2}),
            json!({"generation": 1}),
            &[generation],
        );
    }
}
