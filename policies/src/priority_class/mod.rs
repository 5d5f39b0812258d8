//! Kubernetes' PriorityClass. What the API server itself checks stays its own.

mod deleted_while_used;
mod second_global_default;

use crate::guarded::Guarded;
use crate::rule::Rule;
use k8s_openapi::api::scheduling::v1::PriorityClass;

static RULES: &[Rule<PriorityClass>] = &[second_global_default::RULE, deleted_while_used::RULE];

impl Guarded for PriorityClass {
    const NAMESPACED: bool = false;
    const OWN: bool = false;

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}
