#![doc = include_str!("max_below_used.md")]

use super::tree;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{ElasticQuota, STRICT_RESOURCES};

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ004",
    name: "elastic-quota-max-below-used",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-max-ge-used-strict"],
    layers: &[Layer::Webhook],
    doc: include_str!("max_below_used.md"),
    check: Check::Object(check),
};

fn check(quota: &ElasticQuota, out: &mut Findings) {
    let text = quota.annotation(STRICT_RESOURCES);
    if text.is_empty() {
        return;
    }
    // `Option`, because Go also decodes `null` as an empty list.
    let Ok(resources) = serde_json::from_str::<Option<Vec<String>>>(text) else {
        let detail = r#"must be a JSON list of resources, as in ["cpu"]"#;
        out.invalid(tree::annotation(STRICT_RESOURCES), text, detail);
        return;
    };
    for resource in resources.iter().flatten() {
        let used = quota.status.used.as_ref();
        let Some(used) = used.and_then(|used| used.get(resource)) else {
            continue;
        };
        match quota.spec.max.as_ref().and_then(|max| max.get(resource)) {
            None => {
                let detail = format!("{used} of it is used; must be at least that");
                out.required(tree::max(resource), detail);
            }
            Some(max) if max < used => {
                let detail = format!("must be at least the used amount, {used}");
                out.invalid(tree::max(resource), max, detail);
            }
            Some(_) => {}
        }
    }
}
