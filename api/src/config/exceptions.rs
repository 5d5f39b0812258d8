//! Exceptions from rules in the configuration.

use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::civil::Date;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Objects exempt from some rules, with a reason and an expiry.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleException {
    /// Name in logs, reports and metrics. Unset: the position in the list, such as `rules.exceptions[0]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Rule ids, at least one.
    #[serde(deserialize_with = "rules")]
    pub rules: Vec<String>,
    /// The objects. All given parts must match; at least one is required.
    #[serde(deserialize_with = "selector")]
    pub selector: ExceptionSelector,
    /// The reason, recorded in the audit log with each exempted finding.
    #[serde(deserialize_with = "reason")]
    pub reason: String,
    /// End of the exception: a day such as `2026-12-31`, inclusive and in UTC, or a time such as
    /// `2026-12-31T12:00:00Z`.
    pub expires: Expiry,
}

/// The objects of an exception.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExceptionSelector {
    /// Namespaces; empty: any, including cluster-scoped objects. `*` matches any characters.
    pub namespaces: Vec<String>,
    /// Names of objects; empty: any. `*` matches any characters.
    pub names: Vec<String>,
    /// Labels that the object must have. Every user who may set them can use the exception.
    pub match_labels: BTreeMap<String, String>,
}

/// The end of an exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiry {
    text: String,
    seconds: i64,
}

impl Expiry {
    /// The end in seconds since 1970; the exception is expired at this second.
    #[must_use]
    pub fn seconds(&self) -> i64 {
        self.seconds
    }
}

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Expiry {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        // By length: a timestamp also begins with a day.
        let end = if text.len() == DAY_LENGTH {
            text.parse().ok().and_then(end_of_day)
        } else {
            let time = text.parse::<Timestamp>();
            time.ok().map(Timestamp::as_second)
        };
        match end {
            Some(seconds) => Ok(Self { text, seconds }),
            None => Err(format!(
                "{text:?} is neither a day such as 2026-12-31 nor a time such as 2026-12-31T12:00:00Z"
            )),
        }
    }
}

/// The first second after a day, in UTC.
fn end_of_day(day: Date) -> Option<i64> {
    // Not by `Timestamp`: its range is smaller, and 9999-12-31 is a usual end.
    let days = Date::constant(1970, 1, 1).until(day).ok()?.get_days();
    let after = i64::from(days).checked_add(1)?;
    after.checked_mul(SECONDS_PER_DAY)
}

const SECONDS_PER_DAY: i64 = 86_400;

/// The length of a day in text form, such as `2026-12-31`.
const DAY_LENGTH: usize = 10;

impl<'de> Deserialize<'de> for Expiry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::try_from(text).map_err(D::Error::custom)
    }
}

impl Serialize for Expiry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl JsonSchema for Expiry {
    fn schema_name() -> Cow<'static, str> {
        "Expiry".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let rules = Vec::deserialize(deserializer)?;
    if rules.is_empty() {
        return Err(D::Error::custom("give at least one rule"));
    }
    Ok(rules)
}

fn selector<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ExceptionSelector, D::Error> {
    let selector = ExceptionSelector::deserialize(deserializer)?;
    if selector == ExceptionSelector::default() {
        return Err(D::Error::custom(
            "the selector matches every object; restrict it, or set the rule's action under rules.actions",
        ));
    }
    Ok(selector)
}

fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let reason = String::deserialize(deserializer)?;
    if reason.trim().is_empty() {
        return Err(D::Error::custom(
            "give a reason: it is recorded in the audit log",
        ));
    }
    Ok(reason)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use serde_json::json;

    #[test]
    fn expiry_parses_day_or_timestamp() {
        for (text, seconds) in [
            ("1970-01-01", 86_400),
            ("2026-12-31", 1_798_761_600),
            ("9999-12-31", 253_402_300_800),
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T01:00:00+01:00", 0),
        ] {
            let expiry = Expiry::try_from(text.to_owned()).unwrap();
            assert_eq!(expiry.seconds(), seconds, "{text}");
            assert_eq!(expiry.to_string(), text);
        }
        for text in [
            "",
            "2026",
            "2026-13-01",
            "31.12.2026",
            "2026-12-31T12:00",
            "tomorrow!!",
        ] {
            let error = Expiry::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains("is neither a day"), "{error}");
        }
    }

    #[test]
    fn rule_exception_invalid_is_rejected() {
        let good = json!({
            "rules": ["CQ007"], "selector": {"names": ["a"]}, "reason": "r", "expires": "2026-12-31",
        });
        assert!(serde_json::from_value::<RuleException>(good.clone()).is_ok());
        for (key, value, part) in [
            ("rules", json!([]), "at least one rule"),
            ("selector", json!({}), "matches every object"),
            ("reason", json!(" "), "give a reason"),
            ("expires", json!("never"), "neither a day"),
            ("selektor", json!({}), "unknown field"),
        ] {
            let mut bad = good.clone();
            bad[key] = value;
            let error = serde_json::from_value::<RuleException>(bad).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
