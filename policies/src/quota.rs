//! Kinds with quota, and walks over it.

use crate::finding::Findings;
use crate::guarded::Guarded;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lockkeeper_api::cluster_queue::FlavorSearch;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::quantity::Quantity;
use lockkeeper_api::quota::{FairSharing, FlavorQuotas, ResourceGroup, ResourceQuota};
use lockkeeper_api::{ClusterQueue, Cohort};

/// A kind that has quota: a ClusterQueue or a Cohort, lockkeeper's or Kueue's.
pub(crate) trait HasQuota: Guarded {
    /// The quota.
    fn groups(&self) -> &[ResourceGroup];

    /// Whether it is in a cohort, from which it can borrow and to which it can lend.
    fn is_in_cohort(&self) -> bool;

    /// The weight, if one is given.
    fn weight(&self) -> Option<Quantity>;
}

macro_rules! has_quota {
    ($type:ty, $spec:ident => $is_in_cohort:expr) => {
        impl HasQuota for $type {
            fn groups(&self) -> &[ResourceGroup] {
                &self.spec.resource_groups
            }

            fn is_in_cohort(&self) -> bool {
                let $spec = &self.spec;
                $is_in_cohort
            }

            fn weight(&self) -> Option<Quantity> {
                let sharing: Option<&FairSharing> = self.spec.fair_sharing.as_ref();
                sharing.and_then(|it| it.weight)
            }
        }
    };
}

has_quota!(ClusterQueue, spec => spec.cohort_name.is_some());
has_quota!(Cohort, spec => spec.parent_name.is_some());
has_quota!(kueue::ClusterQueue, spec => !spec.cohort_name.is_empty());
has_quota!(kueue::Cohort, spec => !spec.parent_name.is_empty());

/// A ClusterQueue, lockkeeper's or Kueue's.
pub(crate) trait IsQueue: HasQuota {
    /// The namespaces whose workloads it takes.
    fn selector(&self) -> Option<&LabelSelector>;

    /// The preference between borrowing and preempting, if one is given.
    fn preference(&self) -> Option<String>;

    /// Whether all flavors are looked at before one is taken.
    fn tries_all_flavors(&self) -> bool;
}

impl IsQueue for ClusterQueue {
    fn selector(&self) -> Option<&LabelSelector> {
        self.spec.namespace_selector.as_ref()
    }

    fn preference(&self) -> Option<String> {
        let given = self.spec.flavor_fungibility.as_ref()?.preference?;
        Some(format!("{given:?}"))
    }

    fn tries_all_flavors(&self) -> bool {
        let given = self.spec.flavor_fungibility.as_ref();
        let both = given.map(|it| (it.when_can_borrow, it.when_can_preempt));
        let (borrow, preempt) = both.unwrap_or_default();
        // Absent, the one stops the search and the other does not.
        borrow == Some(FlavorSearch::TryNextFlavor)
            && preempt.is_none_or(|it| it == FlavorSearch::TryNextFlavor)
    }
}

impl IsQueue for kueue::ClusterQueue {
    fn selector(&self) -> Option<&LabelSelector> {
        self.spec.namespace_selector.as_ref()
    }

    fn preference(&self) -> Option<String> {
        self.spec.flavor_fungibility.as_ref()?.preference.clone()
    }

    fn tries_all_flavors(&self) -> bool {
        let given = self.spec.flavor_fungibility.as_ref();
        given.is_some_and(|it| {
            [&it.when_can_borrow, &it.when_can_preempt]
                .iter()
                .all(|it| *it == "TryNextFlavor")
        })
    }
}

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
