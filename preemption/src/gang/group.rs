//! Pod groups and the groups above them.

use super::spec::{DisruptionMode, GroupKey, GroupSpec, PreemptionUnitKind};
use crate::ids::{GroupId, PodId};
use crate::placement::PodPreemption;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The maximum depth of the group tree (`WorkloadMaxTreeDepth` of Kubernetes' API). Groups above it are ignored, which
/// also ends cycles of parents.
const DEPTH_MAX: usize = 4;

/// A pod group or a composite pod group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) kind: PreemptionUnitKind,
    /// The name, with the namespace.
    pub(super) name: Arc<str>,
    /// False for a group that is referenced but does not exist.
    is_present: bool,
    parent: Option<GroupId>,
    pub(super) mode: DisruptionMode,
    pub(super) priority: Option<i32>,
    pub(super) preemption_priority: Option<i32>,
    pub(super) preemption: Option<PodPreemption>,
    pub(super) count_min: Option<u32>,
    children: BTreeSet<GroupId>,
    pub(super) pods: BTreeSet<PodId>,
}

impl Group {
    fn absent(kind: PreemptionUnitKind, name: Arc<str>) -> Self {
        Self {
            kind,
            name,
            is_present: false,
            parent: None,
            mode: DisruptionMode::Pod,
            priority: None,
            preemption_priority: None,
            preemption: None,
            count_min: None,
            children: BTreeSet::new(),
            pods: BTreeSet::new(),
        }
    }
}

/// All groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    all: Vec<Group>,
    ids: BTreeMap<(PreemptionUnitKind, Arc<str>), GroupId>,
    /// Ids to be used again.
    free_ids: BTreeSet<GroupId>,
    /// Whether groups have parents.
    pub(super) has_parents: bool,
}

impl Groups {
    /// The id of a group, whether or not the group exists.
    pub(super) fn intern(&mut self, key: GroupKey<'_>) -> GroupId {
        let name: Arc<str> = super::unit::full_name(key.namespace, key.name).into();
        let full = (key.kind, Arc::clone(&name));
        if let Some(id) = self.ids.get(&full) {
            return *id;
        }
        let id = match self.free_ids.pop_first() {
            Some(id) => id,
            None => GroupId::of(self.all.len()),
        };
        self.ids.insert(full, id);
        let group = Group::absent(key.kind, name);
        match self.all.get_mut(id.index()) {
            Some(slot) => *slot = group,
            None => self.all.push(group),
        }
        id
    }

    /// How many groups have an id.
    pub(super) fn ids_len(&self) -> usize {
        self.ids.len()
    }

    /// Releases the ids of groups that do not exist and have neither pods nor children.
    pub(super) fn release_unused(&mut self) {
        let (all, free_ids) = (&mut self.all, &mut self.free_ids);
        self.ids.retain(|_, id| {
            let Some(group) = all.get_mut(id.index()) else {
                return false;
            };
            let has_members = !group.pods.is_empty() || !group.children.is_empty();
            if group.is_present || has_members {
                return true;
            }
            *group = Group::absent(group.kind, "".into());
            free_ids.insert(*id);
            false
        });
    }

    pub(super) fn get(&self, id: GroupId) -> Option<&Group> {
        self.all.get(id.index())
    }

    pub(super) fn get_mut(&mut self, id: GroupId) -> Option<&mut Group> {
        self.all.get_mut(id.index())
    }

    pub(super) fn set(&mut self, id: GroupId, spec: &GroupSpec<'_>) {
        self.set_parent(id, spec.parent);
        if let Some(group) = self.get_mut(id) {
            group.is_present = true;
            group.mode = spec.mode;
            group.priority = spec.priority;
            group.preemption_priority = spec.preemption_priority;
            group.preemption = spec.preemption;
            group.count_min = spec.count_min;
        }
    }

    pub(super) fn remove(&mut self, id: GroupId) {
        // Children and pods stay linked: the group may be added again.
        self.set_parent(id, None);
        if let Some(group) = self.get_mut(id) {
            group.is_present = false;
        }
    }

    fn set_parent(&mut self, id: GroupId, parent: Option<GroupId>) {
        let before = self.get(id).and_then(|it| it.parent);
        if let Some(before) = before.and_then(|it| self.get_mut(it)) {
            before.children.remove(&id);
        }
        if let Some(parent) = parent.and_then(|it| self.get_mut(it)) {
            parent.children.insert(id);
        }
        if let Some(group) = self.get_mut(id) {
            group.parent = parent;
        }
    }

    /// The group and its ancestors, bottom-up, up to the first that does not exist.
    ///
    /// Source: kube-scheduler v1.37, `TraverseHierarchyUp`.
    pub(super) fn ancestors(&self, id: GroupId) -> impl Iterator<Item = (GroupId, &Group)> {
        let present = move |id: GroupId| {
            let group = self.get(id).filter(|it| it.is_present)?;
            Some((id, group))
        };
        let above = move |(_, group): &(GroupId, &Group)| {
            let parent = group.parent.filter(|_| self.has_parents);
            parent.and_then(present)
        };
        std::iter::successors(present(id), above).take(DEPTH_MAX)
    }

    /// The topmost existing group.
    pub(super) fn root(&self, id: GroupId) -> Option<(GroupId, &Group)> {
        self.ancestors(id).last()
    }

    /// The topmost group that is disrupted as a whole, if there is one.
    ///
    /// Source: kube-scheduler v1.37, `getHighestAllAncestor`.
    pub(super) fn disruption_root(&self, id: GroupId) -> Option<(GroupId, &Group)> {
        let all = self.ancestors(id);
        // Ancestors are listed bottom-up, so the topmost is the last.
        all.filter(|(_, it)| it.mode == DisruptionMode::PodGroup)
            .last()
    }

    /// All pods of a group and of its descendants.
    pub(super) fn pods_below(&self, id: GroupId) -> BTreeSet<PodId> {
        let mut seen = BTreeSet::from([id]);
        let mut unvisited = vec![id];
        let mut pods = BTreeSet::new();
        while let Some(group) = unvisited.pop().and_then(|it| self.get(it)) {
            pods.extend(group.pods.iter().copied());
            for child in &group.children {
                // The parents of groups may form a cycle.
                if seen.insert(*child) {
                    unvisited.push(*child);
                }
            }
        }
        pods
    }
}
