#![doc = include_str!("tree_id_differs.md")]

use super::tree;
use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{ElasticQuota, ROOT_QUOTA, TREE_ID};

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ013",
    name: "tree-id-differs-in-tree",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-tree-id-same-as-children", "eq-tree-id-same-as-parent"],
    layers: &[Layer::Webhook],
    doc: include_str!("tree_id_differs.md"),
    check: Check::Context(check),
};

fn check(quota: &ElasticQuota, context: &Context<'_>, out: &mut Findings) {
    if quota.name() == ROOT_QUOTA {
        return;
    }
    let own = quota.label(TREE_ID);
    // Koordinator (`checkTreeID`) compares with the parent, and with the children.
    if let Some(parent) = tree::parent(quota, context)
        && parent.tree_id != own
    {
        let name = quoted(quota.parent());
        let detail = format!(
            "must be {}, as in its parent {name}",
            quoted(&parent.tree_id)
        );
        out.invalid(tree::label(TREE_ID), own, detail);
    }
    let children = tree::children(quota, context);
    if let Some((name, child)) = children.iter().find(|(_, child)| child.tree_id != own) {
        let (name, id) = (quoted(name), quoted(&child.tree_id));
        let detail = format!("must be {id}, as in quota {name} below it");
        out.invalid(tree::label(TREE_ID), own, detail);
    }
}
