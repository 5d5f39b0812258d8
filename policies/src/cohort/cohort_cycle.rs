#![doc = include_str!("cohort_cycle.md")]

use crate::cohort_trees::hypothetical_tree::{CohortPath, path_to_root};
use crate::finding::{Findings, join_names};
use crate::quota::QuotaFields;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CO002",
        name: "cohort-cycle",
        since: "0.1.0",
        // Kueue accepts such a cohort, and a later change may remove the cycle.
        action: if T::OWN {
            Action::Enforce
        } else {
            Action::Warn
        },
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("cohort_cycle.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: QuotaFields>(cohort: &T, context: &Context<'_>, out: &mut Findings) {
    let Some(parent) = cohort.parent() else {
        return;
    };
    let tree = context.cluster.tree(T::PROJECT);
    if let CohortPath::ReturnsToStart(names) = path_to_root(tree, cohort.name(), Some(parent)) {
        out.invalid(
            FieldPath::new("spec.parentName"),
            parent,
            format!(
                "a cycle: {}; one of them must have another parent, or none",
                arrows(&names)
            ),
        );
    }
}

/// The most names of a cycle in a message.
const NAMES_MAX: usize = 8;

/// `a → b → a`.
fn arrows(names: &[&str]) -> String {
    let mut shown: Vec<String> = names.iter().map(|name| join_names([*name])).collect();
    if shown.len() > NAMES_MAX {
        // The last name is the first one again: it shows that the path is a cycle.
        let last = shown.split_off(shown.len().saturating_sub(1));
        shown.truncate(NAMES_MAX.saturating_sub(2));
        shown.push("…".to_owned());
        shown.extend(last);
    }
    shown.join(" → ")
}
