//! A built-in kind.

use super::lifecycle::{Lifecycle, Release};
use super::table::Table;

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

/// A built-in kind of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltInKind {
    api_version: &'static str,
    kind: &'static str,
    /// The name of its type in the table.
    pub(super) definition: &'static str,
}

impl BuiltInKind {
    /// The kind with an `apiVersion`, such as `apps/v1`, and a name.
    #[must_use]
    pub fn find(api_version: &str, kind: &str) -> Option<Self> {
        let (api_version, kind, definition) = Table::get().kind(api_version, kind)?;
        Some(Self {
            api_version,
            kind,
            definition,
        })
    }

    /// All kinds: `apiVersion` and name.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        Table::get().kinds()
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
        let all = Table::get().versions(self.name());
        let all = all.filter_map(|it| Self::find(it, self.name()));
        let others = all.filter(|it| {
            it.group() == self.group()
                && it.version() != self.version()
                && it.removed_in().is_none()
        });
        others.map(|it| it.version().to_owned()).collect()
    }

    /// The release from which on Kubernetes does not serve the kind, if it does not serve it today.
    #[must_use]
    pub fn removed_in(&self) -> Option<Release> {
        let removed = self.lifecycle().removed;
        removed.filter(|it| *it <= Release::NEWEST)
    }

    /// The release that deprecates the kind, if it is deprecated today.
    #[must_use]
    pub fn deprecated_in(&self) -> Option<Release> {
        let deprecated = self.lifecycle().deprecated;
        deprecated.filter(|it| *it <= Release::NEWEST)
    }

    /// The kind to use instead of a removed or deprecated one: another version of it, or another kind.
    #[must_use]
    pub fn replacement(&self) -> Option<Self> {
        // The stable version is the first of its group.
        let same = Table::get().versions(self.name()).find(|it| {
            let group = it.split_once('/').map_or("", |it| it.0);
            *it != self.api_version() && group == self.group()
        });
        let same = same.and_then(|it| Self::find(it, self.name()));
        if let Some(same) = same.filter(|it| it.deprecated_in().is_none()) {
            return Some(same);
        }
        let (api_version, kind) = self.lifecycle().replacement?;
        Self::find(api_version, kind)
    }

    fn lifecycle(&self) -> Lifecycle {
        Table::get().lifecycle(self.api_version(), self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{BuiltInKind, Release};
    use crate::builtin::table::TEXT;

    #[test]
    fn newest_release_is_that_of_the_table() {
        let line = format!("# The kinds of Kubernetes {}.", Release::NEWEST);
        assert!(TEXT.starts_with(&line));
    }

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
}
