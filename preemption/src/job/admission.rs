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

use super::class::Class;
use super::quota::{QuotaId, QuotaTree};
use super::resources::Resources;
use crate::names::ResourceId;

/// The sums of a job with one quota of its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The quota.
    pub quota: QuotaId,
    /// What was held against its limits.
    pub sums: Sums,
    /// The resources of which max would be passed, sorted.
    pub over_max: Vec<ResourceId>,
}

/// What is held against limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sums {
    /// Of a non-preemptible job.
    NonPreemptible {
        /// What the non-preemptible would use, held against min.
        non_preemptible: Resources,
        /// What all would use, held against max.
        all: Resources,
        /// The resources of which min would be passed, sorted.
        over_min: Vec<ResourceId>,
    },
    /// Of a preemptible job.
    Preemptible {
        /// What is kept for the non-preemptible: their request, as far as min goes.
        kept: Resources,
        /// That, what preemptible pods use, and the job; held against max.
        all: Resources,
    },
}

impl Level {
    /// Whether min is not passed. Min is nothing to a preemptible job.
    #[must_use]
    pub const fn is_within_min(&self) -> bool {
        match &self.sums {
            Sums::NonPreemptible { over_min, .. } => over_min.is_empty(),
            Sums::Preemptible { .. } => true,
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
pub struct Admission {
    /// The job's class.
    pub class: Class,
    /// What all its pods ask for.
    pub total: Resources,
    /// The job's quota first, then upwards.
    pub levels: Vec<Level>,
}

impl Admission {
    /// Whether there is quota for the job (R1, R2).
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        let mut levels = self.levels.iter();
        levels.all(|it| it.is_within_min() && it.is_within_max())
    }

    /// Whether it may preempt as far as quota goes (R6). A non-preemptible job that stays within min may be
    /// beyond max: others have borrowed what is its own. A preemptible job must have quota already.
    #[must_use]
    pub fn may_preempt(&self) -> bool {
        let mut levels = self.levels.iter();
        match self.class {
            Class::NonPreemptible => levels.all(Level::is_within_min),
            Class::Preemptible => levels.all(Level::is_within_max),
        }
    }
}

/// Holds a job against its quota and all above it. The tree must count all pods but the job's own.
///
/// Costs the depth of the tree.
#[must_use]
pub fn admission(tree: &QuotaTree, quota: QuotaId, class: Class, total: Resources) -> Admission {
    let level = |quota| {
        let (limits, figures) = (tree.limits(quota), tree.figures(quota));
        match class {
            Class::NonPreemptible => {
                let non_preemptible = figures.non_preemptible_used.plus(&total);
                let all = figures.used().plus(&total);
                Level {
                    quota,
                    over_max: all.beyond(&limits.max),
                    sums: Sums::NonPreemptible {
                        over_min: non_preemptible.beyond(&limits.min),
                        non_preemptible,
                        all,
                    },
                }
            }
            Class::Preemptible => {
                let kept = figures.non_preemptible_request.at_most(&limits.min);
                let all = kept.plus(&figures.preemptible_used).plus(&total);
                Level {
                    quota,
                    over_max: all.beyond(&limits.max),
                    sums: Sums::Preemptible { kept, all },
                }
            }
        }
    };
    Admission {
        class,
        levels: tree.path(quota).map(level).collect(),
        total,
    }
}
