//! Cohort.

mod limit_without_parent;

use crate::guarded::Guarded;
use crate::rule::Rule;
use lockkeeper_api::Cohort;

static RULES: &[Rule<Cohort>] = &[limit_without_parent::RULE];

impl Guarded for Cohort {
    const NAMESPACED: bool = false;
    const OWN: bool = true;

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}
