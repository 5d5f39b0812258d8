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
    pub(super) roles: BTreeMap<ObjectKey, MemberRole>,
    /// The newest resource version of any of its pods.
    pub(super) version: u64,
    /// Since when no pod of it runs or waits, in milliseconds since 1970.
    pub(super) ended_since_ms: Option<i64>,
    /// When its view changes without an event, in milliseconds since 1970.
    pub(super) next_change_ms: Option<i64>,
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
        self.groups.get(group)?.roles.get(pod)
    }

    /// The number of pods of a group with the same role that precede a pod by name.
    pub(in crate::reconciler) fn position(&self, group: &ObjectKey, pod: &ObjectKey) -> usize {
        let Some(roles) = self.groups.get(group).map(|it| &it.roles) else {
            return 0;
        };
        let role = roles.get(pod);
        let preceding = roles.range(..pod.clone());
        preceding.filter(|(_, it)| Some(*it) == role).count()
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
