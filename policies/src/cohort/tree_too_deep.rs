#![doc = include_str!("tree_too_deep.md")]

use crate::cohort_trees::hypothetical_tree::{CohortPath, path_to_root};
use crate::finding::Findings;
use crate::quota::QuotaFields;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

/// The most cohorts from one up to the root of its tree.
const DEPTH_MAX: usize = 16;

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
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

fn check<T: QuotaFields>(cohort: &T, context: &Context<'_>, out: &mut Findings) {
    let Some(parent) = cohort.parent() else {
        return;
    };
    let tree = context.cluster.tree(T::PROJECT);
    if let CohortPath::ReachesRoot(names) = path_to_root(tree, cohort.name(), Some(parent))
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
