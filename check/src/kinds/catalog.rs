//! Kinds that exist in the groups of supported kinds but are not checked, and the nearest names of kinds that do not
//! exist.

use crate::nearest::nearest;
use lockkeeper_crd_schema::builtin::{BuiltInKind, Release};
use std::collections::{BTreeMap, BTreeSet};

/// The versions of a group, each with kinds.
type Versions = &'static [(&'static str, &'static [&'static str])];

/// The least similarity (0 to 1) of a misspelt name and a suggestion.
const SIMILARITY_MIN: f64 = 0.75;

/// The least similarity of a misspelt group and a suggestion. Unrelated groups often share their ends.
const GROUP_SIMILARITY_MIN: f64 = 0.95;

const KUEUE_OTHERS: &[&str] = &[
    "AdmissionCheck",
    "MultiKueueCluster",
    "MultiKueueConfig",
    "ProvisioningRequestConfig",
    "Topology",
];

/// By group. The core group is empty.
const OTHER_KINDS: &[(&str, Versions)] = &[
    // A kubeconfig and the answers of the API server.
    ("", &[("v1", &["Config", "Status"])]),
    ("jobset.x-k8s.io", &[("v1alpha1", &["JobSet"])]),
    (
        "kueue.x-k8s.io",
        &[
            ("v1beta2", KUEUE_OTHERS),
            ("v1beta1", KUEUE_OTHERS),
            (
                "v1alpha1",
                &[
                    "Cohort",
                    "MultiKueueCluster",
                    "MultiKueueConfig",
                    "Topology",
                ],
            ),
        ],
    ),
    ("scheduling.sigs.k8s.io", &[("v1alpha1", &["PodGroup"])]),
];

/// The kinds of each version of each group.
#[derive(Debug, Default)]
pub struct Catalog {
    groups: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
    /// The groups that a misspelt group may mean. Many projects have kinds and groups that are similar to Kubernetes'.
    suggested_groups: BTreeSet<String>,
}

/// The answer about a kind.
#[derive(Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The kind may exist.
    Possible,
    /// The group has no such version; the nearest one.
    UnknownVersion(String),
    /// The version has no such kind; the remedy.
    UnknownKind(String),
    /// The group does not exist; the nearest one with this kind.
    MisspeltGroup(String),
}

impl Catalog {
    /// A catalog of the built-in kinds of a release of Kubernetes, the kinds with rules, by `apiVersion` and name, and the
    /// kinds that are not checked.
    pub fn new(
        release: Release,
        with_rules: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
    ) -> Self {
        let mut catalog = Self::default();
        for (api_version, kind) in BuiltInKind::names_in(release) {
            let (group, version) = split(api_version);
            catalog.insert(group, version, kind);
        }
        for (api_version, kind) in with_rules {
            let (api_version, kind) = (api_version.as_ref(), kind.as_ref());
            let (group, version) = split(api_version);
            if BuiltInKind::is_in_any(api_version, kind) {
                // Present above if the release has it.
                catalog.suggested_groups.insert(group.to_owned());
            } else {
                catalog.add(group, version, kind);
            }
        }
        for (group, versions) in OTHER_KINDS {
            for (version, kinds) in *versions {
                for kind in *kinds {
                    catalog.add(group, version, kind);
                }
            }
        }
        catalog
    }

    fn add(&mut self, group: &str, version: &str, kind: &str) {
        self.insert(group, version, kind);
        self.suggested_groups.insert(group.to_owned());
    }

    fn insert(&mut self, group: &str, version: &str, kind: &str) {
        let versions = self.groups.entry(group.to_owned()).or_default();
        let kinds = versions.entry(version.to_owned()).or_default();
        kinds.insert(kind.to_owned());
    }

    pub fn find(&self, group: &str, version: &str, kind: &str) -> Lookup {
        let Some(versions) = self.groups.get(group) else {
            return match self.nearest_group(group, kind) {
                Some(near) => Lookup::MisspeltGroup(near.to_owned()),
                None => Lookup::Possible,
            };
        };
        // Every kind has a list kind.
        if kind.ends_with("List") || versions.get(version).is_some_and(|it| it.contains(kind)) {
            return Lookup::Possible;
        }
        let others = versions.iter().filter(|(_, kinds)| kinds.contains(kind));
        let others: Vec<&str> = others.map(|(version, _)| version.as_str()).collect();
        if !versions.contains_key(version) {
            let newest = newest(versions.keys().map(String::as_str)).unwrap_or_default();
            let with_kind = self::newest(others.iter().copied());
            return Lookup::UnknownVersion(with_kind.unwrap_or(newest).to_owned());
        }
        if !others.is_empty() {
            let remedy = format!(
                "this version has no such kind; it exists in {}",
                others.join(", ")
            );
            return Lookup::UnknownKind(remedy);
        }
        let all: BTreeSet<&str> = versions.values().flatten().map(String::as_str).collect();
        Lookup::UnknownKind(match nearest(kind, all.iter().copied(), SIMILARITY_MIN) {
            Some(near) => format!("there is no such kind; did you mean {near}?"),
            None => format!(
                "there is no such kind; the group has {}",
                all.into_iter().collect::<Vec<_>>().join(", ")
            ),
        })
    }

