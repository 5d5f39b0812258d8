//! Validates a scenario of queues.

use crate::amount_text::AmountText;
use crate::error::{POD_SETS_MAX, ScenarioError};
use crate::scenario::{
    ClusterQueue, Cohort, PodSet, Quota, ResourceGroup, Scenario, UsageAmount, Workload,
};
use std::collections::{BTreeMap, BTreeSet};

/// Checks names, amounts, counts and cohorts, which the core does not check.
pub(super) fn validate(scenario: &Scenario) -> Result<(), ScenarioError> {
    check_unique_names(scenario)?;
    check_weights(&scenario.cohorts, &scenario.cluster_queues)?;
    check_cohort_cycles(&scenario.cohorts)?;
    let mut sums = ScenarioTotals::default();
    sums.add_quotas(&scenario.cohorts, &scenario.cluster_queues)?;
    for (at, queue) in scenario.cluster_queues.iter().enumerate() {
        for (used_at, used) in queue.usage.iter().enumerate() {
            sums.add_usage(used, &format!("clusterQueues[{at}].usage[{used_at}]"))?;
        }
    }
    let requests = scenario.assignment.iter().flat_map(|it| &it.total_requests);
    for (at, request) in requests.enumerate() {
        let at = || format!("assignment.totalRequests[{at}].amount");
        parse_amount(AmountText::Number(request.amount), &request.resource, at)?;
    }
    for (at, workload) in scenario.admitted.iter().enumerate() {
        let path = format!("admitted[{at}]");
        sums.add_workload(workload, &path, true)?;
        check_flavors(workload, &path)?;
    }
    for (at, workload) in scenario.pending.iter().enumerate() {
        sums.add_workload(workload, &format!("pending[{at}]"), false)?;
    }
    if let Some(workload) = &scenario.incoming {
        sums.add_workload(workload, "incoming", false)?;
    }
    Ok(())
}

/// Checks cohorts and ClusterQueues: unique names, amounts that do not overflow, weights, and no cycle of cohorts.
///
/// # Errors
///
/// The first mistake, with the path of its field.
pub fn check_queues(cohorts: &[Cohort], queues: &[ClusterQueue]) -> Result<(), ScenarioError> {
    check_unique_queues(cohorts, queues)?;
    check_weights(cohorts, queues)?;
    check_cohort_cycles(cohorts)?;
    ScenarioTotals::default().add_quotas(cohorts, queues)
}

/// Checks the quotas of the resource groups at a path.
///
/// # Errors
///
/// The first amount that is negative or too large, with the path of its field.
pub fn check_resource_groups(groups: &[ResourceGroup], path: &str) -> Result<(), ScenarioError> {
    ScenarioTotals::default().add_resource_groups(groups, path)
}

/// Checks the pod sets of the workload at a path: their number, counts and requests.
///
/// # Errors
///
/// The first mistake, with the path of its field.
pub fn check_pod_sets(pod_sets: &[PodSet], path: &str) -> Result<(), ScenarioError> {
    ScenarioTotals::default().add_pod_sets(pod_sets, path, false)
}

fn check_unique_queues(cohorts: &[Cohort], queues: &[ClusterQueue]) -> Result<(), ScenarioError> {
    let cohorts = cohorts.iter().map(|it| it.name.as_str());
    check_no_duplicates("cohorts", "Cohort", cohorts)?;
    let queues = queues.iter().map(|it| it.name.as_str());
    check_no_duplicates("clusterQueues", "ClusterQueue", queues)
}

fn check_unique_names(scenario: &Scenario) -> Result<(), ScenarioError> {
    check_unique_queues(&scenario.cohorts, &scenario.cluster_queues)?;
    let admitted = scenario.admitted.iter();
    let pending = scenario.pending.iter().chain(&scenario.incoming);
    let workloads = admitted.chain(pending).map(|it| it.name.as_str());
    check_no_duplicates("admitted, pending", "workload", workloads)
}

fn check_no_duplicates<'a>(
    at: &str,
    kind: &'static str,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), ScenarioError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(ScenarioError::Duplicate {
                at: at.to_owned(),
                kind,
                name: name.to_owned(),
            });
        }
    }
    Ok(())
}

fn check_weights(cohorts: &[Cohort], queues: &[ClusterQueue]) -> Result<(), ScenarioError> {
    let cohorts = cohorts.iter().enumerate();
    let cohorts = cohorts.map(|(at, it)| (format!("cohorts[{at}].fairWeight"), it.fair_weight));
    let queues = queues.iter().enumerate();
    let queues = queues.map(|(at, it)| (format!("clusterQueues[{at}].fairWeight"), it.fair_weight));
    for (at, weight) in cohorts.chain(queues) {
        if !(weight.is_finite() && weight >= 0.0) {
            return Err(ScenarioError::Weight { at });
        }
    }
    Ok(())
}

