//! The response to a review that timed out.

use crate::admission_review;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::json;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The path of the uid in a review.
const UID_PATH: &[&str] = &["request", "uid"];

/// Returns the review that rejects the request: 504, reason `Timeout`.
pub(crate) fn encode(uid: &str, waited: Duration) -> String {
    let waited = waited.as_secs_f64();
    let message = format!(
        "not checked: timed out after {waited:.1} s, because this object or others in flight are \
         large; try again, or raise timeoutSeconds of the webhook configuration (30 at most)"
    );
    let review = json!({
        "kind": "AdmissionReview",
        "apiVersion": admission_review::API_VERSION,
        "response": {
            "uid": uid,
            "allowed": false,
            "status": {
                "status": "Failure", "code": 504, "reason": "Timeout", "message": message,
            },
        },
    });
    format!("{review}\n")
}

/// Finds the uid of a review without decoding it. Stops at the uid, which the API server sends first.
pub(crate) fn find_uid(body: &[u8]) -> Option<String> {
    let mut found = None;
    let find = FindString {
        path: UID_PATH,
        found: &mut found,
    };
    // The search always ends with an error. One before the uid means that there is none.
    let _ = find.deserialize(&mut serde_json::Deserializer::from_slice(body));
    found.filter(|uid| !uid.is_empty())
}

/// Follows a path of keys and stops at the string at its end.
struct FindString<'a> {
    path: &'a [&'a str],
    found: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for FindString<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FindString<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a review")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        if self.path.is_empty() {
            *self.found = Some(text.to_owned());
        }
        // serde can stop early only with an error; the rest of the body is not parsed.
        Err(E::custom("search finished"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // Not `&str`, which cannot represent a key with escapes.
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match self.path.split_first() {
                Some((first, rest)) if *first == key => map.next_value_seed(FindString {
                    path: rest,
                    found: &mut *self.found,
                })?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, uid: Option<&str>) {
        assert_eq!(find_uid(body.as_bytes()).as_deref(), uid, "{body}");
    }

    #[test]
    fn find_uid_ignores_field_order() {
        check(r#"{"request": {"uid": "u"}}"#, Some("u"));
        check(r#"{"kind": "a", "request": {"uid": "\u0075""#, Some("u"));
        check(
            r#"{"a": {"uid": "x"}, "request": {"object": {"uid": "x"}, "uid": "u"}}"#,
            Some("u"),
        );
    }

    #[test]
    fn find_uid_without_uid_is_none() {
        for body in [
            "",
            "[]",
            "{}",
            r#""u""#,
            r#"{"request": null}"#,
            r#"{"request": "u"}"#,
            r#"{"request": {"uid": ""}}"#,
            r#"{"request": {"uid": 1}}"#,
            r#"{"uid": "u", "request": {"#,
        ] {
            check(body, None);
        }
        let deep = format!("{}{}", r#"{"request": "#, "[".repeat(100_000));
        check(&deep, None);
    }
}