    fn nearest_group(&self, group: &str, kind: &str) -> Option<&str> {
        let with_kind = self.groups.iter().filter(|(_, versions)| {
            let mut kinds = versions.values();
            kinds.any(|it| it.contains(kind))
        });
        let names = with_kind.map(|(name, _)| name.as_str());
        let names = names.filter(|it| self.suggested_groups.contains(*it));
        nearest(group, names, GROUP_SIMILARITY_MIN)
    }
}

/// The group and the version of an `apiVersion`.
fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The newest version: a stable one, or the last beta or alpha version.
fn newest<'a>(versions: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    versions.max_by_key(|it| (!it.contains("alpha"), !it.contains("beta"), *it))
}

#[cfg(test)]
mod tests {
    use super::{Catalog, Lookup, Release};

    #[test]
    fn catalog_suggests_nearest_names() {
        let with_rules = [
            ("kueue.x-k8s.io/v1beta1", "ClusterQueue"),
            ("kueue.x-k8s.io/v1beta2", "ClusterQueue"),
            ("kueue.x-k8s.io/v1beta2", "Cohort"),
        ];
        let catalog = Catalog::new(Release::NEWEST, with_rules);
        let kind =
            |it: &str| Lookup::UnknownKind(format!("there is no such kind; did you mean {it}?"));
        for (group, version, name, expected) in [
            (
                "kueue.x-k8s.io",
                "v1beta2",
                "ClusterQueue",
                Lookup::Possible,
            ),
            ("kueue.x-k8s.io", "v1beta2", "Topology", Lookup::Possible),
            (
                "kueue.x-k8s.io",
                "v1beta2",
                "ClusterQueueList",
                Lookup::Possible,
            ),
            (
                "kueue.x-k8s.io",
                "v1beta2",
                "ClusterQeue",
                kind("ClusterQueue"),
            ),
            (
                "kueue.x-k8s.io",
                "v1beta9",
                "ClusterQueue",
                Lookup::UnknownVersion("v1beta2".to_owned()),
            ),
            (
                "kueue.x-k8s.io",
                "v1beta1",
                "Cohort",
                Lookup::UnknownKind(
                    "this version has no such kind; it exists in v1alpha1, v1beta2".to_owned(),
                ),
            ),
            (
                "kueue.x-k8s.oi",
                "v1beta2",
                "ClusterQueue",
                Lookup::MisspeltGroup("kueue.x-k8s.io".to_owned()),
            ),
            ("", "v1", "Secert", kind("Secret")),
            ("apps", "v1", "Deployment", Lookup::Possible),
        ] {
            assert_eq!(
                catalog.find(group, version, name),
                expected,
                "{group} {version} {name}"
            );
        }
    }

    #[test]
    fn built_in_kinds_are_suggested_within_their_groups() {
        let catalog = Catalog::new(
            Release::NEWEST,
            [("scheduling.k8s.io/v1alpha2", "PodGroup")],
        );
        let kind = "there is no such kind; did you mean Deployment?".to_owned();
        for (group, version, name, expected) in [
            ("apps", "v1", "Deploymnt", Lookup::UnknownKind(kind)),
            (
                "autoscaling",
                "v2beta2",
                "HorizontalPodAutoscaler",
                Lookup::UnknownVersion("v2".to_owned()),
            ),
            (
                "apps",
                "v1beta3",
                "DaemonSet",
                Lookup::UnknownVersion("v1".to_owned()),
            ),
            (
                "scheduling.k8s.io",
                "v1alpha9",
                "PodGroup",
                Lookup::UnknownVersion("v1beta1".to_owned()),
            ),
            // Groups of other projects resemble those of Kubernetes, and have kinds of the same name.
            ("networking.k9s.io", "v1", "Ingress", Lookup::Possible),
            ("other.x-k8s.io", "v1", "ClusterQueue", Lookup::Possible),
        ] {
            assert_eq!(
                catalog.find(group, version, name),
                expected,
                "{group} {version} {name}"
            );
        }
    }

    #[test]
    fn suggestions_are_those_of_the_release() {
        for (release, expected) in [("1.33", "v1beta2"), ("1.34", "v1")] {
            let catalog = Catalog::new(release.parse().unwrap(), [("v1", "Pod")]);
            assert_eq!(
                catalog.find("resource.k8s.io", "v1beta9", "ResourceClaim"),
                Lookup::UnknownVersion(expected.to_owned()),
                "{release}"
            );
        }
    }
}
