//! Kueue's ResourceFlavor.

use crate::resource_flavor::flavor_rules;
use crate::rule::Rule;
use crate::validated_kind::{ValidatedKind, WebhookScope, implement_type_mismatch};
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_api::foreign::kueue::ResourceFlavor;

static RULES: &[Rule<ResourceFlavor>] = flavor_rules!();

impl ValidatedKind for ResourceFlavor {
    const NAMESPACED: bool = false;
    const OWN: bool = false;
    const WEBHOOK: WebhookScope = WebhookScope::Foreign(ForeignKinds::Kueue);

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}
