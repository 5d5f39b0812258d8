//! Walks over the quota of a ClusterQueue or Cohort.

use crate::finding::Findings;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::quota::{FlavorQuotas, ResourceGroup, ResourceQuota};

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
