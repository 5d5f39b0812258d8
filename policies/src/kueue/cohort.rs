//! Kueue's Cohort.

use crate::cohort::cohort_rules;
use crate::rule::Rule;
use crate::validated_kind::{ValidatedKind, WebhookScope, implement_type_mismatch};
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_api::foreign::kueue::Cohort;

static RULES: &[Rule<Cohort>] = cohort_rules!();

impl ValidatedKind for Cohort {
    const NAMESPACED: bool = false;
    const OWN: bool = false;
    const WEBHOOK: WebhookScope = WebhookScope::Foreign(ForeignKinds::Kueue);

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}
