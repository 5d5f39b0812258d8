#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "tests fail by panicking; cases read better with values"
)]

use super::known_keys::{self, KeyLocation};
use crate::engine::{ReviewSubject, review};
use crate::index::Index;
use crate::rule::Context;
use crate::settings::Settings;
use crate::validated_kind::ValidatedKind;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::JobSet;
use lockkeeper_api::foreign::koordinator::ElasticQuota;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::labels::{
    DISRUPTION_MODE, MAX_EXECUTION_TIME, MIN_PARALLELISM, POD_GROUP_TOTAL_COUNT,
};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// The findings for an object of a kind, as rule and field.
#[track_caller]
fn check<T: ValidatedKind>(object: Value, expected: &[&str]) {
    let mut object = object;
    object["apiVersion"] = T::api_version(&()).into();
    object["kind"] = T::kind(&()).into();
    let object: T = serde_json::from_value(object).unwrap();
    let context = Context {
        cluster: &Index::default(),
        settings: &Settings::default(),
    };
    let verdict = review(&ReviewSubject::Create(&object), &context);
    let seen = verdict.warnings.iter();
    let seen: Vec<String> = seen.map(|it| format!("{} {}", it.rule, it.field)).collect();
    assert_eq!(seen, expected);
    assert!(verdict.allowed());
}

/// Metadata with a misspelt and a misplaced key.
fn metadata() -> Value {
    json!({"name": "a", "namespace": "b", "labels": {"kueue.x-k8s.io/queue-nam": "q"},
        "annotations": {"lockkeeper.dev/queue-name": "q"}})
}

const OWN: [&str; 2] = [
    "LA001 metadata.labels[kueue.x-k8s.io/queue-nam]",
    "LA002 metadata.annotations[lockkeeper.dev/queue-name]",
];

#[test]
fn key_rules_cover_every_kind_with_metadata() {
    check::<Pod>(json!({"metadata": metadata()}), &OWN);
    check::<ElasticQuota>(json!({"metadata": metadata()}), &OWN);
    // Kueue creates these objects, so the rules are off by default.
    let workload = json!({"metadata": metadata(), "spec": {"podSets": []}});
    check::<kueue::Workload>(workload, &[]);
    let template = json!({"metadata": metadata(), "spec": {"containers": []}});
    let job = json!({"metadata": metadata(), "spec": {"template": template}});
    let [spelling, place] = OWN;
    let below = |at: &str, rule: &str| rule.replace(" metadata", &format!(" {at}.metadata"));
    let expected = [
        spelling.to_owned(),
        below("spec.template", spelling),
        place.to_owned(),
        below("spec.template", place),
    ];
    check::<Job>(job.clone(), &expected.each_ref().map(String::as_str));
    let set = json!({"metadata": {"name": "a", "namespace": "b"},
        "spec": {"replicatedJobs": [{}, {"name": "w", "template": job}]}});
    let jobs = "spec.replicatedJobs[1].template";
    let pods = "spec.replicatedJobs[1].template.spec.template";
    let expected = [
        below(jobs, spelling),
        below(pods, spelling),
        below(jobs, place),
        below(pods, place),
    ];
    check::<JobSet>(set, &expected.each_ref().map(String::as_str));
}

#[test]
fn misspelt_key_comparisons_are_bounded() {
    let key = |n: usize| {
        (
            format!("kueue.x-k8s.io/queue-name{}", n % 10),
            "q".to_owned(),
        )
    };
    let odd = |n: usize| (format!("kueue.x-k8s.io/{}", "x".repeat(n)), "q".to_owned());
    let labels = |count: usize| {
        let labels: std::collections::BTreeMap<_, _> =
            (0..10).map(key).chain((1..count).map(odd)).collect();
        json!({"metadata": {"labels": labels}})
    };
    let found: Vec<String> = (0..10)
        .map(|n| format!("LA001 metadata.labels[kueue.x-k8s.io/queue-name{n}]"))
        .collect();
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    check::<Pod>(labels(1_000), &found);
}

/// Known keys that would be reported as misspelt if they were unknown: an estimate of how often a new key of these
/// projects is reported by mistake.
#[test]
fn known_keys_are_rarely_similar() {
    let names = || known_keys::all().filter_map(|(key, _)| key.split_once('/'));
    let near = names().filter(|(domain, name)| {
        let others = names().filter(|other| other != &(*domain, *name));
        let mut same = others.filter(|(other, _)| other == domain);
        same.any(|(_, other)| super::misspelt_key::similarity(name, other).is_some())
    });
    assert!(near.count() <= known_keys::all().count() / 6);
}

fn known_key() -> impl Strategy<Value = (&'static str, KeyLocation)> {
    let keys: Vec<_> = known_keys::all().copied().collect();
    select(keys)
}

/// A known key and the length of its name, which is long enough for a missing letter to be noticed.
fn long_known_key() -> impl Strategy<Value = (&'static str, usize)> {
    let keys = known_keys::all();
    let keys = keys.filter_map(|(key, _)| Some((*key, key.split_once('/')?.1.len())));
    select(keys.filter(|(_, length)| *length >= 10).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn known_key_in_its_location_has_no_finding((key, place) in known_key(), value in "[a-z]{1,9}") {
        let field = if place == KeyLocation::Annotation { "annotations" } else { "labels" };
        // Another rule checks the value.
        let value = match key {
            MAX_EXECUTION_TIME | MIN_PARALLELISM | POD_GROUP_TOTAL_COUNT => "1".to_owned(),
            DISRUPTION_MODE => "Pod".to_owned(),
            _ => value,
        };
        check::<Job>(json!({"metadata": {field: {key: value}}}), &[]);
    }

    #[test]
    fn long_key_with_missing_letter_is_found((key, length) in long_known_key(), at in 0_usize..64) {
        let at = key.len() - length + at % length;
        let mut slip = key.to_owned();
        slip.remove(at);
        prop_assume!(known_keys::location(&slip).is_none() && slip.ends_with(char::is_alphanumeric));
        check::<Job>(
            json!({"metadata": {"labels": {slip.as_str(): "v"}}}),
            &[&format!("LA001 metadata.labels[{slip}]")],
        );
    }
}
