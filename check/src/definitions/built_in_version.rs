//! Findings about versions of built-in kinds that a release of Kubernetes does not serve or deprecates.

use lockkeeper_api::field_path::FieldPath;
use lockkeeper_crd_schema::builtin::{BuiltInKind, Release};
use lockkeeper_policies::finding::{ErrorKind, Finding, quoted};
use lockkeeper_policies::schema::SCHEMA_VIOLATION;
use serde_json::Value;
use std::borrow::Cow;

/// The finding that a release does not serve the version of a built-in kind: not yet or not any more.
/// `None` if the kind is not a built-in one of any supported release.
pub(crate) fn unserved_version(release: Release, object: &Value) -> Option<Finding> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let in_release = BuiltInKind::find_in(release, api_version, kind);
    let kind = match in_release {
        Some(kind) => kind,
        None => BuiltInKind::find_in_any(api_version, kind)?,
    };
    let name = kind.name();
    // The types of later releases do not have it.
    let gone = Release::SUPPORTED
        .into_iter()
        .find(|it| *it > kind.release());
    let removed = kind.removed_in().into_iter().chain(gone).min();
    let (reason, no_replacement) = match removed.filter(|it| *it <= release) {
        Some(removed) => (
            format!("Kubernetes {removed} and newer do not serve this version of {name}"),
            "; there is no replacement",
        ),
        None if in_release.is_some() => return None,
        None => {
            let (releases, is_one) = release_names(&kind.served_in());
            let verb = if is_one { "does" } else { "do" };
            (
                format!(
                    "Kubernetes {release} does not serve this version of {name}; {releases} {verb}"
                ),
                "",
            )
        }
    };
    let remedy = match kind.replacement_in(release) {
        Some(other) => format!("; write {}", other_name(&kind, &other)),
        None => no_replacement.to_owned(),
    };
    let version = Value::from(kind.api_version());
    let field = FieldPath::new("apiVersion");
    let reason = reason + &remedy;
    Some(Finding::decode_error(field, Some(&version), &reason))
}

/// The finding that a later release will not serve a version.
pub(super) fn deprecated_version(kind: &BuiltInKind) -> Option<Finding> {
    let deprecated = kind.deprecated_in()?;
    let mut detail = format!("deprecated since Kubernetes {deprecated}");
    if let Some(other) = kind.replacement() {
        detail.push_str("; write ");
        detail.push_str(&other_name(kind, &other));
    }
    Some(Finding {
        rule: Cow::Borrowed(SCHEMA_VIOLATION),
        field: FieldPath::new("apiVersion"),
        kind: ErrorKind::Invalid,
        value: Some(quoted(kind.api_version())),
        detail: detail.into(),
    })
}

/// The releases that have a field, such as `Kubernetes 1.35 and later have it`.
pub(super) fn field_releases(releases: &[Release]) -> String {
    let (names, is_one) = release_names(releases);
    let verb = if is_one { "has" } else { "have" };
    format!("Kubernetes {names} {verb} it")
}

/// The names of releases, the oldest first, and whether it is one: `1.35 and later` if the newest one is among them.
fn release_names(releases: &[Release]) -> (String, bool) {
    let missing = |it: &Release| !releases.contains(it);
    let first = releases.first().copied().unwrap_or_default();
    let mut from_first = Release::SUPPORTED.into_iter().filter(|it| *it >= first);
    if !from_first.any(|it| missing(&it)) {
        return (format!("{first} and later"), false);
    }
    let names: Vec<String> = releases.iter().map(Release::to_string).collect();
    let text = match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    };
    (text, names.len() == 1)
}

