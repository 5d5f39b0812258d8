#![doc = include_str!("unknown_flavor.md")]

use crate::cluster_view::Lookup;
use crate::finding::{Findings, join_names};
use crate::index::IndexedKind;
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use std::cell::LazyCell;

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CQ014",
        name: "unknown-flavor",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("unknown_flavor.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: QuotaFields>(object: &T, context: &Context<'_>, out: &mut Findings) {
    let kind = IndexedKind::ResourceFlavor(T::PROJECT);
    let tree = context.cluster.tree(T::PROJECT);
    if tree.flavors().next().is_none() {
        return;
    }
    let known = LazyCell::new(|| join_names(tree.flavors()));
    quota::visit_flavors(object.groups(), out, |flavor, path, out| {
        if context.cluster.exists(kind, &flavor.name) == Lookup::Absent {
            out.not_found(
                path(),
                &flavor.name,
                format!("create this ResourceFlavor, or name one of {}", *known),
            );
        }
    });
}
