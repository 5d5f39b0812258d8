//! A built-in kind.

use super::lifecycle::Lifecycle;
use super::release::Release;
use super::table::{KindIndex, Table};

/// The kinds without a namespace.
const CLUSTER_SCOPED: [&str; 39] = [
    "APIService",
    "CSIDriver",
    "CSINode",
    "CertificateSigningRequest",
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterTrustBundle",
    "ComponentStatus",
    "CustomResourceDefinition",
    "DeviceClass",
    "DeviceTaintRule",
    "FlowSchema",
    "IPAddress",
    "IngressClass",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "ResourcePoolStatusRequest",
    "ResourceSlice",
    "RuntimeClass",
    "SelfSubjectAccessReview",
    "SelfSubjectReview",
    "SelfSubjectRulesReview",
    "ServiceCIDR",
    "StorageClass",
    "StorageVersion",
    "StorageVersionMigration",
    "SubjectAccessReview",
    "TokenReview",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "VolumeAttachment",
    "VolumeAttributesClass",
];

/// A built-in kind of a release of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltInKind {
    api_version: &'static str,
    kind: &'static str,
    /// The name of its type in the table.
    pub(super) definition: &'static str,
    /// The kinds and types of the release.
    pub(super) table: &'static Table,
}

impl BuiltInKind {
    /// The kind of the newest supported release with an `apiVersion`, such as `apps/v1`, and a name.
    #[must_use]
    pub fn find(api_version: &str, kind: &str) -> Option<Self> {
        find_in_table(Table::newest(), api_version, kind)
    }

    /// The kind of a release with an `apiVersion`, such as `apps/v1`, and a name, also if the release does not serve it any
    /// more ([`Self::removed_in`]). `None` if the release does not have the kind or is not supported. The first call for a
    /// release parses its table, about 4 ms.
    #[must_use]
    pub fn find_in(release: Release, api_version: &str, kind: &str) -> Option<Self> {
        find_in_table(Table::of(release)?, api_version, kind)
    }

    /// Whether one of the supported releases has a kind. Parses no table.
    #[must_use]
    pub fn is_in_any(api_version: &str, kind: &str) -> bool {
        !KindIndex::get().releases(api_version, kind).is_empty()
    }

    /// The kind of the newest of the supported releases that have it.
    #[must_use]
    pub fn find_in_any(api_version: &str, kind: &str) -> Option<Self> {
        let releases = KindIndex::get().releases(api_version, kind);
        Self::find_in(*releases.last()?, api_version, kind)
    }

    /// All kinds of the newest supported release: `apiVersion` and name.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        Self::names_in(Release::NEWEST)
    }

    /// All kinds of a release, those included that it does not serve any more: `apiVersion` and name. None if the release
    /// is not supported. Parses no table.
    pub fn names_in(release: Release) -> impl Iterator<Item = (&'static str, &'static str)> {
        KindIndex::get().kinds(release)
    }

    /// The release whose fields and versions count.
    #[must_use]
    pub fn release(&self) -> Release {
        self.table.release()
    }

    /// The supported releases that serve the kind, the oldest first.
    #[must_use]
    pub fn served_in(&self) -> Vec<Release> {
        let releases = KindIndex::get().releases(self.api_version, self.kind);
        let kinds = releases
            .iter()
            .filter_map(|it| Self::find_in(*it, self.api_version, self.kind));
        let served = kinds.filter(|it| it.removed_in().is_none());
        served.map(|it| it.release()).collect()
    }

    /// The `apiVersion`, such as `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> &'static str {
        self.api_version
    }

    /// The name of the kind, such as `Deployment`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind
    }

    /// Whether objects of the kind have a namespace.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        !CLUSTER_SCOPED.contains(&self.kind)
    }

    /// The group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.api_version.split_once('/').map_or("", |it| it.0)
    }

    /// The version, such as `v1`.
    #[must_use]
    pub fn version(&self) -> &'static str {
        let version = self.api_version.split_once('/');
        version.map_or(self.api_version, |it| it.1)
    }

    /// The other versions of the kind in its group that Kubernetes serves.
    #[must_use]
    pub fn other_versions(&self) -> Vec<String> {
        let all = self.table.versions(self.name());
        let all = all.filter_map(|it| Self::find_in(self.release(), it, self.name()));
        let others = all.filter(|it| {
            it.group() == self.group()
                && it.version() != self.version()
                && it.removed_in().is_none()
        });
        others.map(|it| it.version().to_owned()).collect()
    }

    /// The release from which on Kubernetes does not serve the kind, if [`Self::release`] does not serve it any more.
    #[must_use]
    pub fn removed_in(&self) -> Option<Release> {
        lifecycle(self).removed_by(self.release())
    }

    /// The release that deprecates the kind, if it is deprecated in [`Self::release`].
    #[must_use]
    pub fn deprecated_in(&self) -> Option<Release> {
        let deprecated = lifecycle(self).deprecated;
        deprecated.filter(|it| *it <= self.release())
    }

    /// The kind to use instead of a removed or deprecated one: another version of it, or another kind.
    #[must_use]
    pub fn replacement(&self) -> Option<Self> {
        self.replacement_in(self.release())
    }

    /// The kind of a release to use instead of this one: the most stable other version of it that the release has and does
    /// not deprecate, or another kind. `None` if there is none, or the release is not supported.
    #[must_use]
    pub fn replacement_in(&self, release: Release) -> Option<Self> {
        let table = Table::of(release)?;
        let others = table.versions(self.name()).filter_map(|it| {
            let other = find_in_table(table, it, self.name())?;
            let is_other = it != self.api_version() && other.group() == self.group();
            (is_other && other.deprecated_in().is_none()).then_some(other)
        });
        if let Some(same) = others.max_by_key(|it| stability(it.version())) {
            return Some(same);
        }
        let (api_version, kind) = lifecycle(self).replacement?;
        find_in_table(table, api_version, kind)
    }
}

