//! A built-in kind.

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
}
