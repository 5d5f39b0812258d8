use crate::{lockkeeper_object, object, yaml};
use lockkeeper_api::{ClusterQueue, Cohort};
use lockkeeper_cluster_state::{cohort_spec, queue_spec, selector};
use lockkeeper_preemption::{
    Amount, BorrowWithinCohort, FlavorFungibility, Fungibility, Preference, QueueingStrategy,
    Quota, ReclaimWithinCohort, State, WithinClusterQueue,
};
use serde_json::{Value, json};

fn queue(spec: &str) -> ClusterQueue {
    object(&lockkeeper_object(
        "ClusterQueue",
        None,
        "team",
        &yaml::<Value>(spec),
    ))
}

#[test]
fn queue_spec_maps_every_field() {
    let queue = queue(
        "
cohortName: all
queueingStrategy: StrictFIFO
fairSharing: {weight: 500m}
flavorFungibility: {whenCanBorrow: TryNextFlavor, preference: PreemptionOverBorrowing}
preemption:
  withinClusterQueue: LowerOrNewerEqualPriority
  reclaimWithinCohort: Any
  borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 7}
resourceGroups:
- coveredResources: [cpu, memory]
  flavors:
  - name: spot
    resources:
    - {name: cpu, nominalQuota: 1500m, borrowingLimit: 0.5, lendingLimit: 0}
    - {name: memory, nominalQuota: 1Gi}
",
    );
    let mut state = State::default();
    let spec = queue_spec(&queue, &mut state, true).unwrap();
    assert_eq!(
        (spec.name, spec.cohort, spec.is_active),
        ("team", Some("all"), true)
    );
    assert_eq!(spec.strategy, QueueingStrategy::StrictFifo);
    assert!((spec.weight - 0.5).abs() < f64::EPSILON);
    let policy = spec.preemption;
    assert_eq!(
        policy.within_cluster_queue,
        WithinClusterQueue::LowerOrNewerEqualPriority
    );
    assert_eq!(policy.reclaim_within_cohort, ReclaimWithinCohort::Any);
    let threshold_max = Some(7);
    let borrow = BorrowWithinCohort::LowerPriority { threshold_max };
    assert_eq!(policy.borrow_within_cohort, borrow);
    let fungibility = FlavorFungibility {
        when_can_borrow: Fungibility::TryNextFlavor,
        preference: Preference::PreemptionOverBorrowing,
        ..FlavorFungibility::default()
    };
    assert_eq!(spec.fungibility, fungibility);
    let (cpu, memory) = (state.resource("cpu"), state.resource("memory"));
    assert_eq!(spec.groups[0].resources, [cpu, memory]);
    let flavor = &spec.groups[0].flavors[0];
    assert_eq!(flavor.flavor, state.flavor("spot"));
    let quota = |nominal, borrowing_limit: Option<i64>, lending_limit: Option<i64>| Quota {
        nominal: Amount::new(nominal),
        borrowing_limit: borrowing_limit.map(Amount::new),
        lending_limit: lending_limit.map(Amount::new),
    };
    let first = (cpu, quota(1500, Some(500), Some(0)));
    assert_eq!(flavor.quotas, [first, (memory, quota(1 << 30, None, None))]);
}

#[test]
fn queue_spec_absent_fields_use_defaults() {
    let mut state = State::default();
    let plain = queue("{}");
    let spec = queue_spec(&plain, &mut state, false).unwrap();
    assert!((spec.weight - 1.0).abs() < f64::EPSILON && !spec.is_active);
    assert_eq!(spec.strategy, QueueingStrategy::BestEffortFifo);
    assert_eq!(
        spec.preemption,
        lockkeeper_preemption::Preemption::default()
    );
    assert_eq!(spec.fungibility, FlavorFungibility::default());
    let elastic = queue("elastic: {}");
    let spec = queue_spec(&elastic, &mut state, true).unwrap();
    let policy = spec.preemption;
    assert_eq!(
        policy.within_cluster_queue,
        WithinClusterQueue::LowerPriority
    );
    assert_eq!(
        policy.reclaim_within_cohort,
        ReclaimWithinCohort::LowerPriority
    );
}

#[test]
fn queue_spec_invalid_values_rejected_with_path() {
    let group = |quota: &str| {
        format!(
            "resourceGroups: [{{coveredResources: [cpu], flavors: [{{name: f, resources: [{quota}]}}]}}]"
        )
    };
    let cases = [
        (
            group("{name: cpu, nominalQuota: -1}"),
            "ClusterQueue team: spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: \
             -1 is negative; give zero or more",
        ),
        (
            group("{name: cpu, nominalQuota: 1, borrowingLimit: 10E}"),
            "ClusterQueue team: spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit: \
             the amount is too large; keep the total of a resource below 2^63 of its unit",
        ),
        (
            group("{name: cpu, nominalQuota: 1, lendingLimit: -1m}"),
            "ClusterQueue team: spec.resourceGroups[0].flavors[0].resources[0].lendingLimit: \
             -1m is negative; give zero or more",
        ),
        (
            group("{name: cpu, nominalQuota: 1}, {name: cpu, nominalQuota: 2}"),
            "ClusterQueue team: spec.resourceGroups[0].flavors[0].resources[1].name: \"cpu\" \
             is duplicated; give each a unique name",
        ),
        (
            "fairSharing: {weight: -1}".to_owned(),
            "ClusterQueue team: spec.fairSharing.weight: -1 is negative; give zero or more",
        ),
        (
            "namespaceSelector: {matchExpressions: [{key: a, operator: Like}]}".to_owned(),
            "ClusterQueue team: spec.namespaceSelector.matchExpressions[0].operator: \"Like\" is \
             not an operator; use In, NotIn, Exists or DoesNotExist",
        ),
    ];
    for (spec, expected) in cases {
        let error = queue_spec(&queue(&spec), &mut State::default(), true).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn selector_absent_matches_none_and_empty_matches_all() {
    assert!(selector(&queue("{}")).unwrap().is_none());
    let all = selector(&queue("namespaceSelector: {}")).unwrap().unwrap();
    assert!(all.match_labels.is_empty() && all.match_expressions.is_empty());
}

#[test]
fn cohort_spec_maps_quota() {
    let spec = json!({
        "parentName": "up",
        "resourceGroups": [{"coveredResources": ["gpu"], "flavors": [
            {"name": "f", "resources": [{"name": "gpu", "nominalQuota": "2500m"}]},
        ]}],
    });
    let cohort: Cohort = object(&lockkeeper_object("Cohort", None, "team", &spec));
    let mut state = State::default();
    let spec = cohort_spec(&cohort, &mut state).unwrap();
    assert_eq!((spec.name, spec.parent), ("team", Some("up")));
    let (of, quota) = spec.quotas[0];
    assert_eq!(
        (of.flavor, of.resource),
        (state.flavor("f"), state.resource("gpu"))
    );
    assert_eq!(quota.nominal, Amount::new(3));
}
