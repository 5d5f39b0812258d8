//! Reads the objects of JSON lists one by one, so that a large dump needs little memory.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use std::io::Read;

/// Calls `consume` with each object of a JSON text: the items of lists, and objects that are no list. Several documents may
/// follow each other.
///
/// # Errors
///
/// The text is not JSON, or cannot be read. Objects before the error were consumed.
pub(super) fn for_each(
    from: impl Read,
    mut consume: impl FnMut(Value),
) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_reader(from);
    loop {
        // The end of the text is only known after the blanks behind a document.
        match deserializer.end() {
            Ok(()) => return Ok(()),
            Err(error) if error.is_io() => return Err(error),
            Err(_) => {}
        }
        let document = Document {
            consume: &mut consume,
        };
        document.deserialize(&mut deserializer)?;
    }
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
                fields.insert(key, map.next_value()?);
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
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(Value)> Visitor<'de> for Items<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the items of a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<Value>()? {
            (self.consume)(item);
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        // `items: null` is an empty list.
        Ok(())
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
        let text = r#"{"kind": "List", "items": [{"a": 1}, {"b": 2}], "metadata": {}} {"kind": "Job"}
            {"items": null}"#;
        // `null` is no sequence for serde_json.
        assert!(read(text).is_err());
        let text = r#"{"kind": "List", "items": [{"a": 1}, {"b": 2}], "metadata": {}}
            {"kind": "Job"}
            "#;
        assert_eq!(
            read(text).unwrap(),
            [json!({"a": 1}), json!({"b": 2}), json!({"kind": "Job"})]
        );
        assert_eq!(read("").unwrap(), Vec::<Value>::new());
    }

    #[test]
    fn truncated_text_is_an_error_with_position() {
        let message = read(r#"{"items": [{"a": 1}, {"b""#).unwrap_err();
        assert!(message.contains("line 1 column 25"), "{message}");
        assert!(read("[1]").is_err());
    }
}
