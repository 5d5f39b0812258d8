#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use super::*;
use lockkeeper_api::config::Action;
use serde_json::{Value, json};

/// The registrations of other projects' kinds with these rules: group, kind and operations.
#[track_caller]
fn check(wanted: &[ForeignKinds], rules: &Value, expected: &[&str]) {
    let config: Config = serde_json::from_value(json!({ "rules": rules })).unwrap();
    let settings = settings(&config).unwrap();
    let wanted = wanted.iter().copied().collect();
    let own = registrations(&BTreeSet::new(), &settings).len();
    let all = registrations(&wanted, &settings);
    let foreign = all.iter().skip(own).map(|rule| {
        assert!(!rule.own && rule.defaulted_on.is_empty(), "{rule:?}");
        let operations: Vec<&str> = rule.validated_on.iter().map(|it| it.as_str()).collect();
        format!(
            "{}/{} {} {}",
            rule.group,
            rule.version,
            rule.plural,
            operations.join(",")
        )
    });
    assert_eq!(foreign.collect::<Vec<_>>(), expected);
}

const QUEUES: &str = "kueue.x-k8s.io/v1beta2 clusterqueues CREATE,UPDATE,DELETE";
const COHORTS: &str = "kueue.x-k8s.io/v1beta2 cohorts CREATE,UPDATE";
const FLAVORS: &str = "kueue.x-k8s.io/v1beta2 resourceflavors CREATE,UPDATE";
const DOORS: &str = "kueue.x-k8s.io/v1beta2 localqueues CREATE,UPDATE";
const QUOTAS: &str = "scheduling.sigs.k8s.io/v1alpha1 elasticquotas CREATE,UPDATE";

#[test]
fn foreign_kinds_are_registered_only_on_request() {
    check(&[], &json!({}), &[]);
    check(&[], &json!({"actions": {"KL001": "enforce"}}), &[]);
}

#[test]
fn only_kinds_with_enabled_rules_are_registered() {
    use ForeignKinds::{Koordinator, Kueue};
    let both = [QUEUES, COHORTS, FLAVORS, DOORS, QUOTAS];
    check(&[Koordinator, Kueue], &json!({}), &both);
    check(&[Koordinator], &json!({}), &[QUOTAS]);
    // All rules for Kueue's Workloads are Kueue's own.
    let workloads = "kueue.x-k8s.io/v1beta2 workloads";
    for (rules, operations) in [
        (json!({"actions": {"KL001": "warn"}}), "CREATE,UPDATE"),
        (json!({"actions": {"WL008": "enforce"}}), "CREATE,UPDATE"),
        (
            json!({"namespaces": {"team": {"actions": {"KL001": "audit"}}}}),
            "CREATE,UPDATE",
        ),
    ] {
        let workloads = format!("{workloads} {operations}");
        let all = [QUEUES, COHORTS, FLAVORS, DOORS, &workloads];
        check(&[Kueue], &rules, &all);
    }
    let actions = json!({"CQ015": "off", "RF004": "off", "LQ001": "off"});
    let queues = "kueue.x-k8s.io/v1beta2 clusterqueues CREATE,UPDATE";
    check(&[Kueue], &json!({ "actions": actions }), &[queues, COHORTS]);
    // A rule that is on in only one namespace needs the registration.
    let rules = json!({
        "actions": {"LQ001": "off", "RF004": "off"},
        "namespaces": {"team": {"actions": {"LQ001": "warn"}}, "other": {"actions": {"LQ001": "off"}}},
    });
    check(&[Kueue], &rules, &[QUEUES, COHORTS, DOORS]);
    let rules = json!({"actions": {"EQ019": "enforce"}});
    let quotas = "scheduling.sigs.k8s.io/v1alpha1 elasticquotas CREATE,UPDATE,DELETE";
    check(&[Koordinator], &rules, &[quotas]);
}

#[test]
fn known_registrations_cover_every_kind() {
    let guarded = known_registrations();
    let names: BTreeSet<_> = guarded.iter().map(|it| (&it.group, &it.plural)).collect();
    assert_eq!(names.len(), guarded.len());
    let every_rule = all()
        .into_iter()
        .map(|rule| (rule.id.to_owned(), Action::Audit));
    let mut config = Config::default();
    config.rules.actions = every_rule.collect();
    let settings = settings(&config).unwrap();
    let sent = registrations(&ForeignKinds::ALL.into(), &settings);
    let sent: BTreeSet<_> = sent.iter().map(|it| (&it.group, &it.plural)).collect();
    assert_eq!(sent, names);
}

#[test]
fn enforced_by_schema_lists_relaxed_rules() {
    let held = |yaml: &str| {
        let config: Config = serde_saphyr::from_str(yaml).unwrap();
        enforced_by_schema(&settings(&config).unwrap())
    };
    assert_eq!(held("{}"), BTreeSet::new());
    // CQ005 is in no schema, and an enforced rule is not relaxed.
    let soft = held(
        "rules: {actions: {CQ005: warn, CQ007: warn, CQ008: enforce}, namespaces: {a: {actions: {WL007: off}}}}",
    );
    assert_eq!(soft, BTreeSet::from(["CQ007", "WL007"]));
}