/// The version of a replacement, with its name if that is another one.
fn other_name(kind: &BuiltInKind, other: &BuiltInKind) -> String {
    if kind.name() == other.name() {
        other.api_version().to_owned()
    } else {
        format!("{} {}", other.api_version(), other.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{Release, field_releases, unserved_version};
    use serde_json::json;

    fn release(text: &str) -> Release {
        text.parse().unwrap()
    }

    /// The detail of the finding about a version; empty if there is none.
    fn detail(version: &str, api_version: &str, kind: &str) -> String {
        let object = json!({"apiVersion": api_version, "kind": kind});
        let found = unserved_version(release(version), &object);
        found.map_or(String::new(), |it| it.detail.to_string())
    }

    #[test]
    fn versions_of_later_releases_name_them_and_the_version_to_use() {
        for (version, api_version, kind, expected) in [
            (
                "1.33",
                "resource.k8s.io/v1",
                "DeviceClass",
                "1.34 and later do; write resource.k8s.io/v1beta2",
            ),
            (
                "1.35",
                "lifecycle.k8s.io/v1alpha1",
                "EvictionRequest",
                "1.37 and later do",
            ),
            (
                "1.36",
                "scheduling.k8s.io/v1beta1",
                "PodGroup",
                "1.37 and later do; write scheduling.k8s.io/v1alpha2",
            ),
            (
                "1.34",
                "scheduling.k8s.io/v1alpha2",
                "Workload",
                "1.36 does",
            ),
        ] {
            let start = format!("Kubernetes {version} does not serve this version of {kind}; ");
            let detail = detail(version, api_version, kind);
            assert_eq!(detail, start + expected, "{version} {api_version}");
        }
    }

    #[test]
    fn removed_versions_name_the_release_and_the_replacement() {
        for (version, api_version, kind, removed, remedy) in [
            (
                "1.33",
                "extensions/v1beta1",
                "Ingress",
                "1.22",
                "write networking.k8s.io/v1",
            ),
            (
                "1.37",
                "scheduling.k8s.io/v1alpha1",
                "Workload",
                "1.36",
                "write scheduling.k8s.io/v1beta1",
            ),
            (
                "1.37",
                "scheduling.k8s.io/v1alpha2",
                "PodGroup",
                "1.37",
                "write scheduling.k8s.io/v1beta1",
            ),
            (
                "1.37",
                "v1",
                "PodStatusResult",
                "1.37",
                "there is no replacement",
            ),
            // Only the types of older releases have it, which do not serve it either.
            (
                "1.37",
                "autoscaling/v2beta1",
                "HorizontalPodAutoscaler",
                "1.25",
                "write autoscaling/v2",
            ),
        ] {
            let expected = format!(
                "Kubernetes {removed} and newer do not serve this version of {kind}; {remedy}"
            );
            let detail = detail(version, api_version, kind);
            assert_eq!(detail, expected, "{version} {api_version}");
        }
    }

    #[test]
    fn served_versions_and_other_kinds_have_no_finding() {
        for (version, api_version, kind) in [
            ("1.33", "apps/v1", "Deployment"),
            ("1.34", "resource.k8s.io/v1", "DeviceClass"),
            ("1.36", "scheduling.k8s.io/v1alpha2", "PodGroup"),
            ("1.33", "example.com/v1", "Deployment"),
        ] {
            let detail = detail(version, api_version, kind);
            assert_eq!(detail, "", "{version} {api_version} {kind}");
        }
    }

    #[test]
    fn releases_with_a_field_are_named() {
        for (releases, expected) in [
            (
                &["1.35", "1.36", "1.37"][..],
                "Kubernetes 1.35 and later have it",
            ),
            (&["1.37"], "Kubernetes 1.37 and later have it"),
            (&["1.35"], "Kubernetes 1.35 has it"),
            (&["1.34", "1.35"], "Kubernetes 1.34 and 1.35 have it"),
            (
                &["1.34", "1.35", "1.36"],
                "Kubernetes 1.34, 1.35 and 1.36 have it",
            ),
        ] {
            let releases: Vec<Release> = releases.iter().map(|it| release(it)).collect();
            assert_eq!(field_releases(&releases), expected);
        }
    }
}
