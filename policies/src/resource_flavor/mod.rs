//! ResourceFlavor.

use crate::defaulting::Defaults;
use crate::guarded::Guarded;
use crate::rule::{Context, Operation, Rule};
use lockkeeper_api::ResourceFlavor;

impl Guarded for ResourceFlavor {
    const NAMESPACED: bool = false;
    const OWN: bool = true;
    const DEFAULTED_ON: &'static [Operation] = &[Operation::Create, Operation::Update];

    fn rules() -> &'static [Rule<Self>] {
        &[]
    }

    /// On creation the finalizer, so that a flavor that a queue names is not lost.
    fn defaults(object: &Self, old: Option<&Self>, _: &Context<'_>) -> Defaults {
        let mut out = Defaults::default();
        if old.is_none() {
            out.finalizer(object.metadata.finalizers.as_ref());
        }
        out
    }
}
