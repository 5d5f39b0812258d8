//! Reads the objects of JSON lists one by one, without the fields that no answer reads, so that a large dump needs little time
//! and memory.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Whether no answer reads a field of this name in an object or pod template, at any depth.
fn is_skipped(field: &str) -> bool {
    // A match on texts compares their lengths first, and runs for each field.
    matches!(
        field,
        "annotations"
            | "args"
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

/// Calls `consume` with each object of a JSON text: the items of lists, and objects that are no list. Several documents may
/// follow each other.
///
/// # Errors
///
/// The text is not JSON. Objects before the error were consumed.
pub(super) fn for_each(
    text: &[u8],
    mut consume: impl FnMut(Value),
) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    // The end of the text is only known after the blanks behind a document.
    while deserializer.end().is_err() {
        let document = Document {
            consume: &mut consume,
        };
        document.deserialize(&mut deserializer)?;
    }
    Ok(())
}

/// One document: an object, or a list of objects.
struct Document<'a, F> {
    consume: &'a mut F,
}

impl<'de, F: FnMut(Value)> DeserializeSeed<'de> for Document<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F: FnMut(Value)> Visitor<'de> for Document<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object or a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut fields = Map::new();
        let mut is_list = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "items" {
                is_list = true;
                map.next_value_seed(Items {
                    consume: &mut *self.consume,
                })?;
            } else if is_list {
                map.next_value::<IgnoredAny>()?;
            } else {
                fields.insert(key, map.next_value_seed(Reduced)?);
            }
        }
        if !is_list {
            (self.consume)(Value::Object(fields));
        }
        Ok(())
    }
}

/// The items of a list.
struct Items<'a, F> {
    consume: &'a mut F,
}

impl<'de, F: FnMut(Value)> DeserializeSeed<'de> for Items<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(Value)> Visitor<'de> for Items<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the items of a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element_seed(Reduced)? {
            (self.consume)(item);
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        // `items: null` is an empty list.
        Ok(())
    }
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
            } else {
                fields.insert(key, map.next_value_seed(Self)?);
            }
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::for_each;
    use serde_json::{Value, json};

    #[track_caller]
    fn read(text: &str) -> Result<Vec<Value>, String> {
        let mut found = Vec::new();
        let read = for_each(text.as_bytes(), |it| found.push(it));
        read.map(|()| found).map_err(|it| it.to_string())
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
        assert_eq!(read(text).unwrap(), expected);
        assert_eq!(read("").unwrap(), Vec::<Value>::new());
    }

    #[test]
    fn skipped_fields_are_left_out() {
        let text =
            r#"{"spec": {"containers": [{"name": "c", "env": [{"name": "A"}], "image": "x"}]}}"#;
        assert_eq!(
            read(text).unwrap(),
            [json!({"spec": {"containers": [{"name": "c"}]}})]
        );
    }

    #[test]
    fn truncated_text_is_an_error_with_position() {
        let message = read(r#"{"items": [{"a": 1}, {"b""#).unwrap_err();
        assert!(message.contains("line 1 column 25"), "{message}");
        assert!(read("[1]").is_err());
        assert!(read(r#"{"items": 5}"#).is_err());
    }
}
