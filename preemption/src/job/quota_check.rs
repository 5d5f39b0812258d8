//! Whether a job as a whole has quota (R1, R2, R4), and whether preemption may get it some (R6).
//!
//! Source: the proposal, "Quota Assignment", `PreFilter` and step 1 of `PostFilter`:
//!
//! - non-preemptible: non-preemptible use + job ≤ min, and use of all + job ≤ max;
//! - preemptible: the lesser of min and the non-preemptible request, + preemptible use + job ≤ max.
//!
//! The job is the sum of all its pods. Idle quota goes to whoever comes first, up to max (R3): no share is
//! computed. The same is asked of every quota above, so that no parent is passed.
//!
//! What differs from Koordinator (`elasticquota` `PreFilter`): it looks at each pod alone, at the runtime
//! quota in place of max, has no formula for preemptible pods, and asks quotas above only if told to.

use super::preemptibility::Preemptibility;
use super::quota::{QuotaId, QuotaTree};
use super::resource_list::ResourceList;
use crate::ids::ResourceId;

/// The sums of a job with one quota of its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaCheckLevel {
    /// The quota.
    pub quota: QuotaId,
    /// What was held against its limits.
    pub usage: CheckedUsage,
    /// The resources of which max would be passed, sorted.
    pub over_max: Vec<ResourceId>,
}

/// What is held against limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckedUsage {
    /// Of a non-preemptible job.
    NonPreemptible {
        /// What the non-preemptible would use, held against min.
        non_preemptible: ResourceList,
        /// What all would use, held against max.
        all: ResourceList,
        /// The resources of which min would be passed, sorted.
        over_min: Vec<ResourceId>,
    },
    /// Of a preemptible job.
    Preemptible {
        /// What is kept for the non-preemptible: their request, as far as min goes.
        non_preemptible_reserve: ResourceList,
        /// That, what preemptible pods use, and the job; held against max.
        all: ResourceList,
    },
}

impl QuotaCheckLevel {
    /// Whether min is not passed. Min is nothing to a preemptible job.
    #[must_use]
    pub const fn is_within_min(&self) -> bool {
        match &self.usage {
            CheckedUsage::NonPreemptible { over_min, .. } => over_min.is_empty(),
            CheckedUsage::Preemptible { .. } => true,
        }
    }

    /// Whether max is not passed.
    #[must_use]
    pub const fn is_within_max(&self) -> bool {
        self.over_max.is_empty()
    }
}

/// What comes of a job at its quota and those above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaCheck {
    /// The job's class.
    pub preemptibility: Preemptibility,
    /// What all its pods ask for.
    pub total: ResourceList,
    /// The job's quota first, then upwards.
    pub levels: Vec<QuotaCheckLevel>,
}

impl QuotaCheck {
    /// Whether there is quota for the job (R1, R2).
    #[must_use]
    pub fn has_quota(&self) -> bool {
        let mut levels = self.levels.iter();
        levels.all(|it| it.is_within_min() && it.is_within_max())
    }

    /// Whether it may preempt as far as quota goes (R6). A non-preemptible job that stays within min may be
    /// beyond max: others have borrowed what is its own. A preemptible job must have quota already.
    #[must_use]
    pub fn may_preempt(&self) -> bool {
        let mut levels = self.levels.iter();
        match self.preemptibility {
            Preemptibility::NonPreemptible => levels.all(QuotaCheckLevel::is_within_min),
            Preemptibility::Preemptible => levels.all(QuotaCheckLevel::is_within_max),
        }
    }
}

/// Holds a job against its quota and all above it. The tree must count all pods but the job's own.
///
/// Costs the depth of the tree.
#[must_use]
pub fn check_quota(
    tree: &QuotaTree,
    quota: QuotaId,
    class: Preemptibility,
    total: ResourceList,
) -> QuotaCheck {
    let level = |quota| {
        let (limits, figures) = (tree.limits(quota), tree.usage(quota));
        match class {
            Preemptibility::NonPreemptible => {
                let non_preemptible = figures.non_preemptible_used.plus(&total);
                let all = figures.used().plus(&total);
                QuotaCheckLevel {
                    quota,
                    over_max: all.exceeding(&limits.max),
                    usage: CheckedUsage::NonPreemptible {
                        over_min: non_preemptible.exceeding(&limits.min),
                        non_preemptible,
                        all,
                    },
                }
            }
            Preemptibility::Preemptible => {
                let kept = figures.non_preemptible_request.capped_by(&limits.min);
                let all = kept.plus(&figures.preemptible_used).plus(&total);
                QuotaCheckLevel {
                    quota,
                    over_max: all.exceeding(&limits.max),
                    usage: CheckedUsage::Preemptible {
                        non_preemptible_reserve: kept,
                        all,
                    },
                }
            }
        }
    };
    QuotaCheck {
        preemptibility: class,
        levels: tree.path(quota).map(level).collect(),
        total,
    }
}
