//! Kinds with quota, and walks over it.

mod queue;

use crate::endless::{Beyond, Hunter};
use crate::finding::Findings;
use crate::guarded::Guarded;
use crate::trees::{Family, FlavorResource, Limits, NodeFacts, NodeKind, Tree};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::quantity::Quantity;
use lockkeeper_api::quota::{FairSharing, FlavorQuotas, ResourceGroup, ResourceQuota};
use lockkeeper_api::{ClusterQueue, Cohort};
use std::borrow::Cow;

pub(crate) use queue::IsQueue;

/// A kind that has quota: a ClusterQueue or a Cohort, lockkeeper's or Kueue's.
pub(crate) trait HasQuota: Guarded {
    /// Whose it is.
    const FAMILY: Family;

    /// Which of both it is.
    const NODE: NodeKind;

    /// The quota.
    fn groups(&self) -> &[ResourceGroup];

    /// The cohort that it is in.
    fn above(&self) -> Option<&str>;

    /// The weight, if one is given.
    fn weight(&self) -> Option<Quantity>;

    /// Whether admission checks may tell its flavors apart.
    fn has_checks(&self) -> bool {
        false
    }

    /// Whether its workloads may preempt others of the same priority.
    fn takes_equals(&self) -> bool {
        false
    }

    /// What its policies let its workloads do; [`Hunter::may_borrow`] is not looked at.
    fn hunter(&self) -> Hunter {
        Hunter::default()
    }

    /// Whether it is in a cohort, from which it can borrow and to which it can lend.
    fn is_in_cohort(&self) -> bool {
        self.above().is_some()
    }

    /// The name; empty if it will be generated.
    fn name(&self) -> &str {
        self.meta().name.as_deref().unwrap_or_default()
    }

    /// What rules about trees use of it.
    fn facts(&self) -> NodeFacts {
        NodeFacts {
            above: self.above().map(str::to_owned),
            quotas: quotas(self.groups()).collect(),
            hunter: self.hunter_here(),
            has_checks: self.has_checks(),
            takes_equals: self.takes_equals(),
        }
    }

    /// The same; those that the tree has, if it knows the object as it is.
    fn facts_in<'t>(&self, tree: &'t Tree) -> Cow<'t, NodeFacts> {
        match tree.node(Self::NODE, self.name()) {
            Some(known) if self.is_known_as(known) => Cow::Borrowed(known),
            _ => Cow::Owned(self.facts()),
        }
    }

    /// Whether these are its [`facts`](Self::facts). May say no of an object that has a quota twice.
    fn is_known_as(&self, known: &NodeFacts) -> bool {
        self.above() == known.above.as_deref()
            && self.hunter_here() == known.hunter
            && self.has_checks() == known.has_checks
            && self.takes_equals() == known.takes_equals
            && quotas(self.groups()).count() == known.quotas.len()
            && quotas(self.groups()).all(|(of, limits)| known.quotas.get(of) == Some(&limits))
    }

    /// What its policies let its workloads do with the quota that it has.
    fn hunter_here(&self) -> Hunter {
        let hunter = self.hunter();
        if !self.is_in_cohort() {
            // Nothing can be borrowed, and there is nobody beyond.
            return Hunter {
                may_borrow: false,
                beyond: Beyond::Nobody,
                ..hunter
            };
        }
        let mut limits = quotas(self.groups()).map(|(_, it)| it.borrowing);
        let may_borrow = limits.any(|it| it.is_none_or(|limit| !limit.is_zero()));
        Hunter {
            may_borrow,
            ..hunter
        }
    }
}

/// Quota by flavor and resource, in the order in which it stands.
fn quotas(groups: &[ResourceGroup]) -> impl Iterator<Item = (FlavorResource<'_>, Limits)> {
    let flavors = groups.iter().flat_map(|group| &group.flavors);
    let all = flavors.flat_map(|flavor| flavor.resources.iter().map(move |it| (flavor, it)));
    all.map(|(flavor, quota)| {
        let limits = Limits {
            nominal: quota.nominal_quota,
            borrowing: quota.borrowing_limit,
            lending: quota.lending_limit,
        };
        ((flavor.name.as_str(), quota.name.as_str()), limits)
    })
}

