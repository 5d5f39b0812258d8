#![doc = include_str!("tree_too_deep.md")]

use crate::finding::Findings;
use crate::quota::HasQuota;
use crate::rule::{Check, Context, Layer, Rule};
use crate::trees::sums::{Chain, chain};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

/// The most cohorts from one up to the root of its tree.
const DEPTH_MAX: usize = 16;

pub(crate) const fn rule<T: HasQuota>() -> Rule<T> {
    Rule {
        id: "CO003",
        name: "cohort-tree-too-deep",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("tree_too_deep.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: HasQuota>(cohort: &T, context: &Context<'_>, out: &mut Findings) {
    let Some(parent) = cohort.above() else {
        return;
    };
    let tree = context.world.tree(T::FAMILY);
    if let Chain::Ends(names) = chain(tree, cohort.name(), Some(parent))
        && names.len() > DEPTH_MAX
    {
        let depth = names.len();
        out.invalid(
            FieldPath::new("spec.parentName"),
            parent,
            format!("the tree is {depth} cohorts deep here; at most {DEPTH_MAX} are advised"),
        );
    }
}
