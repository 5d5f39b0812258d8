//! Kueue's ResourceFlavor.

use crate::guarded::Guarded;
use crate::resource_flavor::{invalid_node_labels, invalid_node_taint, invalid_toleration_key};
use crate::rule::Rule;
use lockkeeper_api::foreign::kueue::ResourceFlavor;

static RULES: &[Rule<ResourceFlavor>] = &[
    invalid_node_labels::rule(),
    invalid_node_taint::rule(),
    invalid_toleration_key::rule(),
];

impl Guarded for ResourceFlavor {
    const NAMESPACED: bool = false;
    const OWN: bool = false;

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}
