//! Conversion of ClusterQueues and Cohorts into core values.

use crate::error::{ObjectError, ObjectProblem, Subject};
use crate::label_selector::Selector;
use crate::quantities::{amount_from_quantity, weight_from_quantity};
use crate::queue_policies;
use lockkeeper_api::cluster_queue::ClusterQueueSpec;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::quota::{FairSharing, ResourceGroup, ResourceQuota};
use lockkeeper_api::{ClusterQueue, Cohort};
use lockkeeper_preemption as core;
use lockkeeper_preemption::{
    Amount, CohortSpec, FlavorResource, QueueSpec, Quota, ResourceId, State,
};
use std::collections::BTreeSet;

/// A ClusterQueue as a core value. `is_active` depends on other objects: false if the queue is stopped, or if one of
/// its flavors does not exist.
///
/// # Errors
///
/// An [`ObjectError`] for an amount that is negative or too large, a duplicate resource or flavor in a group, and an
/// invalid selector.
pub fn queue_spec<'a>(
    queue: &'a ClusterQueue,
    state: &mut State,
    is_active: bool,
) -> Result<QueueSpec<'a>, ObjectError> {
    let subject = Subject::new("ClusterQueue", &queue.metadata);
    let spec = &queue.spec;
    // Validated only: the core has no selectors, `ClusterState` stores them.
    selector(queue)?;
    let groups = resource_groups(subject, state, &spec.resource_groups)?;
    Ok(QueueSpec {
        name: queue.metadata.name.as_deref().unwrap_or_default(),
        cohort: spec.cohort_name.as_deref(),
        groups,
        preemption: preemption_policy(spec),
        fungibility: spec
            .flavor_fungibility
            .as_ref()
            .map(queue_policies::flavor_fungibility)
            .unwrap_or_default(),
        strategy: queue_policies::queueing_strategy(spec.queueing_strategy.unwrap_or_default()),
        backfill: queue_policies::backfill(spec.backfill.as_ref()),
        weight: fair_weight(subject, spec.fair_sharing.as_ref())?,
        is_active,
        elastic: spec.elastic.as_ref().map(queue_policies::elastic_defaults),
    })
}

/// A Cohort as a core value. The core detects cycles of cohorts: one object alone does not show them.
///
/// # Errors
///
/// As for [`queue_spec`].
pub fn cohort_spec<'a>(
    cohort: &'a Cohort,
    state: &mut State,
) -> Result<CohortSpec<'a>, ObjectError> {
    let subject = Subject::new("Cohort", &cohort.metadata);
    let groups = resource_groups(subject, state, &cohort.spec.resource_groups)?;
    let quotas = groups.into_iter().flat_map(|group| group.flavors);
    let quotas = quotas.flat_map(|of| {
        let flavor = of.flavor;
        let quotas = of.quotas.into_iter();
        quotas.map(move |(resource, quota)| (FlavorResource { flavor, resource }, quota))
    });
    Ok(CohortSpec {
        name: cohort.metadata.name.as_deref().unwrap_or_default(),
        parent: cohort.spec.parent_name.as_deref(),
        quotas: quotas.collect(),
        weight: fair_weight(subject, cohort.spec.fair_sharing.as_ref())?,
    })
}

/// The namespaces whose workloads a ClusterQueue accepts; `None` means none.
///
/// # Errors
///
/// An [`ObjectError`] for an unknown operator.
pub fn selector(queue: &ClusterQueue) -> Result<Option<Selector>, ObjectError> {
    let Some(given) = &queue.spec.namespace_selector else {
        return Ok(None);
    };
    let selector = Selector::from(given);
    for (at, requirement) in selector.match_expressions.iter().enumerate() {
        // An unknown operator would be treated as `DoesNotExist`.
        let known = ["In", "NotIn", "Exists", "DoesNotExist"];
        if !known.contains(&requirement.operator.as_str()) {
            let field = FieldPath::new("spec.namespaceSelector.matchExpressions");
            let field = field.index(at).field("operator");
            let subject = Subject::new("ClusterQueue", &queue.metadata);
            return Err(subject.error(
                &field,
                ObjectProblem::Operator(requirement.operator.clone()),
            ));
        }
    }
    Ok(Some(selector))
}

