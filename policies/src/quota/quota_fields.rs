//! Kinds with quota, and visitors of their quotas.

use super::queue_preemption::{self, non_empty};
use crate::cohort_trees::{
    FlavorResource, Limits, NodeFacts, NodeKind, ObjectFacts, Project, SubjectFacts, Tree, quotas,
};
use crate::finding::Findings;
use crate::preemption_loops::{CrossQueueScope, QueuePreemption};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::quantity::Quantity;
use lockkeeper_api::quota::{FairSharing, FlavorQuotas, ResourceGroup, ResourceQuota};
use lockkeeper_api::{ClusterQueue, Cohort};

/// A kind with quota: a ClusterQueue or a Cohort, lockkeeper's or Kueue's.
pub(crate) trait QuotaFields: ValidatedKind {
    /// The project that defines the kind.
    const PROJECT: Project;

    /// Whether it is a queue or a cohort.
    const NODE: NodeKind;

    /// The quota.
    fn groups(&self) -> &[ResourceGroup];

    /// The name of the parent cohort.
    fn parent(&self) -> Option<&str>;

    /// The fair sharing weight, if set.
    fn weight(&self) -> Option<Quantity>;

    /// Whether admission checks may select flavors.
    fn has_checks(&self) -> bool {
        false
    }

    /// Whether its workloads may preempt others of the same priority.
    fn preempts_equals(&self) -> bool {
        false
    }

    /// Whether its workloads also wait for room on nodes.
    fn places_on_nodes(&self) -> bool {
        false
    }

    /// The preemption policies; [`QueuePreemption::may_borrow`] is ignored.
    fn queue_preemption(&self) -> QueuePreemption {
        QueuePreemption::default()
    }

    /// The PriorityClasses that its workloads may use, if it has a list.
    fn allowed_priority_classes(&self) -> Option<&[String]> {
        None
    }

    /// Whether it has a parent cohort, so that it can borrow and lend.
    fn is_in_cohort(&self) -> bool {
        self.parent().is_some()
    }

    /// The name; empty if it will be generated.
    fn name(&self) -> &str {
        self.meta().name.as_deref().unwrap_or_default()
    }

    /// The facts for the quota trees.
    fn facts(&self) -> NodeFacts {
        NodeFacts {
            parent: self.parent().map(str::to_owned),
            quotas: quotas(self.groups()).collect(),
            preemption: self.effective_preemption(),
            has_checks: self.has_checks(),
            preempts_equals: self.preempts_equals(),
            places_on_nodes: self.places_on_nodes(),
            allowed_priority_classes: self.allowed_priority_classes().map(<[String]>::to_vec),
        }
    }

    /// The facts for the quota trees, those of the tree if it has the same version of the object.
    fn facts_from_tree<'a>(&'a self, tree: &'a Tree) -> SubjectFacts<'a> {
        match tree.node(Self::NODE, self.name()) {
            // Stored facts select the cached summary of the tree.
            Some(known) if self.has_facts(known) => SubjectFacts::Stored(known),
            _ => SubjectFacts::Object(ObjectFacts {
                parent: self.parent(),
                preemption: self.effective_preemption(),
                groups: self.groups(),
            }),
        }
    }

    /// Whether these equal its [`facts`](Self::facts). May be false for an object that lists a quota twice.
    fn has_facts(&self, known: &NodeFacts) -> bool {
        self.parent() == known.parent.as_deref()
            && self.effective_preemption() == known.preemption
            && self.has_checks() == known.has_checks
            && self.preempts_equals() == known.preempts_equals
            && self.allowed_priority_classes() == known.allowed_priority_classes.as_deref()
            && quotas(self.groups()).count() == known.quotas.len()
            && quotas(self.groups()).all(|(of, limits)| known.quotas.get(of) == Some(&limits))
    }

    /// The preemption policies that have an effect with its quota and cohort.
    fn effective_preemption(&self) -> QueuePreemption {
        let preemption = self.queue_preemption();
        if !self.is_in_cohort() {
            // Without a cohort nothing can be borrowed, and there are no other queues.
            return QueuePreemption {
                may_borrow: false,
                cross_queue_scope: CrossQueueScope::Never,
                ..preemption
            };
        }
        let mut limits = quotas(self.groups()).map(|(_, it)| it.borrowing);
        let may_borrow = limits.any(|it| it.is_none_or(|limit| !limit.is_zero()));
        QueuePreemption {
            may_borrow,
            ..preemption
        }
    }
}

macro_rules! impl_quota_fields {
    ($type:ty, $family:ident, $node:ident, $spec:ident => $above:expr $(, { $($more:tt)* })?) => {
        impl QuotaFields for $type {
            const PROJECT: Project = Project::$family;
            const NODE: NodeKind = NodeKind::$node;

            fn groups(&self) -> &[ResourceGroup] {
                &self.spec.resource_groups
            }

            fn parent(&self) -> Option<&str> {
                let $spec = &self.spec;
                $above
            }

            fn weight(&self) -> Option<Quantity> {
                let sharing: Option<&FairSharing> = self.spec.fair_sharing.as_ref();
                sharing.and_then(|it| it.weight)
            }

            $($($more)*)?
        }
    };
}

