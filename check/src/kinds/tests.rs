//! The schemas of the registry, and the versions of a release.

use super::{
    Context, Identity, KindRegistry, Release, RuleSelection, SchemaSource, offline_settings,
};
use lockkeeper_api::config::Config;
use lockkeeper_policies::index::Index;
use serde_json::json;
use std::sync::Arc;

#[test]
fn kind_registry_parses_every_schema() {
    let Ok(registry) = KindRegistry::new(&RuleSelection::default()) else {
        panic!("the schemas can be listed");
    };
    let mut count = 0;
    for (version, name, kind) in registry.kinds.iter() {
        if !matches!(kind.schema, SchemaSource::None) {
            assert!(kind.schema.get().is_some(), "{version} {name}");
            count += 1;
        }
    }
    assert_eq!(count, 18);
}

/// Whether the only finding about a group of `v1alpha2`, which only 1.36 serves, is about this version, or else its rules run.
fn reports_version(registry: &KindRegistry) -> bool {
    let object = json!({
        "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "a", "uid": "b"},
        "spec": {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}},
    });
    let selection = RuleSelection::default();
    let settings = offline_settings(Config::default(), Arc::default(), &selection, 0).unwrap();
    let context = Context {
        cluster: &Index::default(),
        settings: &settings,
    };
    let identity = Identity::from_object(&object);
    let result = registry.check(object, None, &identity, &context).unwrap();
    let rules: Vec<&str> = result.findings.iter().map(|it| &*it.1.rule).collect();
    let reports_version = rules == ["SC001"];
    assert_ne!(reports_version, rules.contains(&"PG006"), "{rules:?}");
    reports_version
}

#[test]
fn versions_that_a_release_does_not_serve_are_reported_unless_accepted() {
    let Ok(mut registry) = KindRegistry::new(&RuleSelection::default()) else {
        panic!("the schemas can be listed");
    };
    assert!(reports_version(&registry));
    registry.set_release("1.36".parse().unwrap());
    assert!(!reports_version(&registry));
    registry.set_release(Release::NEWEST);
    registry.accept_all_versions();
    assert!(!reports_version(&registry));
}
