//! The flavors that the pods of a template cannot run on.

use crate::label_selector::requirement_matches;
use k8s_openapi::api::core::v1::{NodeSelectorRequirement, PodSpec, Taint, Toleration};
use lockkeeper_api::quota::ResourceGroup;
use lockkeeper_api::resource_flavor::ResourceFlavorSpec;
use std::collections::{BTreeMap, BTreeSet};

/// The flavors that exist, by name.
pub type Flavors = BTreeMap<String, ResourceFlavorSpec>;

/// The flavors of a queue that a pod cannot run on: the pod does not tolerate one of their taints, or its node selector
/// or required affinity does not match their labels. A flavor that does not exist is not
/// included; it makes its queue inactive.
///
/// Source: Kueue `pkg/scheduler/flavorassigner`, `checkFlavorForPodSets`, `flavorSelector`.
pub(crate) fn ineligible_flavors<'a>(
    pod: &PodSpec,
    groups: &'a [ResourceGroup],
    flavors: &Flavors,
) -> BTreeSet<&'a str> {
    let mut out = BTreeSet::new();
    for group in groups {
        let known = group.flavors.iter();
        let known = known.filter_map(|it| Some((it.name.as_str(), flavors.get(&it.name)?)));
        let excluded = known.filter(|(_, flavor)| {
            !(tolerates(pod, flavor) && node_selector_matches(pod, &flavor.node_labels))
        });
        out.extend(excluded.map(|(name, _)| name));
    }
    out
}

fn tolerates(pod: &PodSpec, flavor: &ResourceFlavorSpec) -> bool {
    // `PreferNoSchedule` excludes no pod.
    let keeps_away = |taint: &&Taint| matches!(&*taint.effect, "NoSchedule" | "NoExecute");
    let mut taints = flavor.node_taints.iter().filter(keeps_away);
    taints.all(|taint| {
        let tolerations = pod.tolerations.iter().flatten();
        // The controller adds the tolerations of the flavor when it starts the job.
        let mut tolerations = tolerations.chain(&flavor.tolerations);
        tolerations.any(|it| is_tolerated(taint, it))
    })
}

/// Kueue also considers the numeric operators, which Kubernetes 1.37 accepts behind the gate `TaintTolerationComparisonOperators` only.
///
/// Source: Kubernetes `Toleration.ToleratesTaint`.
fn is_tolerated(taint: &Taint, by: &Toleration) -> bool {
    let effect = by.effect.as_deref().unwrap_or_default();
    let key = by.key.as_deref().unwrap_or_default();
    // An empty effect matches all effects, and an empty key all keys.
    if !(effect.is_empty() || effect == taint.effect) || !(key.is_empty() || key == taint.key) {
        return false;
    }
    let tolerated = by.value.as_deref().unwrap_or_default();
    let value = taint.value.as_deref().unwrap_or_default();
    let compared = |is_met: fn(&i64, &i64) -> bool| {
        let numbers = decimal_integer(value).zip(decimal_integer(tolerated));
        numbers.is_some_and(|(value, bound)| is_met(&value, &bound))
    };
    match by.operator.as_deref().unwrap_or_default() {
        "Exists" => true,
        "" | "Equal" => tolerated == value,
        "Gt" => compared(i64::gt),
        "Lt" => compared(i64::lt),
        _ => false,
    }
}

/// A whole number as people write it: without a plus sign and without leading zeros.
///
/// Source: Kubernetes `content.IsDecimalInteger`.
fn decimal_integer(text: &str) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Whether the node selector and the required affinity of a pod permit the labels of a flavor. Requirements on other labels are left
/// to the scheduler: the labels of the nodes are unknown.
fn node_selector_matches(pod: &PodSpec, labels: &BTreeMap<String, String>) -> bool {
    let mut selector = pod.node_selector.iter().flatten();
    if !selector.all(|(key, value)| labels.get(key).is_none_or(|it| it == value)) {
        return false;
    }
    let affinity = pod.affinity.as_ref();
    let affinity = affinity.and_then(|it| it.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| {
        affinity
            .required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let Some(required) = required else {
        return true;
    };
    let known = |it: &&NodeSelectorRequirement| labels.contains_key(&it.key);
    // One matching term is enough; a term without known keys always matches.
    required.node_selector_terms.is_empty()
        || required.node_selector_terms.iter().any(|term| {
            let mut requirements = term.match_expressions.iter().flatten().filter(known);
            requirements.all(|requirement| {
                let value = labels.get(&requirement.key).map(String::as_str);
                let values = requirement.values.as_deref().unwrap_or_default();
                requirement_matches(&requirement.operator, value, values) == Some(true)
            })
        })
}