impl_quota_fields!(ClusterQueue, Lockkeeper, Queue, spec => spec.cohort_name.as_deref(), {
    fn preempts_equals(&self) -> bool {
        queue_preemption::own_preempts_equals(&self.spec)
    }

    fn places_on_nodes(&self) -> bool {
        self.spec.places_on_nodes()
    }

    fn queue_preemption(&self) -> QueuePreemption {
        queue_preemption::own_queue_preemption(&self.spec)
    }

    fn allowed_priority_classes(&self) -> Option<&[String]> {
        self.spec.allowed_priority_classes.as_deref()
    }
});
impl_quota_fields!(Cohort, Lockkeeper, Cohort, spec => spec.parent_name.as_deref());
impl_quota_fields!(kueue::ClusterQueue, Kueue, Queue, spec => non_empty(&spec.cohort_name), {
    fn has_checks(&self) -> bool {
        let strategy = self.spec.admission_checks_strategy.as_ref();
        strategy.is_some_and(|it| !it.admission_checks.is_empty())
    }

    fn preempts_equals(&self) -> bool {
        let given = self.spec.preemption.as_ref();
        given.is_some_and(|text| {
            text.within_cluster_queue == "LowerOrNewerEqualPriority"
                || text.reclaim_within_cohort == "Any"
        })
    }

    fn queue_preemption(&self) -> QueuePreemption {
        let given = self.spec.preemption.as_ref();
        given.map(queue_preemption::kueue_queue_preemption).unwrap_or_default()
    }
});
impl_quota_fields!(kueue::Cohort, Kueue, Cohort, spec => non_empty(&spec.parent_name));

/// One quota with its position.
pub(crate) struct QuotaEntry<'a> {
    group_index: usize,
    group: &'a ResourceGroup,
    flavor_index: usize,
    flavor: &'a FlavorQuotas,
    quota_index: usize,
    /// The quota.
    pub(crate) quota: &'a ResourceQuota,
}

impl QuotaEntry<'_> {
    /// The flavor and resource names.
    pub(crate) fn key(&self) -> FlavorResource<'_> {
        (&self.flavor.name, &self.quota.name)
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits::from(self.quota)
    }

    /// The path of a field of this quota. Paths are built only for findings.
    pub(crate) fn field(&self, name: &'static str) -> FieldPath {
        flavor_path(self.group_index, self.group, self.flavor_index, self.flavor)
            .field("resources")
            .item(self.quota_index, &self.quota.name)
            .field(name)
    }
}

/// The path of a group. A group has no name; its first covered resource identifies it when groups move.
pub(crate) fn group_path(index: usize, group: &ResourceGroup) -> FieldPath {
    let groups = FieldPath::new("spec.resourceGroups");
    match group.covered_resources.first() {
        Some(first) => groups.item(index, first),
        None => groups.index(index),
    }
}

/// The path of a flavor in a group.
pub(crate) fn flavor_path(
    group_index: usize,
    parent: &ResourceGroup,
    index: usize,
    flavor: &FlavorQuotas,
) -> FieldPath {
    group_path(group_index, parent)
        .field("flavors")
        .item(index, &flavor.name)
}

/// Visits every quota, in the order of the object, until `out` is full.
pub(crate) fn visit_quotas<'a>(
    groups: &'a [ResourceGroup],
    out: &mut Findings,
    mut visit: impl FnMut(QuotaEntry<'a>, &mut Findings),
) {
    for (group_index, group) in groups.iter().enumerate() {
        for (flavor_index, flavor) in group.flavors.iter().enumerate() {
            for (quota_index, quota) in flavor.resources.iter().enumerate() {
                if out.is_full() {
                    return;
                }
                let place = QuotaEntry {
                    group_index,
                    group,
                    flavor_index,
                    flavor,
                    quota_index,
                    quota,
                };
                visit(place, out);
            }
        }
    }
}

/// Visits every flavor with the path of its name, in the order of the object, until `out` is full.
pub(crate) fn visit_flavors<'a>(
    groups: &'a [ResourceGroup],
    out: &mut Findings,
    mut visit: impl FnMut(&'a FlavorQuotas, &dyn Fn() -> FieldPath, &mut Findings),
) {
    for (group_index, group) in groups.iter().enumerate() {
        for (index, given) in group.flavors.iter().enumerate() {
            if out.is_full() {
                return;
            }
            let path = || flavor_path(group_index, group, index, given).field("name");
            visit(given, &path, out);
        }
    }
}
