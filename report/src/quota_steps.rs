//! The quotas of queues and cohorts over time.

use crate::step_series::{Steps, steps_from_changes};
use lockkeeper_scenario::{Quota, ResourceGroup};
use lockkeeper_simulate::timeline::JobTrace;

/// The quotas of a queue for one resource, all flavors together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueQuota {
    pub(crate) nominal: Steps,
    /// Nominal quota and borrowing limit; `None` if the queue has no cohort, or may borrow without a limit.
    pub(crate) limit: Option<Steps>,
    /// Nominal quota without the part that the queue lends; `None` if the queue lends all.
    pub(crate) reserved: Option<Steps>,
}

/// Returns the quotas of the queue with an index.
pub(crate) fn queue_quota(trace: &JobTrace, queue: usize, resource: &str) -> QueueQuota {
    let Some(queue) = trace.cluster_queues.get(queue) else {
        return QueueQuota::default();
    };
    let changes = trace.changes.iter();
    let changes = changes.filter(|it| it.cluster_queue == queue.name);
    let changes = changes.map(|it| (it.at, it.resource_groups.as_slice()));
    let first = std::iter::once((0, queue.resource_groups.as_slice()));
    let versions: Vec<(i64, Vec<&Quota>)> = first
        .chain(changes)
        .map(|(at_s, groups)| (at_s, quotas(groups, resource)))
        .collect();
    let has_cohort = queue.cohort.is_some();
    let all = || versions.iter().flat_map(|(_, quotas)| quotas);
    let is_limited = has_cohort && all().all(|it| it.borrowing_limit.is_some());
    let is_reserved = has_cohort && all().any(|it| it.lending_limit.is_some());
    let steps = |amount: &dyn Fn(&Quota) -> i64| {
        let sums = versions.iter().map(|(at_s, quotas)| {
            let amounts = quotas.iter().map(|it| amount(it));
            (*at_s, amounts.fold(0, i64::saturating_add))
        });
        changed_steps(sums)
    };
    QueueQuota {
        nominal: steps(&nominal),
        limit: is_limited.then(|| steps(&|it| nominal(it).saturating_add(borrowing_limit(it)))),
        reserved: is_reserved.then(|| steps(&|it| nominal(it).saturating_sub(lending_limit(it)))),
    }
}

/// Returns the own quota of a cohort for a resource, all flavors together.
pub(crate) fn cohort_quota(trace: &JobTrace, cohort: &str, resource: &str) -> Steps {
    let cohorts = trace.cohorts.iter().filter(|it| it.name == cohort);
    let quotas = cohorts.flat_map(|it| &it.quotas);
    let quotas = quotas.filter(|it| it.resource == resource);
    steps_from_changes(quotas.map(|it| (0, nominal(it))).collect())
}

fn quotas<'a>(groups: &'a [ResourceGroup], resource: &str) -> Vec<&'a Quota> {
    let flavors = groups.iter().flat_map(|it| &it.flavors);
    let quotas = flavors.flat_map(|it| &it.quotas);
    quotas.filter(|it| it.resource == resource).collect()
}

fn nominal(quota: &Quota) -> i64 {
    let amount = quota.nominal.in_core_units(&quota.resource);
    amount.unwrap_or(i64::MAX)
}

fn borrowing_limit(quota: &Quota) -> i64 {
    let limit = quota.borrowing_limit;
    let limit = limit.and_then(|it| it.in_core_units(&quota.resource));
    limit.unwrap_or(i64::MAX)
}

/// Without a limit, a queue lends all.
fn lending_limit(quota: &Quota) -> i64 {
    let limit = quota.lending_limit;
    let limit = limit.and_then(|it| it.in_core_units(&quota.resource));
    limit.unwrap_or_else(|| nominal(quota))
}

/// Drops values that are equal to those before them. The last of several values of one time remains.
fn changed_steps(values: impl Iterator<Item = (i64, i64)>) -> Steps {
    let mut steps = Steps::new();
    for (at_s, value) in values {
        steps.pop_if(|last| last.0 == at_s);
        if steps.last().map_or(0, |last| last.1) != value {
            steps.push((at_s, value));
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::{QueueQuota, cohort_quota, queue_quota};
    use lockkeeper_simulate::timeline::JobTrace;
    use serde_json::{Value, json};

    fn groups(quotas: &[Value]) -> Value {
        let flavors = quotas.iter().enumerate().map(|(at, quota)| {
            let mut quota = quota.clone();
            quota["resource"] = json!("gpu");
            json!({"name": format!("f{at}"), "quotas": [quota]})
        });
        json!([{"resources": ["gpu"], "flavors": flavors.collect::<Vec<_>>()}])
    }

    fn trace(cohort: Option<&str>) -> JobTrace {
        let limited = json!({"nominal": 4, "borrowingLimit": 2, "lendingLimit": 1});
        let other = json!({"nominal": 8, "borrowingLimit": 3});
        serde_json::from_value(json!({
            "cohorts": [{"name": "all", "quotas": [{"flavor": "f0", "resource": "gpu", "nominal": 5}]}],
            "clusterQueues": [{
                "name": "a", "cohort": cohort, "resourceGroups": groups(&[limited.clone(), other.clone()]),
            }],
            "jobs": [],
            "changes": [
                {"at": 10, "clusterQueue": "a", "resourceGroups": groups(&[limited.clone(), other])},
                {"at": 20, "clusterQueue": "a", "resourceGroups": groups(&[])},
                {"at": 20, "clusterQueue": "a", "resourceGroups": groups(&[limited])},
            ],
        }))
        .unwrap()
    }

    #[test]
    fn quotas_of_all_flavors_change_over_time() {
        let quota = queue_quota(&trace(Some("all")), 0, "gpu");
        assert_eq!(quota.nominal, [(0, 12), (20, 4)]);
        assert_eq!(quota.limit, Some(vec![(0, 17), (20, 6)]));
        // A flavor without a lending limit is lent.
        assert_eq!(quota.reserved, Some(vec![(0, 3)]));
        assert_eq!(cohort_quota(&trace(None), "all", "gpu"), [(0, 5)]);
    }

    #[test]
    fn queue_without_cohort_has_no_limit() {
        let quota = queue_quota(&trace(None), 0, "gpu");
        assert_eq!((quota.limit, quota.reserved), (None, None));
        assert_eq!(queue_quota(&trace(None), 9, "gpu"), QueueQuota::default());
    }
}
