//! Label selectors of Kubernetes objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lockkeeper_cluster_state::label_selector::{self, Expression, Selector};
use std::collections::BTreeMap;

/// Whether a selector matches labels. An absent selector matches all.
pub(crate) fn matches(selector: Option<&LabelSelector>, labels: &BTreeMap<String, String>) -> bool {
    let Some(selector) = selector else {
        return true;
    };
    let expressions = selector.match_expressions.iter().flatten();
    let selector = Selector {
        match_labels: selector.match_labels.clone().unwrap_or_default(),
        match_expressions: expressions
            .map(|it| Expression {
                key: it.key.clone(),
                operator: it.operator.clone(),
                values: it.values.clone().unwrap_or_default(),
            })
            .collect(),
    };
    label_selector::matches(&selector, labels)
}
