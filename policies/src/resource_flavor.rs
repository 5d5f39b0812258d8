//! Rules of `ResourceFlavor`, lockkeeper's and Kueue's.

pub(crate) mod flavor_unused;
pub(crate) mod invalid_node_labels;
pub(crate) mod invalid_node_taint;
pub(crate) mod invalid_toleration_key;
mod malformed_toleration;

use crate::cel_defaults::CelDefault;
use crate::cohort_trees::{FlavorFacts, Project};
use crate::defaulting::Defaults;
use crate::rule::{Context, Operation, Rule};
use crate::validated_kind::{ValidatedKind, implement_type_mismatch};
use k8s_openapi::api::core::v1::{Taint, Toleration};
use lockkeeper_api::ResourceFlavor;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::labels;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The rules for lockkeeper's and Kueue's flavors, and rules for only one of them.
macro_rules! flavor_rules {
    ($($own:expr),*) => {
        &[
            crate::resource_flavor::invalid_node_labels::rule(),
            crate::resource_flavor::invalid_node_taint::rule(),
            crate::resource_flavor::invalid_toleration_key::rule(),
            crate::resource_flavor::flavor_unused::rule(),
            $($own,)*
        ]
    };
}
pub(crate) use flavor_rules;

static RULES: &[Rule<ResourceFlavor>] = flavor_rules!(malformed_toleration::RULE);

impl ValidatedKind for ResourceFlavor {
    const NAMESPACED: bool = false;
    const OWN: bool = true;
    const DEFAULTED_ON: &'static [Operation] = &[Operation::Create, Operation::Update];
    const CEL_DEFAULTS: &'static [CelDefault] = &[CelDefault::Finalizer(labels::RESOURCE_IN_USE)];

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }

    /// Adds the finalizer on creation, so that a flavor in use is not deleted.
    fn defaults(object: &Self, _: Option<&Self>, context: &Context<'_>) -> Defaults {
        let mut out = Defaults::default();
        out.add_finalizer(&object.metadata, context.settings);
        out
    }
}

/// The fields of a ResourceFlavor that rules read.
pub(crate) trait FlavorFields: ValidatedKind {
    /// The project that defines the kind.
    const PROJECT: Project;

    /// The labels of the nodes.
    fn node_labels(&self) -> &BTreeMap<String, String>;

    /// The taints of the nodes.
    fn node_taints(&self) -> &[Taint];

    /// The tolerations that are added to admitted pods.
    fn tolerations(&self) -> &[Toleration];

    /// The topology of the nodes.
    fn topology(&self) -> Option<&str>;

    /// The facts for the quota trees.
    fn facts(&self) -> FlavorFacts {
        let labels = self.node_labels();
        // Text, because taints and tolerations have no order: equal text means the same nodes.
        let nodes = (!labels.is_empty()).then(|| {
            let taints = sorted(self.node_taints());
            let tolerations = sorted(self.tolerations());
            format!(
                "{labels:?} {taints:?} {tolerations:?} {:?}",
                self.topology()
            )
        });
        FlavorFacts { nodes }
    }
}

/// The items as sorted text, so that their order in the object does not matter.
fn sorted<T: Debug>(items: &[T]) -> Vec<String> {
    let mut out: Vec<String> = items.iter().map(|it| format!("{it:?}")).collect();
    out.sort();
    out
}

macro_rules! impl_flavor_fields {
    ($type:ty, $family:ident, $flavor:ident => $topology:expr) => {
        impl FlavorFields for $type {
            const PROJECT: Project = Project::$family;

            fn node_labels(&self) -> &BTreeMap<String, String> {
                &self.spec.node_labels
            }

            fn node_taints(&self) -> &[Taint] {
                &self.spec.node_taints
            }

            fn tolerations(&self) -> &[Toleration] {
                &self.spec.tolerations
            }

            fn topology(&self) -> Option<&str> {
                let $flavor = self;
                $topology
            }
        }
    };
}

impl_flavor_fields!(ResourceFlavor, Lockkeeper, _flavor => None);
impl_flavor_fields!(kueue::ResourceFlavor, Kueue, flavor => flavor.spec.topology_name.as_deref());
