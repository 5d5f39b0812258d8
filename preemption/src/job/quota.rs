//! Elastic quotas: a min and a max, what is used of them, and a tree of them.
//!
//! Sources: the proposal, "Proposal" (min is for the non-preemptible, max is for all) and "Quota
//! Assignment"; Koordinator's proposal 20220722-multi-hierarchy-elastic-quota-management for the tree: what
//! is used of a quota is used of all above it (`core/group_quota_manager.go`).

use super::preemptibility::Preemptibility;
use super::resource_list::ResourceList;

/// A quota of a [`QuotaTree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuotaId(u32);

/// What a quota has. A resource that a limit does not name is not limited by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaLimits {
    /// What the non-preemptible may use.
    pub min: ResourceList,
    /// What all together may use.
    pub max: ResourceList,
}

/// What is used and asked for of a quota, those below it included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaUsage {
    /// What non-preemptible pods use that have a place: bound, or assumed and waiting.
    pub non_preemptible_used: ResourceList,
    /// What preemptible pods use that have a place.
    pub preemptible_used: ResourceList,
    /// What all non-preemptible pods ask for, those without a place too.
    pub non_preemptible_request: ResourceList,
}

impl QuotaUsage {
    /// What all pods use together.
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

/// Elastic quotas, children below parents, of any depth.
///
/// A parent is there before its children, so no quota is above itself. To count a pod costs the depth.
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

/// What a pod does to the figures of its quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodStage {
    /// It asks for a place.
    Pending,
    /// It has one.
    Placed,
}

impl QuotaTree {
    /// Adds a quota.
    pub fn add(&mut self, parent: Option<QuotaId>, limits: QuotaLimits) -> QuotaId {
        let id = QuotaId(u32::try_from(self.quotas.len()).unwrap_or(u32::MAX));
        self.quotas.push(Quota {
            parent: parent.filter(|it| self.get(*it).is_some()),
            limits,
            usage: QuotaUsage::default(),
        });
        id
    }

    /// Counts a pod at its quota and at all above it.
    pub fn add_pod(
        &mut self,
        quota: QuotaId,
        class: Preemptibility,
        request: &ResourceList,
        stage: PodStage,
    ) {
        self.change(quota, class, stage, |sum| sum.add(request));
    }

    /// Takes back what [`Self::count`] did.
    pub fn remove_pod(
        &mut self,
        quota: QuotaId,
        class: Preemptibility,
        request: &ResourceList,
        stage: PodStage,
    ) {
        self.change(quota, class, stage, |sum| sum.subtract(request));
    }

    /// What a quota has.
    #[must_use]
    pub fn limits(&self, quota: QuotaId) -> &QuotaLimits {
        &self.get(quota).unwrap_or(&ABSENT_QUOTA).limits
    }

    /// What is used of it.
    #[must_use]
    pub fn usage(&self, quota: QuotaId) -> &QuotaUsage {
        &self.get(quota).unwrap_or(&ABSENT_QUOTA).usage
    }

    /// A quota and all above it, upwards.
    pub fn path(&self, quota: QuotaId) -> impl Iterator<Item = QuotaId> {
        let first = self.get(quota).map(|_| quota);
        std::iter::successors(first, |it| self.get(*it)?.parent)
    }

    /// Whether a quota is the other one or below it.
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
        while let Some(it) = at.and_then(|it| self.quotas.get_mut(usize::try_from(it.0).ok()?)) {
            let figures = &mut it.usage;
            match class {
                Preemptibility::NonPreemptible => {
                    change(&mut figures.non_preemptible_request);
                    if stage == PodStage::Placed {
                        change(&mut figures.non_preemptible_used);
                    }
                }
                Preemptibility::Preemptible if stage == PodStage::Placed => {
                    change(&mut figures.preemptible_used);
                }
                Preemptibility::Preemptible => {}
            }
            at = it.parent;
        }
    }
}
