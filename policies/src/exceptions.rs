//! Exceptions: objects that an administrator exempts from rules, with a reason and an expiry.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::config::RuleException;
use std::sync::Arc;

/// The exceptions of a configuration at a time. The time is a parameter: [`Exceptions::with_time`].
#[derive(Clone, Debug, Default)]
pub struct Exceptions {
    all: Vec<Arc<Exception>>,
    /// In seconds since 1970; `None` expires nothing.
    now: Option<i64>,
}

/// One exception.
#[derive(Debug, PartialEq, Eq)]
pub struct Exception {
    /// Its name, or its configuration key such as `rules.exceptions[0]`.
    pub name: String,
    /// The configuration of the exception.
    pub config: RuleException,
}

impl Exceptions {
    /// The exceptions of a configuration, none of them expired.
    #[must_use]
    pub fn new(given: &[RuleException]) -> Self {
        let named = given.iter().enumerate().map(|(place, given)| {
            let by_place = || format!("rules.exceptions[{place}]");
            Arc::new(Exception {
                name: given.name.clone().unwrap_or_else(by_place),
                config: given.clone(),
            })
        });
        Self {
            all: named.collect(),
            now: None,
        }
    }

    /// Sets the time, in seconds since 1970.
    #[must_use]
    pub fn with_time(self, now: i64) -> Self {
        Self {
            now: Some(now),
            ..self
        }
    }

    /// All exceptions, in the order of the configuration.
    #[must_use]
    pub fn all(&self) -> &[Arc<Exception>] {
        &self.all
    }

    /// The next expiry, in seconds since 1970.
    #[must_use]
    pub fn next_expiry(&self) -> Option<i64> {
        let active = self.all.iter().filter(|it| self.is_active(it));
        active.map(|it| it.config.expires.seconds()).min()
    }

    /// The expired exceptions.
    pub fn expired(&self) -> impl Iterator<Item = &Arc<Exception>> {
        self.all.iter().filter(|it| !self.is_active(it))
    }

    /// Whether an exception, expired or not, names a rule.
    #[must_use]
    pub fn covers_rule(&self, rule: &str) -> bool {
        self.all
            .iter()
            .any(|it| it.config.rules.iter().any(|id| id == rule))
    }

    fn is_active(&self, exception: &Exception) -> bool {
        self.now
            .is_none_or(|now| now < exception.config.expires.seconds())
    }

    /// The first active exception that covers a rule and an object.
    pub(crate) fn find_covering(&self, rule: &str, object: &ObjectMeta) -> Option<&Arc<Exception>> {
        let is_named = |it: &Exception| it.config.rules.iter().any(|id| id == rule);
        let mut all = self.all.iter();
        all.find(|it| is_named(it) && self.is_active(it) && it.selects(object))
    }
}

impl Exception {
    /// Whether the selector matches an object. An object without a name matches by its generateName.
    fn selects(&self, object: &ObjectMeta) -> bool {
        let selector = &self.config.selector;
        let name = object.name.as_deref().or(object.generate_name.as_deref());
        let labels = object.labels.as_ref();
        let carries = |(key, value)| labels.and_then(|it| it.get(key)) == Some(value);
        matches_any(&selector.namespaces, object.namespace.as_deref())
            && matches_any(&selector.names, name)
            && selector.match_labels.iter().all(carries)
    }
}

fn matches_any(patterns: &[String], text: Option<&str>) -> bool {
    let text = text.unwrap_or_default();
    patterns.is_empty() || patterns.iter().any(|it| matches_pattern(it, text))
}

/// Whether a text matches a pattern with `*` as a wildcard. Costs O(n·m).
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let Some((first, mut pattern)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    // The leftmost match never excludes a later one; only the last part must be at the end.
    while let Some((part, after)) = pattern.split_once('*') {
        let Some(at) = text.find(part) else {
            return false;
        };
        text = text
            .get(at.saturating_add(part.len())..)
            .unwrap_or_default();
        pattern = after;
    }
    text.ends_with(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockkeeper_api::config::ExceptionSelector;
    use serde_json::json;

    #[test]
    fn pattern_star_matches_any_characters() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "ac", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("ab*ba", "aba", false),
            ("*a*", "bab", true),
            ("**", "x", true),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[track_caller]
    fn covers(selector: serde_json::Value, object: serde_json::Value) -> bool {
        let selector: ExceptionSelector = serde_json::from_value(selector).unwrap();
        let given = json!({
            "rules": ["CQ007"], "selector": selector, "reason": "r", "expires": "2026-12-31",
        });
        let given: RuleException = serde_json::from_value(given).unwrap();
        let exceptions = Exceptions::new(&[given]);
        let object: ObjectMeta = serde_json::from_value(object).unwrap();
        assert!(exceptions.find_covering("CQ008", &object).is_none());
        exceptions.find_covering("CQ007", &object).is_some()
    }

    #[test]
    fn exception_selector_requires_every_field() {
        let object = json!({"name": "a-1", "namespace": "n", "labels": {"k": "v"}});
        for (selector, expected) in [
            (json!({"names": ["a-*"]}), true),
            (json!({"names": ["b", "a-1"]}), true),
            (json!({"names": ["b"]}), false),
            (json!({"namespaces": ["n"]}), true),
            (json!({"namespaces": ["m"], "names": ["a-*"]}), false),
            (json!({"matchLabels": {"k": "v"}}), true),
            (json!({"matchLabels": {"k": "v", "l": ""}}), false),
        ] {
            assert_eq!(
                covers(selector.clone(), object.clone()),
                expected,
                "{selector}"
            );
        }
        assert!(covers(
            json!({"names": ["job-*"]}),
            json!({"generateName": "job-"})
        ));
        assert!(!covers(json!({"namespaces": ["n"]}), json!({"name": "a"})));
    }

    #[test]
    fn exception_expires() {
        let given = |expires: &str| -> RuleException {
            let given = json!({
                "rules": ["CQ007"], "selector": {"names": ["*"]}, "reason": "r", "expires": expires,
            });
            serde_json::from_value(given).unwrap()
        };
        let all = Exceptions::new(&[given("1970-01-01"), given("1970-01-01T00:00:10Z")]);
        let ended = |it: &Exceptions| it.expired().map(|it| it.name.clone()).collect::<Vec<_>>();
        assert_eq!((ended(&all), all.next_expiry()), (vec![], Some(10)));
        let later = all.with_time(9);
        assert_eq!(ended(&later).len(), 0);
        let later = later.with_time(10);
        assert_eq!(ended(&later), ["rules.exceptions[1]"]);
        assert_eq!(later.next_expiry(), Some(86_400));
        let over = later.with_time(86_400);
        assert_eq!((ended(&over).len(), over.next_expiry()), (2, None));
        // A clock that was set back.
        assert_eq!(ended(&over.with_time(0)).len(), 0);
    }
}
