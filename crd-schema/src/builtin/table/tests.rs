//! The tables of all releases.

use super::text::{NEWEST, OLDER, release_of};
use super::{KindIndex, Table, Type};
use crate::builtin::release::Release;
use std::collections::BTreeMap;

/// The kinds that the recorded answers of an API server cover.
const RECORDED: [(&str, &str); 21] = [
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
    ),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("networking.k8s.io/v1", "Ingress"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("policy/v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("v1", "ConfigMap"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Pod"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
];

/// The number of kinds of each release in the Go types of `k8s.io/api`, served and removed ones.
const KINDS: [(&str, usize); 5] = [
    ("1.33", 158),
    ("1.34", 160),
    ("1.35", 161),
    ("1.36", 163),
    ("1.37", 171),
];

fn tables() -> impl Iterator<Item = &'static Table> {
    Release::SUPPORTED.into_iter().filter_map(Table::of)
}

#[test]
fn tables_have_all_recorded_kinds_and_every_type() {
    let counts = tables().map(|it| (it.release().to_string(), it.kinds().count()));
    let expected = KINDS.map(|(release, count)| (release.to_owned(), count));
    assert_eq!(counts.collect::<Vec<_>>(), expected);
    for table in tables() {
        for (api_version, kind) in RECORDED {
            let (_, _, definition) = table.kind(api_version, kind).unwrap();
            assert!(table.definition(definition).contains_key("metadata"));
        }
        let kinds = table.kinds.values().flat_map(BTreeMap::values);
        for (definition, lifecycle) in kinds {
            assert!(table.definitions.contains_key(definition), "{definition}");
            assert!(lifecycle.has_begun(table.release()), "{definition}");
        }
        let fields = table.definitions.values().flat_map(|it| it.values());
        for field in fields {
            let mut kind = &field.kind;
            while let Type::List(item) | Type::Map(item) | Type::Pointer(item) = kind {
                kind = item;
            }
            if let Type::Struct(name) = kind {
                assert!(table.definitions.contains_key(name), "{name}");
            }
        }
    }
}

/// `builtin/generate.sh` writes the tables from the Go types of `k8s.io/api`; no Go is needed for this test.
#[test]
fn texts_are_those_of_the_supported_releases() {
    let line = format!("# The kinds of Kubernetes {}.", Release::NEWEST);
    assert!(NEWEST.starts_with(&line));
    let older: Vec<Release> = OLDER.lines().filter_map(release_of).collect();
    let supported = Release::SUPPORTED.into_iter().rev().skip(1);
    assert_eq!(older, supported.collect::<Vec<_>>());
    // All lines are kinds, types or fields; four are comments.
    let table = Table::newest();
    let fields = table.definitions.values().map(BTreeMap::len).sum::<usize>();
    let lines = NEWEST.lines().count();
    assert_eq!(lines, 4 + 171 + table.definitions.len() + fields);
}

/// Every line of the differences changes the table.
#[test]
fn differences_have_no_line_without_effect() {
    let mut releases = OLDER.split("\nrelease ").skip(1);
    for release in Release::SUPPORTED.into_iter().rev().skip(1) {
        let (older, newer) = (Table::of(release).unwrap(), newer_than(release));
        let mut current = "";
        for line in releases.next().unwrap().lines().skip(1) {
            let mut words = line.split(' ');
            let (first, second) = (words.next().unwrap(), words.next().unwrap());
            let has_effect = match first {
                "kind" | "-kind" => {
                    let kind = words.next().unwrap();
                    let is_there = older.kind(second, kind).is_some();
                    is_there == (first == "kind")
                        && (is_there || newer.kind(second, kind).is_some())
                }
                "type" => {
                    current = second;
                    older.definitions.contains_key(second)
                }
                "-type" => {
                    !older.definitions.contains_key(second)
                        && newer.definitions.contains_key(second)
                }
                _ => match second.strip_prefix('-') {
                    Some(removed) => {
                        !older.definition(current).contains_key(removed)
                            && newer.definition(current).contains_key(removed)
                    }
                    None => older.definition(current).contains_key(second),
                },
            };
            assert!(has_effect, "{release}: {current} {line}");
        }
    }
}

fn newer_than(release: Release) -> &'static Table {
    tables().find(|it| it.release() > release).unwrap()
}

#[test]
fn fields_appear_and_disappear_with_releases() {
    for (definition, field, expected) in [
        ("core/v1.PodSpec", "containers", "1.33 1.34 1.35 1.36 1.37"),
        ("core/v1.PodSpec", "hostnameOverride", "1.34 1.35 1.36 1.37"),
        ("core/v1.PodSpec", "workloadRef", "1.35"),
        ("core/v1.PodSpec", "schedulingGroup", "1.36 1.37"),
        ("batch/v1.JobSpec", "scheduling", "1.37"),
        ("core/v1.PodSpec", "container", ""),
    ] {
        let with_field = tables().filter(|it| it.definition(definition).contains_key(field));
        let releases: Vec<_> = with_field.map(|it| it.release().to_string()).collect();
        assert_eq!(releases.join(" "), expected, "{definition} {field}");
    }
}

#[test]
fn index_has_the_kinds_of_all_tables() {
    let index = KindIndex::get();
    for table in tables() {
        let kinds = index.kinds(table.release());
        assert!(kinds.eq(table.kinds()), "{}", table.release());
    }
    let releases = index.releases("scheduling.k8s.io/v1alpha1", "Workload");
    assert_eq!(releases.len(), 1);
    assert_eq!(index.releases("example.com/v1", "Workload").len(), 0);
}

#[test]
fn unsupported_releases_have_no_table() {
    let release = Release {
        major: 1,
        minor: 32,
    };
    assert!(Table::of(release).is_none());
}
