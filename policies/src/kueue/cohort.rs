//! Kueue's Cohort.

use crate::cohort::cohort_rules;
use crate::guarded::Guarded;
use crate::rule::Rule;
use lockkeeper_api::foreign::kueue::Cohort;

static RULES: &[Rule<Cohort>] = cohort_rules!();

impl Guarded for Cohort {
    const NAMESPACED: bool = false;
    const OWN: bool = false;

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}
