//! Checks a whole job against its quotas (R1, R2, R4), and whether it may preempt for them (R6).
//!
//! Source: the proposal, "Quota Assignment", `PreFilter` and step 1 of `PostFilter`:
//!
//! - non-preemptible: non-preemptible use + job ≤ min, and use of all + job ≤ max;
//! - preemptible: the lesser of min and the non-preemptible request + preemptible use + job ≤ max.
//!
//! The job is the sum of all its pods. Idle quota is first come, first served, up to max (R3): no share is computed.
//! The same check applies to every ancestor, so that no ancestor is exceeded.
//!
//! Koordinator (`elasticquota` `PreFilter`) differs: it checks each pod separately, uses the runtime quota instead of
//! max, has no formula for preemptible pods, and checks ancestors only if configured.

use super::preemptibility::Preemptibility;
use super::quota::{QuotaId, QuotaTree};
use super::resource_list::ResourceList;
use crate::ids::ResourceId;

/// The check against one quota of the job's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaCheckLevel {
    /// The quota.
    pub quota: QuotaId,
    /// The sums that were compared with its limits.
    pub usage: CheckedUsage,
    /// The resources that would exceed max, sorted.
    pub over_max: Vec<ResourceId>,
}

/// The sums that are compared with limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckedUsage {
    /// Of a non-preemptible job.
    NonPreemptible {
        /// The usage of non-preemptible pods with the job, compared with min.
        non_preemptible: ResourceList,
        /// The usage of all pods with the job, compared with max.
        all: ResourceList,
        /// The resources that would exceed min, sorted.
        over_min: Vec<ResourceId>,
    },
    /// Of a preemptible job.
    Preemptible {
        /// The reserve for non-preemptible pods: their request, capped by min.
        non_preemptible_reserve: ResourceList,
        /// The reserve, the usage of preemptible pods, and the job; compared with max.
        all: ResourceList,
    },
}

impl QuotaCheckLevel {
    /// Whether min is not exceeded; always true for a preemptible job.
    #[must_use]
    pub const fn is_within_min(&self) -> bool {
        match &self.usage {
            CheckedUsage::NonPreemptible { over_min, .. } => over_min.is_empty(),
            CheckedUsage::Preemptible { .. } => true,
        }
    }

    /// Whether max is not exceeded.
    #[must_use]
    pub const fn is_within_max(&self) -> bool {
        self.over_max.is_empty()
    }
}

/// The result of a job's check against its quota and all ancestors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaCheck {
    /// The preemptibility of the job.
    pub preemptibility: Preemptibility,
    /// The requests of all its pods.
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

    /// Whether quota permits the job to preempt (R6). A preemptible job must have quota already.
    #[must_use]
    pub fn may_preempt(&self) -> bool {
        let mut levels = self.levels.iter();
        match self.preemptibility {
            // Within min it may exceed max: other jobs have borrowed its min.
            Preemptibility::NonPreemptible => levels.all(QuotaCheckLevel::is_within_min),
            Preemptibility::Preemptible => levels.all(QuotaCheckLevel::is_within_max),
        }
    }
}

/// Checks a job against its quota and all ancestors. The tree must count all pods except the job's own.
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
        let (limits, usage) = (tree.limits(quota), tree.usage(quota));
        match class {
            Preemptibility::NonPreemptible => {
                let non_preemptible = usage.non_preemptible_used.plus(&total);
                let all = usage.used().plus(&total);
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
                // R2: pending non-preemptible pods keep their min, others get only the rest.
                let reserve = usage.non_preemptible_request.capped_by(&limits.min);
                let all = reserve.plus(&usage.preemptible_used).plus(&total);
                QuotaCheckLevel {
                    quota,
                    over_max: all.exceeding(&limits.max),
                    usage: CheckedUsage::Preemptible {
                        non_preemptible_reserve: reserve,
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
