#![doc = include_str!("unknown_flavor.md")]

use crate::finding::{Findings, listed};
use crate::index::IndexedKind;
use crate::quota;
use crate::quota::HasQuota;
use crate::rule::{Check, Context, Layer, Rule};
use crate::world::Lookup;
use lockkeeper_api::config::Action;

pub(crate) const fn rule<T: HasQuota>() -> Rule<T> {
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

fn check<T: HasQuota>(object: &T, context: &Context<'_>, out: &mut Findings) {
    let kind = IndexedKind::ResourceFlavor(T::FAMILY);
    let known = listed(context.world.tree(T::FAMILY).flavors());
    if known.is_empty() {
        return;
    }
    quota::each_flavor(object.groups(), out, |flavor, path, out| {
        if context.world.exists(kind, &flavor.name) == Lookup::Absent {
            out.not_found(
                path(),
                &flavor.name,
                format!("create this ResourceFlavor, or name one of {known}"),
            );
        }
    });
}
