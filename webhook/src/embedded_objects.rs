//! Finds the objects in the body of an AdmissionReview, without decoding them.
//!
//! The objects are nearly the whole body. A generic decoder parses each of them twice: once to find its end, and once
//! into its type. This scan only follows strings and brackets, which costs a fifth of a parse; the second parse rejects
//! an object that is not valid JSON.

use crate::json_cursor::JsonCursor;
use std::borrow::Cow;
use std::ops::Range;

/// A body, split into the objects of its request and the rest.
pub(crate) struct ReviewParts<'a> {
    /// The body with `null` in place of the found objects.
    pub(crate) envelope: Cow<'a, [u8]>,
    /// The text of `request.object`, if the scan found it.
    pub(crate) object: Option<&'a str>,
    /// The text of `request.oldObject`, if the scan found it.
    pub(crate) old_object: Option<&'a str>,
}

impl<'a> ReviewParts<'a> {
    /// Splits a body. If the scan fails, as for a body that is not JSON or has a duplicate key, the envelope is the whole
    /// body, so that its decoder reports the error. Costs O(n).
    pub(crate) fn split(body: &'a [u8]) -> Self {
        Self::scan(body).unwrap_or(Self {
            envelope: Cow::Borrowed(body),
            object: None,
            old_object: None,
        })
    }

    fn scan(body: &'a [u8]) -> Option<Self> {
        let mut places = ObjectPlaces::default();
        JsonCursor::new(body).members(|cursor, key| {
            if key == b"request" && cursor.peek()? == b'{' {
                return cursor.members(|cursor, key| places.read_value(cursor, key));
            }
            cursor.skip_value()
        })?;
        let text = |range: &Range<usize>| std::str::from_utf8(body.get(range.clone())?).ok();
        let object = places.object.as_ref();
        let old_object = places.old_object.as_ref();
        let mut found: Vec<&Range<usize>> = [object, old_object].into_iter().flatten().collect();
        found.sort_by_key(|range| range.start);
        let mut envelope = Vec::with_capacity(ENVELOPE_CAPACITY_BYTES);
        let mut copied = 0;
        for range in &found {
            envelope.extend_from_slice(body.get(copied..range.start)?);
            envelope.extend_from_slice(b"null");
            copied = range.end;
        }
        envelope.extend_from_slice(body.get(copied..)?);
        Some(Self {
            envelope: Cow::Owned(envelope),
            // A text that is not UTF-8 ends the scan, like any other error.
            object: object.map(text).map_or(Some(None), |it| it.map(Some))?,
            old_object: old_object.map(text).map_or(Some(None), |it| it.map(Some))?,
        })
    }
}

/// Capacity for the fields of a request besides its objects, in bytes.
const ENVELOPE_CAPACITY_BYTES: usize = 1024;

/// Where the objects of a request are in the body.
#[derive(Default)]
struct ObjectPlaces {
    object: Option<Range<usize>>,
    old_object: Option<Range<usize>>,
}

impl ObjectPlaces {
    /// Reads the value of a key of the request.
    fn read_value(&mut self, cursor: &mut JsonCursor<'_>, key: &[u8]) -> Option<()> {
        let is_object = cursor.peek()? == b'{';
        let range = cursor.value_range()?;
        let found = match key {
            b"object" if is_object => &mut self.object,
            b"oldObject" if is_object => &mut self.old_object,
            _ => return Some(()),
        };
        // With a duplicate key it is undefined which value the decoder would use.
        found.replace(range).is_none().then_some(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(body: &str, envelope: &str, object: Option<&str>, old_object: Option<&str>) {
        let parts = ReviewParts::split(body.as_bytes());
        assert_eq!(std::str::from_utf8(&parts.envelope).unwrap(), envelope);
        assert_eq!((parts.object, parts.old_object), (object, old_object));
    }

    #[test]
    fn objects_of_request_are_split_off() {
        check(
            r#"{"request": {"uid": "}", "object": {"a": "}\"{", "b": [{}]}, "oldObject":null}}"#,
            r#"{"request": {"uid": "}", "object": null, "oldObject":null}}"#,
            Some(r#"{"a": "}\"{", "b": [{}]}"#),
            None,
        );
        check(
            r#"{"request":{"oldObject":{"o":1},"dryRun":false,"object":{}},"kind":"x"}"#,
            r#"{"request":{"oldObject":null,"dryRun":false,"object":null},"kind":"x"}"#,
            Some("{}"),
            Some(r#"{"o":1}"#),
        );
        // Only the request's own keys count.
        let other = r#"{"object": {"a": 1}, "request": {"options": {"object": {}}, "object": 5}}"#;
        check(other, other, None, None);
    }

    #[test]
    fn body_that_scan_rejects_stays_whole() {
        for body in [
            "",
            "[]",
            "{",
            r#"{"request": {"object": {"a": 1}"#,
            r#"{"request": {"object": {"a": "1}}}"#,
            r#"{"request": {"object": {}, "object": {}}}"#,
            r#"{"request": {"obj\u0065ct": {}, "object": {"a": 1}}}"#,
            r#"{"request": {"object": {}} "#,
        ] {
            check(body, body, None, None);
        }
        let not_utf8 = b"{\"request\": {\"object\": {\"a\": \"\xff\"}}}";
        assert_eq!(&*ReviewParts::split(not_utf8).envelope, not_utf8);
    }

    #[test]
    fn split_objects_decode_as_in_whole_body() {
        let object = json!({"a": ["]", "\\", "\"", {"b\\": "\u{e9}"}], "n": [1.5e3, true, null]});
        let review = json!({"request": {"uid": "u", "object": object, "oldObject": {"z": {}}}});
        for body in [
            review.to_string(),
            serde_json::to_string_pretty(&review).unwrap(),
        ] {
            let parts = ReviewParts::split(body.as_bytes());
            let decoded: Value = serde_json::from_str(parts.object.unwrap()).unwrap();
            assert_eq!(decoded, object);
            assert_eq!(
                serde_json::from_str::<Value>(parts.old_object.unwrap()).unwrap(),
                json!({"z": {}})
            );
            let envelope: Value = serde_json::from_slice(&parts.envelope).unwrap();
            assert_eq!(
                envelope,
                json!({"request": {"uid": "u", "object": null, "oldObject": null}})
            );
        }
    }
}
