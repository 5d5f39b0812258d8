#![doc = include_str!("quota_cycle.md")]

use super::tree;
use crate::cluster_view::{Lookup, QuotaFacts};
use crate::finding::{Findings, join_names};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{ElasticQuota, PARENT, ROOT_QUOTA};

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ021",
    name: "quota-cycle",
    since: "0.1.0",
    action: Action::Warn,
    covers: &["eq-no-cycle-check"],
    layers: &[Layer::Webhook],
    doc: include_str!("quota_cycle.md"),
    check: Check::Context(check),
};

fn check(quota: &ElasticQuota, context: &Context<'_>, out: &mut Findings) {
    if quota.name() == ROOT_QUOTA {
        return;
    }
    let above = tree::ancestors(quota.parent(), context);
    if let Some(end) = above.iter().position(|(name, _)| name == quota.name()) {
        let between = join_names(names_of(&above, end).skip(1));
        let detail = match (end, between.is_empty()) {
            (0, _) => "is this quota itself; name another parent".to_owned(),
            (_, true) => "is below this quota; name another parent".to_owned(),
            (_, false) => format!("is below this quota, through {between}; name another parent"),
        };
        out.invalid(tree::label(PARENT), quota.parent(), detail);
    }
}

/// The names of the first `count` quotas.
fn names_of<'a>(
    above: &'a [(String, Lookup<&QuotaFacts>)],
    count: usize,
) -> impl Iterator<Item = &'a str> {
    above.iter().take(count).map(|(name, _)| name.as_str())
}
