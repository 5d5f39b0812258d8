//! Label selectors.

use crate::crd::values::{array_at, text_at, texts_at};
use serde_json::{Map, Value};

/// A selector; an empty one selects everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Selector(Vec<Requirement>);

#[derive(Clone, Debug)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    DoesNotExist(String),
}

impl Selector {
    /// The selector of a field; an absent one is empty.
    pub(super) fn new(selector: Option<&Value>) -> Self {
        let Some(selector) = selector else {
            return Self::default();
        };
        let labels = selector.get("matchLabels").and_then(Value::as_object);
        let equal = labels.into_iter().flatten().filter_map(|(key, value)| {
            let values = vec![value.as_str()?.to_owned()];
            Some(Requirement::In(key.clone(), values))
        });
        let others = array_at(selector, "matchExpressions").iter();
        let others = others.filter_map(|it| {
            let key = text_at(it, "key")?.to_owned();
            Some(match text_at(it, "operator")? {
                "In" => Requirement::In(key, texts_at(it, "values")),
                "NotIn" => Requirement::NotIn(key, texts_at(it, "values")),
                "Exists" => Requirement::Exists(key),
                "DoesNotExist" => Requirement::DoesNotExist(key),
                _ => return None,
            })
        });
        Self(equal.chain(others).collect())
    }

    /// Whether the selector selects everything.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the selector selects an object with these labels.
    pub(super) fn selects(&self, labels: &Map<String, Value>) -> bool {
        self.0.iter().all(|it| it.holds(labels))
    }

    /// Whether the selector selects an object of which only some labels are known; `None` if that depends on others.
    pub(super) fn selects_known(&self, labels: &Map<String, Value>) -> Option<bool> {
        let (known, unknown): (Vec<_>, Vec<_>) =
            self.0.iter().partition(|it| labels.contains_key(it.key()));
        match (known.iter().all(|it| it.holds(labels)), unknown.is_empty()) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => None,
        }
    }
}

impl Requirement {
    fn key(&self) -> &str {
        match self {
            Self::In(key, _)
            | Self::NotIn(key, _)
            | Self::Exists(key)
            | Self::DoesNotExist(key) => key,
        }
    }

    fn holds(&self, labels: &Map<String, Value>) -> bool {
        let value = labels.get(self.key()).and_then(Value::as_str);
        let is_one_of = |values: &[String]| value.is_some_and(|it| values.iter().any(|v| v == it));
        match self {
            Self::In(_, values) => is_one_of(values),
            Self::NotIn(_, values) => !is_one_of(values),
            Self::Exists(_) => value.is_some(),
            Self::DoesNotExist(_) => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Selector;
    use serde_json::json;

    #[test]
    fn selectors_select_by_their_requirements() {
        let labels = json!({"team": "a", "tier": "web"});
        let labels = labels.as_object().unwrap();
        let one = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "team", "operator": operator, "values": values}]});
        let other = json!({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]});
        // The second value is the answer if other labels may exist.
        for (selector, expected, known) in [
            (json!({}), true, Some(true)),
            (json!({"matchLabels": {"team": "a"}}), true, Some(true)),
            (json!({"matchLabels": {"team": "b"}}), false, Some(false)),
            (one("In", &["a", "b"]), true, Some(true)),
            (one("NotIn", &["a"]), false, Some(false)),
            (one("NotIn", &["b"]), true, Some(true)),
            (one("Exists", &[]), true, Some(true)),
            (one("DoesNotExist", &[]), false, Some(false)),
            (other, true, None),
            (json!({"matchLabels": {"zone": "x"}}), false, None),
            (
                json!({"matchLabels": {"zone": "x", "team": "b"}}),
                false,
                Some(false),
            ),
        ] {
            let parsed = Selector::new(Some(&selector));
            assert_eq!(parsed.selects(labels), expected, "{selector}");
            assert_eq!(parsed.selects_known(labels), known, "{selector}");
        }
        assert!(Selector::new(None).is_empty());
    }
}