fn check_cohort_cycles(cohorts: &[Cohort]) -> Result<(), ScenarioError> {
    let parents: BTreeMap<&str, &str> = cohorts
        .iter()
        .filter_map(|it| Some((it.name.as_str(), it.parent.as_deref()?)))
        .collect();
    let places = cohorts.iter().enumerate();
    let places: BTreeMap<&str, usize> = places.map(|(at, it)| (it.name.as_str(), at)).collect();
    // The walk towards the root in which a cohort was first visited. A walk that reaches a cohort of the same walk has
    // found a cycle.
    let mut visited: BTreeMap<&str, usize> = BTreeMap::new();
    let mut first: Option<usize> = None;
    for (walk, cohort) in cohorts.iter().enumerate() {
        let mut name = cohort.name.as_str();
        while !visited.contains_key(name) {
            visited.insert(name, walk);
            match parents.get(name) {
                Some(parent) => name = parent,
                None => break,
            }
        }
        // A walk to a root also ends at a cohort of the same walk, but that has no parent.
        if visited.get(name) == Some(&walk) && parents.contains_key(name) {
            let around = std::iter::successors(Some(name), |cohort| {
                parents.get(cohort).copied().filter(|it| *it != name)
            });
            // Report the first cohort in the file that is on a cycle.
            first = around
                .filter_map(|it| places.get(it).copied())
                .chain(first)
                .min();
        }
    }
    if let Some(at) = first
        && let Some(cohort) = cohorts.get(at)
    {
        return Err(ScenarioError::CohortCycle {
            at: format!("cohorts[{at}].parent"),
            name: cohort.name.clone(),
        });
    }
    Ok(())
}

fn check_flavors(workload: &Workload, path: &str) -> Result<(), ScenarioError> {
    for (at, pod_set) in workload.pod_sets.iter().enumerate() {
        for (resource, amount) in &pod_set.requests {
            let is_given = pod_set.flavors.contains_key(resource);
            if !is_given && amount.in_core_units(resource) != Some(0) {
                return Err(ScenarioError::NoFlavor {
                    at: format!("{path}.podSets[{at}].flavors"),
                    resource: resource.clone(),
                });
            }
        }
    }
    Ok(())
}

/// The sums of quota and reserved amounts over all objects, by resource.
#[derive(Default)]
struct ScenarioTotals {
    quota: BTreeMap<String, i128>,
    reserved: BTreeMap<String, i128>,
}

impl ScenarioTotals {
    fn add_quotas(
        &mut self,
        cohorts: &[Cohort],
        queues: &[ClusterQueue],
    ) -> Result<(), ScenarioError> {
        for (at, cohort) in cohorts.iter().enumerate() {
            for (index, quota) in cohort.quotas.iter().enumerate() {
                self.add_quota(quota, &format!("cohorts[{at}].quotas[{index}]"))?;
            }
        }
        for (at, queue) in queues.iter().enumerate() {
            let path = format!("clusterQueues[{at}].resourceGroups");
            self.add_resource_groups(&queue.resource_groups, &path)?;
        }
        Ok(())
    }

    fn add_resource_groups(
        &mut self,
        groups: &[ResourceGroup],
        path: &str,
    ) -> Result<(), ScenarioError> {
        for (group_at, group) in groups.iter().enumerate() {
            for (flavor_at, flavor) in group.flavors.iter().enumerate() {
                for (quota_at, quota) in flavor.quotas.iter().enumerate() {
                    let at = format!("{path}[{group_at}].flavors[{flavor_at}].quotas[{quota_at}]");
                    self.add_quota(quota, &at)?;
                }
            }
        }
        Ok(())
    }

    fn add_quota(&mut self, quota: &Quota, path: &str) -> Result<(), ScenarioError> {
        let amounts = [
            ("nominal", Some(quota.nominal)),
            ("borrowingLimit", quota.borrowing_limit),
            ("lendingLimit", quota.lending_limit),
        ];
        for (field, amount) in amounts {
            let Some(amount) = amount else {
                continue;
            };
            let at = || format!("{path}.{field}");
            let amount = parse_amount(amount, &quota.resource, at)?;
            // The core adds nominal quotas and borrowing limits, but only subtracts lending limits.
            if field != "lendingLimit" {
                add_to_total(&mut self.quota, &quota.resource, amount, at)?;
            }
        }
        Ok(())
    }

