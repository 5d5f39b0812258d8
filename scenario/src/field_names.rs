//! The names of the fields of a type, as its decoder declares them.

use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Stores the names that a derived decoder passes, and ends with an error.
struct Probe<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("a probe has no value"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The names of the fields of a struct; empty for other types.
pub(crate) fn field_names<T: for<'de> Deserialize<'de>>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // Always an error: the names are the result.
    let _ = T::deserialize(Probe(&mut names));
    names
}

#[cfg(test)]
mod tests {
    use super::field_names;
    use crate::scenario::ResourceGroup;

    #[test]
    fn field_names_are_those_of_the_decoder() {
        assert_eq!(field_names::<ResourceGroup>(), ["resources", "flavors"]);
        assert!(field_names::<String>().is_empty());
    }
}
