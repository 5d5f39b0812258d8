//! Generated objects.

use super::scenarios::{LeafStrategies, classes};
use super::*;

/// An object of kind `T`, with these fields and this name.
pub(super) fn object<T: ValidatedKind>(name: &str, fields: Value) -> Value {
    let mut object = fields;
    object["apiVersion"] = T::api_version(&()).into();
    object["kind"] = T::kind(&()).into();
    object["metadata"]["name"] = name.into();
    if T::NAMESPACED {
        object["metadata"]["namespace"] = "team".into();
    }
    object
}

pub(super) fn queue(leaves: &LeafStrategies) -> BoxedStrategy<Value> {
    let reclaim = option::of(select(vec!["Never", "LowerPriority", "Any"]));
    let borrow = option::of(select(vec!["Never", "LowerPriority"]));
    let preemption = (reclaim, borrow).prop_map(|(reclaim, borrow)| {
        json!({"reclaimWithinCohort": reclaim, "borrowWithinCohort": {"policy": borrow}})
    });
    let elastic = option::weighted(0.3, Just(json!({})));
    let cohort = option::of(leaves.names.clone());
    let parts = (cohort, groups(leaves), option::of(preemption), elastic);
    parts
        .prop_map(|(cohort, groups, preemption, elastic)| {
            let spec = json!({
                "cohortName": cohort, "resourceGroups": groups, "preemption": preemption,
                "elastic": elastic,
            });
            object::<ClusterQueue>("q", json!({"spec": spec}))
        })
        .boxed()
}

pub(super) fn cohort(leaves: &LeafStrategies) -> BoxedStrategy<Value> {
    let parent = option::of(leaves.names.clone());
    (parent, groups(leaves))
        .prop_map(|(parent, groups)| {
            let spec = json!({"parentName": parent, "resourceGroups": groups});
            object::<Cohort>("c", json!({"spec": spec}))
        })
        .boxed()
}

pub(super) fn groups(leaves: &LeafStrategies) -> impl Strategy<Value = Vec<Value>> + use<> {
    let amount = || leaves.amounts.clone();
    let amounts = (amount(), option::of(amount()), option::of(amount()));
    let resources = vec(leaves.names.clone(), 1..3);
    let others = option::weighted(0.2, resources.clone());
    let flavor = (leaves.names.clone(), others, vec(amounts, 2));
    let group = (resources, vec(flavor, 0..4)).prop_map(|(covered, flavors)| {
        let flavors: Vec<Value> = flavors
            .into_iter()
            .map(|(name, others, amounts)| {
                let listed = others.as_ref().unwrap_or(&covered);
                let quotas = listed.iter().zip(amounts).map(|(name, amounts)| {
                    let (nominal, borrowing, lending) = amounts;
                    json!({
                        "name": name, "nominalQuota": nominal, "borrowingLimit": borrowing,
                        "lendingLimit": lending,
                    })
                });
                json!({"name": name, "resources": quotas.collect::<Vec<Value>>()})
            })
            .collect();
        json!({"coveredResources": covered, "flavors": flavors})
    });
    vec(group, 0..3)
}

pub(super) fn flavor(leaves: &LeafStrategies) -> BoxedStrategy<Value> {
    let labels = btree_map(leaves.names.clone(), leaves.names.clone(), 0..2);
    let spec = labels.prop_map(|labels| json!({"spec": {"nodeLabels": labels}}));
    spec.prop_map(|spec| object::<ResourceFlavor>("f", spec))
        .boxed()
}

pub(super) fn workload(leaves: &LeafStrategies) -> BoxedStrategy<Value> {
    let template = prop_oneof![
        Just(json!({})),
        pod_labels(leaves).prop_map(|labels| json!({"metadata": {"labels": labels}})),
    ];
    let pod_set = (option::of(leaves.names.clone()), template)
        .prop_map(|(name, template)| json!({"name": name, "template": template}));
    let class =
        || prop_oneof![4 => option::of(classes()), 1 => leaves.names.clone().prop_map(Some)];
    let parts = (leaves.names.clone(), class(), class(), vec(pod_set, 0..4));
    parts
        .prop_map(|(name, scheduling, preemption, pod_sets)| {
            let spec = json!({
                "priorityClassName": scheduling, "preemptionPriorityClassName": preemption,
                "podSets": pod_sets,
            });
            object::<Workload>(&name, json!({"spec": spec}))
        })
        .boxed()
}

pub(super) fn pod_labels(leaves: &LeafStrategies) -> impl Strategy<Value = Value> + use<> {
    let preemptible = option::of(select(vec!["true", "false", "yes"]));
    let job = option::weighted(0.8, leaves.names.clone());
    (job, preemptible).prop_map(|(job, preemptible)| {
        let pairs = [
            (labels::JOB, job),
            (labels::PREEMPTIBLE, preemptible.map(str::to_owned)),
        ];
        let given = pairs
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)));
        json!(given.collect::<BTreeMap<_, _>>())
    })
}

pub(super) fn class(leaves: &LeafStrategies) -> BoxedStrategy<Value> {
    let name = prop_oneof![
        select(vec!["low", "high"]).prop_map(str::to_owned),
        leaves.names.clone()
    ];
    let value = select(vec![0, 10, i32::MIN, i32::MAX]);
    (name, value, option::of(any::<bool>()))
        .prop_map(|(name, value, default)| {
            object::<PriorityClass>(&name, json!({"value": value, "globalDefault": default}))
        })
        .boxed()
}

pub(super) fn pod(leaves: &LeafStrategies) -> BoxedStrategy<Value> {
    (leaves.names.clone(), pod_labels(leaves))
        .prop_map(|(name, labels)| object::<Pod>(&name, json!({"metadata": {"labels": labels}})))
        .boxed()
}

pub(super) fn quota(leaves: &LeafStrategies) -> BoxedStrategy<Value> {
    let name = || leaves.names.clone();
    let flag = || option::of(select(vec!["true", "false"]).prop_map(str::to_owned));
    let labels = (
        option::of(name()),
        flag(),
        flag(),
        option::weighted(0.2, name()),
    );
    let amounts = || btree_map(select(vec!["cpu", "memory"]), leaves.amounts.clone(), 0..3);
    let texts = select(vec![
        "",
        "{",
        r#"{"cpu":"-1"}"#,
        r#"["cpu"]"#,
        r#"["a","b"]"#,
    ]);
    let annotations = vec(texts, 4);
    let parts = (name(), labels, amounts(), amounts(), amounts(), annotations);
    parts
        .prop_map(
            |(name, (parent, is_parent, forced, tree), min, max, used, texts)| {
                let labels = [
                    (koordinator::PARENT, parent),
                    (koordinator::IS_PARENT, is_parent),
                    (koordinator::ALLOW_FORCE_UPDATE, forced),
                    (koordinator::TREE_ID, tree),
                ];
                let labels = labels
                    .into_iter()
                    .filter_map(|(key, value)| Some((key, value?)));
                let annotations = [
                    koordinator::SHARED_WEIGHT,
                    koordinator::NAMESPACES,
                    koordinator::GUARANTEED,
                    koordinator::STRICT_RESOURCES,
                ];
                let annotations = annotations.into_iter().zip(texts);
                let metadata = json!({
                    "labels": labels.collect::<BTreeMap<_, _>>(),
                    "annotations": annotations.collect::<BTreeMap<_, _>>(),
                });
                let spec = json!({"min": min, "max": max});
                let status = json!({"used": used});
                object::<ElasticQuota>(
                    &name,
                    json!({"metadata": metadata, "spec": spec, "status": status}),
                )
            },
        )
        .boxed()
}
