//! Reads the objects of JSON lists one by one, without the fields that no answer reads, so that a large dump needs little time
//! and memory. A large text is read by several threads.

use super::json_items::{JsonError, json_items};
use lockkeeper_explain::POD_ANNOTATIONS;
use lockkeeper_policies::suppression;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

/// Whether no answer reads a field of this name in an object or pod template, at any depth.
fn is_skipped(field: &str) -> bool {
    // A match on texts compares their lengths first, and runs for each field.
    matches!(
        field,
        "args"
            | "command"
            | "env"
            | "envFrom"
            | "image"
            | "imagePullSecrets"
            | "lifecycle"
            | "livenessProbe"
            | "managedFields"
            | "ports"
            | "readinessProbe"
            | "securityContext"
            | "startupProbe"
            | "volumeDevices"
            | "volumeMounts"
            | "volumes"
    )
}

/// Whether an answer reads an annotation: the suppressions of rules, and those of pods.
fn is_read_annotation(name: &str) -> bool {
    name == suppression::ANNOTATION || POD_ANNOTATIONS.contains(&name)
}

/// The least size of the text for each thread.
const THREAD_MIN_BYTES: usize = 1 << 19;

/// Calls `consume` with each object of a JSON text.
///
/// # Errors
///
/// The text is not JSON. Objects before the error may have been consumed.
pub(super) fn for_each(text: &str, mut consume: impl FnMut(Value)) -> Result<(), JsonError> {
    for item in json_items(text)? {
        consume(read_object(text, item)?);
    }
    Ok(())
}

/// Collects the objects of a JSON text, each thread a part of them. The collections are in the order of the text.
///
/// # Errors
///
/// The text is not JSON.
pub(super) fn collect<C: Default + Send>(
    text: &str,
    add: impl Fn(&mut C, Value) + Sync,
) -> Result<Vec<C>, JsonError> {
    let items = json_items(text)?;
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = (text.len() / THREAD_MIN_BYTES).clamp(1, cores);
    let of_thread = items.len().div_ceil(threads).max(1);
    let collect = |items: &[&str]| {
        let mut collected = C::default();
        for item in items {
            add(&mut collected, read_object(text, item)?);
        }
        Ok(collected)
    };
    let mut parts = items.chunks(of_thread);
    let first = parts.next().unwrap_or_default();
    thread::scope(|scope| {
        // All threads start before the first part is read here.
        let others: Vec<_> = parts.map(|it| scope.spawn(move || collect(it))).collect();
        let mut all = vec![collect(first)?];
        for other in others {
            let collected = other.join().unwrap_or_else(|panic| resume_unwind(panic));
            all.push(collected?);
        }
        Ok(all)
    })
}

/// Reads an object, which is a part of the text, without the skipped fields.
fn read_object(text: &str, item: &str) -> Result<Value, JsonError> {
    let mut deserializer = serde_json::Deserializer::from_str(item);
    Reduced.deserialize(&mut deserializer).map_err(|error| {
        let start = item.as_ptr().addr().saturating_sub(text.as_ptr().addr());
        JsonError::in_part(text, start, &error)
    })
}

/// A value without the skipped fields.
struct Reduced;

impl<'de> DeserializeSeed<'de> for Reduced {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reduced {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if is_skipped(&key) {
                map.next_value::<IgnoredAny>()?;
            } else if key == "annotations" {
                let read = map.next_value_seed(Annotations)?;
                if !read.is_empty() {
                    fields.insert(key, Value::Object(read));
                }
            } else {
                fields.insert(key, map.next_value_seed(Self)?);
            }
        }
        Ok(Value::Object(fields))
    }
}

/// The annotations that answers read.
struct Annotations;

impl<'de> DeserializeSeed<'de> for Annotations {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Annotations {
    type Value = Map<String, Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("annotations")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Map::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut read = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if is_read_annotation(&key) {
                read.insert(key, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::{collect, for_each};
    use serde_json::{Value, json};

    #[track_caller]
    fn read(text: &str) -> Vec<Value> {
        let mut found = Vec::new();
        for_each(text, |it| found.push(it)).unwrap();
        found
    }

    #[test]
    fn items_of_lists_and_single_objects_are_read() {
        let text = r#"{"kind": "List", "items": [{"a": 1}, {"b": [2.5, null, true]}], "metadata": {}}
            {"kind": "Job"} {"items": null}
            "#;
        let expected = [
            json!({"a": 1}),
            json!({"b": [2.5, null, true]}),
            json!({"kind": "Job"}),
        ];
        assert_eq!(read(text), expected);
        assert!(read("").is_empty());
    }

    #[test]
    fn skipped_fields_are_left_out() {
        let text =
            r#"{"spec": {"containers": [{"name": "c", "env": [{"name": "A"}], "image": "x"}]}}"#;
        assert_eq!(
            read(text),
            [json!({"spec": {"containers": [{"name": "c"}]}})]
        );
    }

    #[test]
    fn annotations_that_answers_read_are_kept() {
        let text = r#"{"metadata": {"annotations": {"a": "b", "lockkeeper.dev/ignore": "CQ001: c"}}}
            {"metadata": {"annotations": {"a": "b"}}} {"metadata": {"annotations": null}}"#;
        let kept = json!({"metadata": {"annotations": {"lockkeeper.dev/ignore": "CQ001: c"}}});
        let none = json!({"metadata": {}});
        assert_eq!(read(text), [kept, none.clone(), none]);
    }

    fn list(count: usize) -> String {
        let item = |at: usize| format!("{{\"at\": {at}, \"text\": \"{}\"}}", "x".repeat(1000));
        let items: Vec<String> = (0..count).map(item).collect();
        format!("{{\"items\": [{}\n]}}", items.join(",\n"))
    }

    #[test]
    fn large_texts_are_collected_in_order() {
        for count in [0, 1, 5000] {
            let text = list(count);
            let collected = collect(&text, |all: &mut Vec<Value>, it| all.push(it)).unwrap();
            let numbers = collected
                .iter()
                .flatten()
                .map(|it| it["at"].as_u64().unwrap());
            let expected = (0..).take(count);
            assert!(numbers.eq(expected), "{count}");
        }
    }

    #[test]
    fn number_out_of_range_is_an_error_with_position() {
        let text = list(5000).replace("\"at\": 4000,", "\"at\": 1e999,");
        let read = collect(&text, |(): &mut (), _| {});
        let error = read.unwrap_err();
        assert_eq!((error.line, error.column), (4001, 12));
        assert_eq!(error.to_string(), "number out of range");
    }

    #[test]
    fn truncated_text_is_an_error() {
        let text = list(5000);
        let (cut, _) = text.split_at(text.len() - 5);
        assert!(collect(cut, |(): &mut (), _| {}).is_err());
    }
}