fn resource_groups(
    subject: Subject<'_>,
    state: &mut State,
    groups: &[ResourceGroup],
) -> Result<Vec<core::ResourceGroup>, ObjectError> {
    let mut out = Vec::with_capacity(groups.len());
    let mut seen = BTreeSet::new();
    for (group_at, group) in groups.iter().enumerate() {
        let path = || FieldPath::new("spec.resourceGroups").index(group_at);
        let covered = group.covered_resources.iter();
        let resources = covered.map(|it| state.resource(it)).collect();
        let mut flavors = Vec::with_capacity(group.flavors.len());
        for (flavor_at, flavor) in group.flavors.iter().enumerate() {
            let path = || path().field("flavors").index(flavor_at);
            let mut quotas = Vec::with_capacity(flavor.resources.len());
            for (at, resource) in flavor.resources.iter().enumerate() {
                let path = || path().field("resources").index(at);
                if !seen.insert((flavor.name.as_str(), resource.name.as_str())) {
                    let twice = ObjectProblem::Duplicate(resource.name.clone());
                    return Err(subject.error(&path().field("name"), twice));
                }
                quotas.push((
                    state.resource(&resource.name),
                    quota(subject, resource, path)?,
                ));
            }
            flavors.push(core::FlavorQuotas {
                flavor: state.flavor(&flavor.name),
                quotas,
            });
        }
        out.push(core::ResourceGroup { resources, flavors });
    }
    Ok(out)
}

fn quota(
    subject: Subject<'_>,
    quota: &ResourceQuota,
    path: impl Fn() -> FieldPath,
) -> Result<Quota, ObjectError> {
    let read = |quantity, field| {
        amount_from_quantity(subject, &quota.name, quantity, || path().field(field))
    };
    let limit = |limit: Option<_>, field| limit.map(|it| read(it, field)).transpose();
    Ok(Quota {
        nominal: read(quota.nominal_quota, "nominalQuota")?,
        borrowing_limit: limit(quota.borrowing_limit, "borrowingLimit")?,
        lending_limit: limit(quota.lending_limit, "lendingLimit")?,
    })
}

fn fair_weight(subject: Subject<'_>, fair: Option<&FairSharing>) -> Result<f64, ObjectError> {
    let given = fair.and_then(|it| it.weight);
    weight_from_quantity(subject, given, || FieldPath::new("spec.fairSharing.weight"))
}

fn preemption_policy(spec: &ClusterQueueSpec) -> core::Preemption {
    let given = spec.preemption.as_ref();
    core::Preemption {
        within_cluster_queue: queue_policies::within_cluster_queue(spec.within_cluster_queue()),
        reclaim_within_cohort: queue_policies::reclaim_within_cohort(spec.reclaim_within_cohort()),
        borrow_within_cohort: queue_policies::borrow_within_cohort(
            given.and_then(|it| it.borrow_within_cohort.as_ref()),
        ),
        limits: given
            .and_then(|it| it.limits.as_ref())
            .map(queue_policies::preemption_limits)
            .unwrap_or_default(),
    }
}

/// The limits of a quota that count towards the totals.
pub(crate) fn limit_amounts((resource, quota): &(ResourceId, Quota)) -> Vec<(ResourceId, Amount)> {
    // The lending limit is part of the nominal quota.
    let limit = quota.borrowing_limit.into_iter();
    let amounts = limit.chain([quota.nominal]);
    amounts.map(|it| (*resource, it)).collect()
}

/// The flavors of a ClusterQueue, by resource group.
pub(crate) fn flavor_names(spec: &ClusterQueueSpec) -> Vec<Vec<&str>> {
    let groups = spec.resource_groups.iter();
    let names = groups.map(|it| it.flavors.iter().map(|it| it.name.as_str()).collect());
    names.collect()
}

/// The covered resources of a ClusterQueue, by resource group.
pub(crate) fn covered_resources(spec: &ClusterQueueSpec) -> Vec<&[String]> {
    let groups = spec.resource_groups.iter();
    groups.map(|it| it.covered_resources.as_slice()).collect()
}
