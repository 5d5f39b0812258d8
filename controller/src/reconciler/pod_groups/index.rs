//! Which pods belong to each group.

use super::member_role::MemberRole;
use crate::key::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};

/// The groups by name.
#[derive(Debug, Default)]
pub(in crate::reconciler) struct PodGroups {
    pub(super) groups: BTreeMap<ObjectKey, Group>,
    /// The groups of the pods.
    group_by_pod: BTreeMap<ObjectKey, ObjectKey>,
    /// The groups that have changed since their view was built, and whether their pods must be planned again.
    pub(super) changed: BTreeMap<ObjectKey, bool>,
}

/// One group.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) pods: BTreeSet<ObjectKey>,
    pub(super) roles: BTreeMap<ObjectKey, PlacedRole>,
    /// The newest resource version of any of its pods.
    pub(super) version: u64,
    /// Since when no pod of it runs or waits, in milliseconds since 1970.
    pub(super) ended_since_ms: Option<i64>,
    /// When its view changes without an event, in milliseconds since 1970.
    pub(super) next_change_ms: Option<i64>,
}

/// The role of a pod, and its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlacedRole {
    role: MemberRole,
    /// The number of pods of the group with the same role that precede it by name.
    position: usize,
}

/// Adds the positions to the roles of a group. Costs the pods.
pub(super) fn placed_roles(
    roles: BTreeMap<ObjectKey, MemberRole>,
) -> BTreeMap<ObjectKey, PlacedRole> {
    let mut counts: BTreeMap<MemberRole, usize> = BTreeMap::new();
    let placed = roles.into_iter().map(|(pod, role)| {
        // Looked up first: most pods have a role that is known, which is not cloned then.
        let position = if let Some(count) = counts.get_mut(&role) {
            let position = *count;
            *count = count.saturating_add(1);
            position
        } else {
            counts.insert(role.clone(), 1);
            0
        };
        (pod, PlacedRole { role, position })
    });
    placed.collect()
}

impl PodGroups {
    /// Records the group of a pod; `None` if it has none, or is gone.
    pub(in crate::reconciler) fn set_group(&mut self, pod: &ObjectKey, group: Option<&ObjectKey>) {
        if let Some(before) = self.group_by_pod.get(pod)
            && Some(before) != group
        {
            let before = before.clone();
            self.group_by_pod.remove(pod);
            if let Some(entry) = self.groups.get_mut(&before) {
                entry.pods.remove(pod);
                entry.roles.remove(pod);
            }
            self.changed.entry(before).or_default();
        }
        if let Some(group) = group {
            self.group_by_pod.insert(pod.clone(), group.clone());
            let entry = self.groups.entry(group.clone()).or_default();
            entry.pods.insert(pod.clone());
            self.changed.entry(group.clone()).or_default();
        }
    }

    /// The workload of a group has changed, or a write of it has ended: its pods are planned again.
    pub(in crate::reconciler) fn set_workload_changed(&mut self, group: &ObjectKey) {
        if self.groups.contains_key(group) {
            self.changed.insert(group.clone(), true);
        }
    }

    /// The role of a pod in its group; `None` until its view is built, or if the pod has ended.
    pub(in crate::reconciler) fn role(
        &self,
        group: &ObjectKey,
        pod: &ObjectKey,
    ) -> Option<&MemberRole> {
        let placed = self.groups.get(group)?.roles.get(pod)?;
        Some(&placed.role)
    }

    /// The number of pods of a group with the same role that precede a pod by name.
    pub(in crate::reconciler) fn position(&self, group: &ObjectKey, pod: &ObjectKey) -> usize {
        let roles = self.groups.get(group).map(|it| &it.roles);
        roles.and_then(|it| it.get(pod)).map_or(0, |it| it.position)
    }

    /// The pods of a group.
    pub(in crate::reconciler) fn pods(
        &self,
        group: &ObjectKey,
    ) -> impl DoubleEndedIterator<Item = &ObjectKey> {
        let group = self.groups.get(group);
        group.into_iter().flat_map(|it| &it.pods)
    }

    /// When the view of a group changes without an event, in milliseconds since 1970.
    pub(in crate::reconciler) fn next_change_ms(&self, group: &ObjectKey) -> Option<i64> {
        self.groups.get(group)?.next_change_ms
    }

    /// The resource versions of pods went back.
    pub(in crate::reconciler) fn forget_versions(&mut self) {
        for group in self.groups.values_mut() {
            group.version = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PlacedRole, placed_roles};
    use crate::key::ObjectKey;
    use crate::reconciler::pod_groups::member_role::{MemberProblem, MemberRole};

    #[test]
    fn positions_count_pods_with_the_same_role() {
        let member = |set: &str| MemberRole::Member(set.to_owned());
        let roles = [
            ("a", member("x")),
            ("b", member("y")),
            ("c", MemberRole::Excluded(MemberProblem::Full)),
            ("d", member("x")),
            ("e", member("x")),
            ("f", member("y")),
        ];
        let key = |name: &str| ObjectKey::new("team", name);
        let placed = placed_roles(
            roles
                .iter()
                .map(|(pod, it)| (key(pod), it.clone()))
                .collect(),
        );
        let expected = roles.into_iter().zip([0, 0, 0, 1, 2, 1]);
        for ((pod, role), position) in expected {
            let expected = PlacedRole { role, position };
            assert_eq!(placed.get(&key(pod)), Some(&expected), "{pod}");
        }
    }
}
