//! The tree of elastic quotas: min, max and usage.
//!
//! Sources: the proposal, "Proposal" (min limits non-preemptible pods, max all pods) and "Quota
//! Assignment"; Koordinator's proposal 20220722-multi-hierarchy-elastic-quota-management for the tree: the
//! usage of a quota counts against all its ancestors (`core/group_quota_manager.go`).

use super::preemptibility::Preemptibility;
use super::resource_list::ResourceList;

/// The id of a quota in a [`QuotaTree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuotaId(u32);

/// The limits of a quota. A resource that is missing in a limit is not limited by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaLimits {
    /// The limit of non-preemptible pods.
    pub min: ResourceList,
    /// The limit of all pods.
    pub max: ResourceList,
}

/// The usage and requests of a quota, descendants included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaUsage {
    /// The usage of placed non-preemptible pods: bound, or assumed.
    pub non_preemptible_used: ResourceList,
    /// The usage of placed preemptible pods.
    pub preemptible_used: ResourceList,
    /// The requests of all non-preemptible pods, pending pods included.
    pub non_preemptible_request: ResourceList,
}

impl QuotaUsage {
    /// The usage of all pods.
    #[must_use]
    pub fn used(&self) -> ResourceList {
        self.non_preemptible_used.plus(&self.preemptible_used)
    }
}

#[derive(Clone, Debug)]
struct Quota {
    parent: Option<QuotaId>,
    limits: QuotaLimits,
    usage: QuotaUsage,
}

/// A tree of elastic quotas of any depth.
///
/// A parent is added before its children, so there are no cycles. Adding a pod costs the depth.
#[derive(Clone, Debug, Default)]
pub struct QuotaTree {
    quotas: Vec<Quota>,
}

static ABSENT_QUOTA: Quota = Quota {
    parent: None,
    limits: QuotaLimits {
        min: ResourceList::NONE,
        max: ResourceList::NONE,
    },
    usage: QuotaUsage {
        non_preemptible_used: ResourceList::NONE,
        preemptible_used: ResourceList::NONE,
        non_preemptible_request: ResourceList::NONE,
    },
};

/// How a pod counts in the usage of its quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodStage {
    /// It is pending: only its request counts.
    Pending,
    /// It has a node.
    Placed,
}

impl QuotaTree {
    /// Adds a quota.
    pub fn add(&mut self, parent: Option<QuotaId>, limits: QuotaLimits) -> QuotaId {
        let id = QuotaId(u32::try_from(self.quotas.len()).unwrap_or(u32::MAX));
        self.quotas.push(Quota {
            // An unknown parent could be the id of this or a later quota, and paths be cycles.
            parent: parent.filter(|it| self.get(*it).is_some()),
            limits,
            usage: QuotaUsage::default(),
        });
        id
    }

    /// Adds a pod to its quota and all ancestors.
    pub fn add_pod(
        &mut self,
        quota: QuotaId,
        class: Preemptibility,
        request: &ResourceList,
        stage: PodStage,
    ) {
        self.change(quota, class, stage, |sum| sum.add(request));
    }

    /// Reverts [`Self::add_pod`].
    pub fn remove_pod(
        &mut self,
        quota: QuotaId,
        class: Preemptibility,
        request: &ResourceList,
        stage: PodStage,
    ) {
        self.change(quota, class, stage, |sum| sum.subtract(request));
    }

    /// The limits of a quota.
    #[must_use]
    pub fn limits(&self, quota: QuotaId) -> &QuotaLimits {
        &self.get(quota).unwrap_or(&ABSENT_QUOTA).limits
    }

    /// The usage of a quota.
    #[must_use]
    pub fn usage(&self, quota: QuotaId) -> &QuotaUsage {
        &self.get(quota).unwrap_or(&ABSENT_QUOTA).usage
    }

    /// A quota and its ancestors, bottom-up.
    pub fn path(&self, quota: QuotaId) -> impl Iterator<Item = QuotaId> {
        let first = self.get(quota).map(|_| quota);
        std::iter::successors(first, |it| self.get(*it)?.parent)
    }

    /// Whether a quota equals the other one or is a descendant of it.
    #[must_use]
    pub fn is_within(&self, quota: QuotaId, above: QuotaId) -> bool {
        self.path(quota).any(|it| it == above)
    }

    fn get(&self, quota: QuotaId) -> Option<&Quota> {
        self.quotas.get(usize::try_from(quota.0).ok()?)
    }

    fn change(
        &mut self,
        quota: QuotaId,
        class: Preemptibility,
        stage: PodStage,
        change: impl Fn(&mut ResourceList),
    ) {
        let mut at = Some(quota);
        while let Some(node) = at.and_then(|it| self.quotas.get_mut(usize::try_from(it.0).ok()?)) {
            let usage = &mut node.usage;
            match class {
                Preemptibility::NonPreemptible => {
                    change(&mut usage.non_preemptible_request);
                    if stage == PodStage::Placed {
                        change(&mut usage.non_preemptible_used);
                    }
                }
                Preemptibility::Preemptible if stage == PodStage::Placed => {
                    change(&mut usage.preemptible_used);
                }
                // No formula uses the requests of pending preemptible pods.
                Preemptibility::Preemptible => {}
            }
            at = node.parent;
        }
    }
}
