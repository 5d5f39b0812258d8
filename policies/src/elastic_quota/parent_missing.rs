#![doc = include_str!("parent_missing.md")]

use super::tree;
use crate::cluster_view::Lookup;
use crate::finding::Findings;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{ElasticQuota, IS_PARENT, PARENT, ROOT_QUOTA};

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ014",
    name: "parent-quota-missing",
    since: "0.1.0",
    action: Action::Off,
    covers: &[
        "eq-default-parent",
        "eq-default-tree-id",
        "eq-parent-exists",
    ],
    layers: &[Layer::Webhook],
    doc: include_str!("parent_missing.md"),
    check: Check::Context(check),
};

fn check(quota: &ElasticQuota, context: &Context<'_>, out: &mut Findings) {
    let parent = quota.parent();
    if quota.name() == ROOT_QUOTA || parent == ROOT_QUOTA {
        return;
    }
    match context.cluster.quota(parent) {
        Lookup::Found(facts) if !facts.is_parent => {
            let detail =
                format!("this quota cannot have children; set its label {IS_PARENT} to \"true\"");
            out.invalid(tree::label(PARENT), parent, detail);
        }
        Lookup::Absent => {
            let detail = format!("there is no such quota; create it first, or name {ROOT_QUOTA}");
            out.not_found(tree::label(PARENT), parent, detail);
        }
        Lookup::Found(_) | Lookup::Unknown => {}
    }
}
