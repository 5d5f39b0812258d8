//! Validates a scenario of pods and pod groups.

use super::amounts::{parse_amount, pod_spec_requests};
use super::error::GangError;
use super::scenario::{GangScenario, Group, Pod};
use crate::amount_text::AmountText;
use std::collections::{BTreeMap, BTreeSet};

/// Checks names, amounts and priorities, which the core does not check.
pub(super) fn validate(scenario: &GangScenario) -> Result<(), GangError> {
    let mut names = UniqueNames::default();
    let mut sums = ResourceTotals::default();
    for (at, node) in scenario.nodes_without_duplicates() {
        let path = format!("nodes[{at}]");
        names.add("node", "", &node.name, &path)?;
        for (resource, amount) in &node.allocatable {
            sums.add(resource, *amount, || {
                format!("{path}.allocatable[{resource}]")
            })?;
        }
    }
    for (path, pod) in pods_with_paths(scenario) {
        // A running preemptor is listed among the pods too, with its current requests.
        let is_resized = path == "preemptor.pod" && pod.node.is_some();
        if !is_resized {
            names.add("pod", &pod.namespace, &pod.name, &path)?;
        }
        check_pod(pod, &path, &mut sums)?;
    }
    for (path, group) in groups_with_paths(scenario) {
        names.add("group", &group.namespace, &group.name, &path)?;
        let scheduling = group.priority.unwrap_or_default();
        if let Some(preemption) = group.preemption_priority.filter(|it| *it < scheduling) {
            return Err(GangError::Priority {
                at: format!("{path}.preemption_priority"),
                preemption,
                scheduling,
            });
        }
    }
    for (at, budget) in scenario.pdbs.iter().enumerate() {
        // Recorded budgets may have no name; their index identifies them.
        if !budget.name.is_empty() {
            let path = format!("pdbs[{at}]");
            names.add("budget", &budget.namespace, &budget.name, &path)?;
        }
    }
    check_fields(scenario)
}

fn check_fields(scenario: &GangScenario) -> Result<(), GangError> {
    let wrong = |at: &str, problem| {
        Err(GangError::Form {
            at: at.to_owned(),
            problem,
        })
    };
    if let Some(preemptor) = &scenario.preemptor {
        let groups = [&preemptor.pod_group, &preemptor.composite_pod_group];
        let count = groups.iter().filter(|it| it.is_some()).count();
        if count.saturating_add(usize::from(preemptor.pod.is_some())) != 1 {
            return wrong(
                "preemptor",
                "set exactly one of pod, pod_group and composite_pod_group",
            );
        }
        let priority = groups.iter().find_map(|it| it.as_ref());
        let priority = priority.map(|it| it.priority.unwrap_or_default());
        if preemptor
            .priority
            .zip(priority)
            .is_some_and(|(a, b)| a != b)
        {
            return wrong(
                "preemptor.priority",
                "must be the priority of the group; omit it",
            );
        }
    }
    if let Some(strategy) = &scenario.placement_strategy
        && !["first_fit", "best_fit", "both"]
            .iter()
            .any(|it| strategy.starts_with(it))
    {
        return wrong(
            "placement_strategy",
            "must start with first_fit, best_fit or both",
        );
    }
    Ok(())
}

fn check_pod(pod: &Pod, path: &str, sums: &mut ResourceTotals) -> Result<(), GangError> {
    if pod.spec.is_some() && !pod.requests.is_empty() {
        return Err(GangError::Form {
            at: format!("{path}.requests"),
            problem: "requests and spec are mutually exclusive; omit one",
        });
    }
    for (resource, amount) in &pod.requests {
        sums.add(resource, *amount, || format!("{path}.requests[{resource}]"))?;
    }
    if let Some(spec) = &pod.spec {
        for (resource, amount) in pod_spec_requests(pod, spec, path)? {
            let amount = AmountText::Number(amount.get());
            sums.add(&resource, amount, || format!("{path}.spec"))?;
        }
    }
    Ok(())
}

/// All pods, with their field paths.
pub(super) fn pods_with_paths(scenario: &GangScenario) -> impl Iterator<Item = (String, &Pod)> {
    let all = scenario.pods.iter().enumerate();
    let all = all.map(|(at, pod)| (format!("pods[{at}]"), pod));
    let one = scenario.pod.iter().map(|pod| ("pod".to_owned(), pod));
    let preemptor = scenario.preemptor.iter();
    let waiting = preemptor.clone().flat_map(|it| it.pods.iter().enumerate());
    let waiting = waiting.map(|(at, pod)| (format!("preemptor.pods[{at}]"), pod));
    let single = preemptor.filter_map(|it| it.pod.as_ref());
    let single = single.map(|pod| ("preemptor.pod".to_owned(), pod));
    let victims = scenario.victims.iter().enumerate().flat_map(|(at, it)| {
        let pods = it.pods.iter().enumerate();
        // Victims that are only compared have pods without names.
        let named = pods.filter(|(_, pod)| !pod.name.is_empty());
        named.map(move |(pod_at, pod)| (format!("victims[{at}].pods[{pod_at}]"), pod))
    });
    all.chain(one).chain(waiting).chain(single).chain(victims)
}

/// All groups that have an object, with their field paths.
fn groups_with_paths(scenario: &GangScenario) -> impl Iterator<Item = (String, &Group)> {
    let all = scenario.pod_groups.iter().enumerate();
    let all = all.map(|(at, it)| (format!("pod_groups[{at}]"), it));
    let one = scenario.pod_group.iter();
    let one = one.map(|it| ("pod_group".to_owned(), it));
    let preemptor = scenario.preemptor.iter();
    let preemptor = preemptor.filter_map(|it| it.pod_group.as_ref());
    let preemptor = preemptor.map(|it| ("preemptor.pod_group".to_owned(), it));
    all.chain(one).chain(preemptor)
}

/// The names so far, by kind and namespace.
#[derive(Default)]
struct UniqueNames<'a>(BTreeSet<(&'static str, &'a str, &'a str)>);

impl<'a> UniqueNames<'a> {
    fn add(
        &mut self,
        kind: &'static str,
        namespace: &'a str,
        name: &'a str,
        at: &str,
    ) -> Result<(), GangError> {
        if self.0.insert((kind, namespace, name)) {
            return Ok(());
        }
        Err(GangError::Duplicate {
            at: at.to_owned(),
            kind,
            name: name.to_owned(),
        })
    }
}

/// The sums of all amounts, by resource.
#[derive(Default)]
struct ResourceTotals(BTreeMap<String, i64>);

impl ResourceTotals {
    fn add(
        &mut self,
        key: &str,
        amount: AmountText,
        at: impl Fn() -> String,
    ) -> Result<(), GangError> {
        let (resource, amount) = parse_amount(key, amount);
        let amount = amount.ok_or_else(|| GangError::TooLarge { at: at() })?;
        if amount < 0 {
            return Err(GangError::Negative { at: at() });
        }
        let sum = self.0.entry(resource.to_owned()).or_default();
        let more = sum.checked_add(amount).filter(|it| *it < i64::MAX);
        *sum = more.ok_or_else(|| GangError::TooLarge { at: at() })?;
        Ok(())
    }
}
