#![doc = include_str!("tree_id_changed.md")]

use super::tree;
use crate::finding::{Findings, quoted};
use crate::rule::{Change, Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{ElasticQuota, TREE_ID};

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ012",
    name: "tree-id-changed",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-tree-id-immutable"],
    layers: &[Layer::Webhook],
    doc: include_str!("tree_id_changed.md"),
    check: Check::Change(check),
};

fn check(change: &Change<'_, ElasticQuota>, _: &Context<'_>, out: &mut Findings) {
    let (old, new) = (change.old.label(TREE_ID), change.new.label(TREE_ID));
    // As in Koordinator (`checkTreeID`), an id cannot be added later, either.
    if old != new {
        let kept = match old {
            "" => "unset".to_owned(),
            old => quoted(old),
        };
        let detail = format!("must stay {kept}; create a new quota for another tree");
        out.invalid(tree::label(TREE_ID), new, detail);
    }
}