/// `given`, if it is anything.
fn named(given: &str) -> Option<&str> {
    Some(given).filter(|it| !it.is_empty())
}

macro_rules! has_quota {
    ($type:ty, $family:ident, $node:ident, $spec:ident => $above:expr $(, { $($more:tt)* })?) => {
        impl HasQuota for $type {
            const FAMILY: Family = Family::$family;
            const NODE: NodeKind = NodeKind::$node;

            fn groups(&self) -> &[ResourceGroup] {
                &self.spec.resource_groups
            }

            fn above(&self) -> Option<&str> {
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

has_quota!(ClusterQueue, Own, Queue, spec => spec.cohort_name.as_deref(), {
    fn takes_equals(&self) -> bool {
        queue::own_takes_equals(&self.spec)
    }

    fn hunter(&self) -> Hunter {
        queue::own_hunter(&self.spec)
    }
});
has_quota!(Cohort, Own, Cohort, spec => spec.parent_name.as_deref());
has_quota!(kueue::ClusterQueue, Kueue, Queue, spec => named(&spec.cohort_name), {
    fn has_checks(&self) -> bool {
        let strategy = self.spec.admission_checks_strategy.as_ref();
        strategy.is_some_and(|it| !it.admission_checks.is_empty())
    }

    fn takes_equals(&self) -> bool {
        let given = self.spec.preemption.as_ref();
        given.is_some_and(|it| {
            it.within_cluster_queue == "LowerOrNewerEqualPriority"
                || it.reclaim_within_cohort == "Any"
        })
    }

    fn hunter(&self) -> Hunter {
        let given = self.spec.preemption.as_ref();
        given.map(queue::kueue_hunter).unwrap_or_default()
    }
});
has_quota!(kueue::Cohort, Kueue, Cohort, spec => named(&spec.parent_name));

/// One quota and where it stands.
pub(crate) struct Place<'a> {
    group_index: usize,
    group: &'a ResourceGroup,
    flavor_index: usize,
    flavor: &'a FlavorQuotas,
    quota_index: usize,
    /// The quota.
    pub(crate) quota: &'a ResourceQuota,
}

impl Place<'_> {
    /// The flavor and the resource.
    pub(crate) fn key(&self) -> FlavorResource<'_> {
        (&self.flavor.name, &self.quota.name)
    }

    /// The path of a field of this quota. Paths are made only for findings.
    pub(crate) fn field(&self, name: &'static str) -> FieldPath {
        flavor(self.group_index, self.group, self.flavor_index, self.flavor)
            .field("resources")
            .item(self.quota_index, &self.quota.name)
            .field(name)
    }
}

/// The path of a group. A group has no name; the first resource that it covers tells it from others
/// when groups move.
pub(crate) fn group(index: usize, group: &ResourceGroup) -> FieldPath {
    let groups = FieldPath::new("spec.resourceGroups");
    match group.covered_resources.first() {
        Some(first) => groups.item(index, first),
        None => groups.index(index),
    }
}

/// The path of a flavor in a group.
pub(crate) fn flavor(
    group_index: usize,
    parent: &ResourceGroup,
    index: usize,
    flavor: &FlavorQuotas,
) -> FieldPath {
    group(group_index, parent)
        .field("flavors")
        .item(index, &flavor.name)
}

/// Visits every quota, in the order of the object, until `out` is full.
pub(crate) fn each<'a>(
    groups: &'a [ResourceGroup],
    out: &mut Findings,
    mut visit: impl FnMut(Place<'a>, &mut Findings),
) {
    for (group_index, group) in groups.iter().enumerate() {
        for (flavor_index, flavor) in group.flavors.iter().enumerate() {
            for (quota_index, quota) in flavor.resources.iter().enumerate() {
                if out.is_full() {
                    return;
                }
                let place = Place {
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
pub(crate) fn each_flavor<'a>(
    groups: &'a [ResourceGroup],
    out: &mut Findings,
    mut visit: impl FnMut(&'a FlavorQuotas, &dyn Fn() -> FieldPath, &mut Findings),
) {
    for (group_index, group) in groups.iter().enumerate() {
        for (index, given) in group.flavors.iter().enumerate() {
            if out.is_full() {
                return;
            }
            let path = || flavor(group_index, group, index, given).field("name");
            visit(given, &path, out);
        }
    }
}