    fn add_usage(&mut self, used: &UsageAmount, path: &str) -> Result<(), ScenarioError> {
        let at = || format!("{path}.amount");
        let amount = parse_amount(AmountText::Number(used.amount), &used.resource, at)?;
        // `i64::MAX` means unlimited, which usage cannot be.
        if amount == i64::MAX {
            return Err(ScenarioError::TooLarge { at: at() });
        }
        add_to_total(&mut self.reserved, &used.resource, amount, at)
    }

    /// Checks the pod sets of a workload, and adds the requests of an admitted one.
    fn add_workload(
        &mut self,
        workload: &Workload,
        path: &str,
        is_held: bool,
    ) -> Result<(), ScenarioError> {
        if let Some(given) = workload.preemption_priority
            && given < workload.priority
        {
            return Err(ScenarioError::PreemptionPriority {
                at: format!("{path}.preemptionPriority"),
                given,
                priority: workload.priority,
            });
        }
        self.add_pod_sets(&workload.pod_sets, path, is_held)
    }

    fn add_pod_sets(
        &mut self,
        pod_sets: &[PodSet],
        path: &str,
        is_held: bool,
    ) -> Result<(), ScenarioError> {
        if pod_sets.len() > POD_SETS_MAX {
            return Err(ScenarioError::TooManyPodSets {
                at: format!("{path}.podSets"),
                count: pod_sets.len(),
            });
        }
        for (at, pod_set) in pod_sets.iter().enumerate() {
            let path = format!("{path}.podSets[{at}]");
            let bad = |field: &str, count, accepted| ScenarioError::Count {
                at: format!("{path}.{field}"),
                count,
                accepted,
            };
            if pod_set.count < 0 || pod_set.count > i64::from(i32::MAX) {
                return Err(bad("count", pod_set.count, "use 0 to 2147483647"));
            }
            if let Some(least) = pod_set.min_count
                && !(0..=pod_set.count).contains(&least)
            {
                return Err(bad("minCount", least, "use 0 to the count of the pod set"));
            }
            for (resource, amount) in &pod_set.requests {
                let at = || format!("{path}.requests.{resource}");
                let amount = parse_amount(*amount, resource, at)?;
                // Pending requests are not added: too large ones fit nowhere.
                if is_held {
                    add_to_total(&mut self.reserved, resource, amount, at)?;
                }
            }
        }
        Ok(())
    }
}

/// An amount in the unit of the core.
pub(crate) fn parse_amount(
    amount: AmountText,
    resource: &str,
    at: impl Fn() -> String,
) -> Result<i64, ScenarioError> {
    let amount = amount
        .in_core_units(resource)
        .ok_or_else(|| ScenarioError::TooLarge { at: at() })?;
    if amount < 0 {
        return Err(ScenarioError::Negative { at: at(), amount });
    }
    Ok(amount)
}

fn add_to_total(
    sums: &mut BTreeMap<String, i128>,
    resource: &str,
    amount: i64,
    at: impl Fn() -> String,
) -> Result<(), ScenarioError> {
    // Unlimited amounts are not added.
    if amount == i64::MAX {
        return Ok(());
    }
    let sum = sums.entry(resource.to_owned()).or_default();
    *sum = sum.saturating_add(i128::from(amount));
    if *sum >= i128::from(i64::MAX) {
        return Err(ScenarioError::TooLarge { at: at() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Cohort, check_cohort_cycles};

    /// The error for these cohorts with their parents.
    fn error_for(cohorts: &[(&str, &str)]) -> Option<String> {
        let cohorts = cohorts.iter().map(|(name, parent)| Cohort {
            name: (*name).to_owned(),
            parent: (!parent.is_empty()).then(|| (*parent).to_owned()),
            quotas: Vec::new(),
            fair_weight: 1.0,
        });
        let cohorts: Vec<Cohort> = cohorts.collect();
        check_cohort_cycles(&cohorts).err().map(|e| e.to_string())
    }

    #[test]
    fn cohort_cycle_names_first_cohort() {
        for (cohorts, expected) in [
            (&[("a", "b"), ("b", "c"), ("c", "")][..], None),
            (&[("a", "elsewhere")], None),
            (&[("a", "a")], Some(0)),
            // A descendant of a cycle is not part of it.
            (&[("a", "b"), ("b", "c"), ("c", "b")], Some(1)),
            // Two cycles, of which the later one is found first.
            (&[("way", "y"), ("b", "b"), ("x", "y"), ("y", "x")], Some(1)),
            (&[("c", "b"), ("b", "a"), ("a", "c")], Some(0)),
        ] {
            let expected = expected.map(|at| format!("cohorts[{at}].parent: "));
            let message = error_for(cohorts);
            let fits = match (&message, &expected) {
                (Some(message), Some(expected)) => message.starts_with(expected),
                (None, None) => true,
                _ => false,
            };
            assert!(fits, "{cohorts:?}: {message:?}");
        }
    }
}