fn find_in_table(table: &'static Table, api_version: &str, kind: &str) -> Option<BuiltInKind> {
    let (api_version, kind, definition) = table.kind(api_version, kind)?;
    Some(BuiltInKind {
        api_version,
        kind,
        definition,
        table,
    })
}

fn lifecycle(kind: &BuiltInKind) -> Lifecycle {
    kind.table.lifecycle(kind.api_version, kind.kind)
}

/// The order of versions: alpha, beta and stable ones, later ones last.
fn stability(version: &str) -> (bool, bool, &str) {
    let is_alpha = version.contains("alpha");
    (!is_alpha, !version.contains("beta"), version)
}

#[cfg(test)]
mod tests {
    use super::{BuiltInKind, Release};
    #[test]
    fn removed_and_deprecated_kinds_have_replacements() {
        for (api_version, kind, deprecated, removed, replacement) in [
            ("apps/v1", "Deployment", "", "", ""),
            (
                "apps/v1beta2",
                "Deployment",
                "1.9",
                "1.16",
                "apps/v1 Deployment",
            ),
            (
                "extensions/v1beta1",
                "Ingress",
                "1.14",
                "1.22",
                "networking.k8s.io/v1 Ingress",
            ),
            (
                "networking.k8s.io/v1beta1",
                "IngressClass",
                "1.19",
                "1.22",
                "networking.k8s.io/v1 IngressClass",
            ),
            ("extensions/v1beta1", "Scale", "1.2", "1.16", ""),
            ("v1", "ComponentStatus", "1.19", "", ""),
            (
                "v1",
                "Endpoints",
                "1.33",
                "",
                "discovery.k8s.io/v1 EndpointSlice",
            ),
            // Deprecated in a later release.
            ("lifecycle.k8s.io/v1alpha1", "Eviction", "", "", ""),
        ] {
            let found = BuiltInKind::find(api_version, kind).unwrap();
            let text = |it: Option<Release>| it.map_or(String::new(), |it| it.to_string());
            assert_eq!(
                text(found.deprecated_in()),
                deprecated,
                "{api_version} {kind}"
            );
            assert_eq!(text(found.removed_in()), removed, "{api_version} {kind}");
            let other = found.replacement();
            let other = other.map_or(String::new(), |it| {
                format!("{} {}", it.api_version(), it.name())
            });
            assert_eq!(other, replacement, "{api_version} {kind}");
        }
    }

    #[test]
    fn kinds_and_their_lifecycles_are_those_of_the_release() {
        let text = |it: Option<Release>| it.map_or("-".to_owned(), |it| it.to_string());
        let classes = ("storage.k8s.io/v1beta1", "VolumeAttributesClass");
        let claims = ("resource.k8s.io/v1beta1", "ResourceClaim");
        for (release, (api_version, kind), expected) in [
            ("1.33", classes, "- - -"),
            ("1.34", classes, "1.34 - storage.k8s.io/v1"),
            ("1.37", classes, "1.34 1.37 storage.k8s.io/v1"),
            ("1.33", claims, "- - resource.k8s.io/v1beta2"),
            ("1.33", ("resource.k8s.io/v1", "ResourceClaim"), ""),
            (
                "1.35",
                ("autoscaling/v2beta2", "HorizontalPodAutoscaler"),
                "1.23 1.26 autoscaling/v2",
            ),
            (
                "1.36",
                ("autoscaling/v2beta2", "HorizontalPodAutoscaler"),
                "",
            ),
            ("1.36", ("scheduling.k8s.io/v1alpha2", "Workload"), "- - -"),
            ("1.32", ("v1", "Pod"), ""),
        ] {
            let mut parts = release.split('.').map(|it| it.parse().unwrap());
            let release = Release {
                major: parts.next().unwrap(),
                minor: parts.next().unwrap(),
            };
            let found = BuiltInKind::find_in(release, api_version, kind);
            let actual = found.map_or(String::new(), |it| {
                let other = it.replacement().map_or("-", |it| it.api_version());
                format!(
                    "{} {} {other}",
                    text(it.deprecated_in()),
                    text(it.removed_in())
                )
            });
            assert_eq!(actual, expected, "{release} {api_version} {kind}");
        }
    }

    #[test]
    fn kinds_name_the_releases_that_serve_them() {
        for (api_version, kind, expected) in [
            ("v1", "Pod", "1.33 1.34 1.35 1.36 1.37"),
            ("resource.k8s.io/v1", "ResourceClaim", "1.34 1.35 1.36 1.37"),
            ("scheduling.k8s.io/v1alpha2", "Workload", "1.36"),
            (
                "storage.k8s.io/v1beta1",
                "VolumeAttributesClass",
                "1.33 1.34 1.35 1.36",
            ),
            ("autoscaling/v2beta2", "HorizontalPodAutoscaler", ""),
        ] {
            let kind = BuiltInKind::find_in_any(api_version, kind).unwrap();
            let releases: Vec<_> = kind.served_in().iter().map(Release::to_string).collect();
            assert_eq!(
                releases.join(" "),
                expected,
                "{api_version} {}",
                kind.name()
            );
        }
        assert_eq!(BuiltInKind::find_in_any("example.com/v1", "Pod"), None);
    }
}
