//! Label selectors.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A label selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    /// Labels that an object must have.
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    pub match_expressions: Vec<Expression>,
}

/// A requirement on a label.
#[derive(Clone, Debug, Deserialize)]
pub struct Expression {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values to compare with.
    #[serde(default)]
    pub values: Vec<String>,
}

impl From<&LabelSelector> for Selector {
    fn from(given: &LabelSelector) -> Self {
        let expressions = given.match_expressions.iter().flatten();
        Self {
            match_labels: given.match_labels.clone().unwrap_or_default(),
            match_expressions: expressions
                .map(|it| Expression {
                    key: it.key.clone(),
                    operator: it.operator.clone(),
                    values: it.values.clone().unwrap_or_default(),
                })
                .collect(),
        }
    }
}

/// Whether a selector matches these labels.
#[must_use]
pub fn matches(selector: &Selector, labels: &BTreeMap<String, String>) -> bool {
    let has = |(key, value): (&String, &String)| labels.get(key) == Some(value);
    selector.match_labels.iter().all(has)
        && selector.match_expressions.iter().all(|requirement| {
            let value = labels.get(&requirement.key).map(String::as_str);
            // An unknown operator is treated as `DoesNotExist`.
            requirement_matches(&requirement.operator, value, &requirement.values)
                .unwrap_or(value.is_none())
        })
}

/// Whether a requirement on a label is met; `None` if the operator is unknown. `Gt` and `Lt` exist only for nodes.
pub(crate) fn requirement_matches(
    operator: &str,
    value: Option<&str>,
    values: &[String],
) -> Option<bool> {
    let is_listed = || value.is_some_and(|value| values.iter().any(|it| it == value));
    let compared = |is_right: fn(&i64, &i64) -> bool| {
        let number = |text: &str| text.parse::<i64>().ok();
        let (value, other) = (
            value.and_then(number),
            values.first().and_then(|it| number(it)),
        );
        value.zip(other).is_some_and(|(a, b)| is_right(&a, &b))
    };
    match operator {
        "In" => Some(is_listed()),
        // Matches objects without the label, too, as in Kubernetes.
        "NotIn" => Some(!is_listed()),
        "Exists" => Some(value.is_some()),
        "DoesNotExist" => Some(value.is_none()),
        "Gt" => Some(compared(i64::gt)),
        "Lt" => Some(compared(i64::lt)),
        _ => None,
    }
}
