//! ResourceFlavor, lockkeeper's and Kueue's.

pub(crate) mod invalid_node_labels;
pub(crate) mod invalid_node_taint;
pub(crate) mod invalid_toleration_key;

use crate::defaulting::Defaults;
use crate::guarded::Guarded;
use crate::rule::{Context, Operation, Rule};
use k8s_openapi::api::core::v1::{Taint, Toleration};
use lockkeeper_api::ResourceFlavor;
use lockkeeper_api::foreign::kueue;
use std::collections::BTreeMap;

static RULES: &[Rule<ResourceFlavor>] = &[
    invalid_node_labels::rule(),
    invalid_node_taint::rule(),
    invalid_toleration_key::rule(),
];

impl Guarded for ResourceFlavor {
    const NAMESPACED: bool = false;
    const OWN: bool = true;
    const DEFAULTED_ON: &'static [Operation] = &[Operation::Create, Operation::Update];

    fn rules() -> &'static [Rule<Self>] {
        RULES
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

/// Nodes of one kind.
pub(crate) trait IsFlavor: Guarded {
    /// The labels of the nodes.
    fn node_labels(&self) -> &BTreeMap<String, String>;

    /// Their taints.
    fn node_taints(&self) -> &[Taint];

    /// What their pods tolerate besides.
    fn tolerations(&self) -> &[Toleration];
}

macro_rules! is_flavor {
    ($type:ty) => {
        impl IsFlavor for $type {
            fn node_labels(&self) -> &BTreeMap<String, String> {
                &self.spec.node_labels
            }

            fn node_taints(&self) -> &[Taint] {
                &self.spec.node_taints
            }

            fn tolerations(&self) -> &[Toleration] {
                &self.spec.tolerations
            }
        }
    };
}

is_flavor!(ResourceFlavor);
is_flavor!(kueue::ResourceFlavor);
