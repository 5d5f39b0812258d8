#![doc = include_str!("flavor_unused.md")]

use super::FlavorFields;
use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(crate) const fn rule<T: FlavorFields>() -> Rule<T> {
    Rule {
        id: "RF004",
        name: "flavor-unused",
        since: "0.1.0",
        action: Action::Audit,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("flavor_unused.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: FlavorFields>(flavor: &T, context: &Context<'_>, out: &mut Findings) {
    let tree = context.cluster.tree(T::PROJECT);
    let name = flavor.meta().name.as_deref().unwrap_or_default();
    if tree.is_ambiguous() {
        return;
    }
    // No queue has an empty name: this is whether any ClusterQueue is known.
    if tree.has_other_queue("") && tree.users(name).next().is_none() {
        out.forbidden(
            FieldPath::new("metadata.name"),
            format!(
                "no ClusterQueue and no Cohort has quota of {}; add it to one, or delete it",
                quoted(name)
            ),
        );
    }
}
