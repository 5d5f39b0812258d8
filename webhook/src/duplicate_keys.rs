//! Rejects objects with duplicate keys.
//!
//! JSON decoders differ in which value of a duplicate key they use, so the validated object could differ from
//! the stored one. The API server never sends a duplicate key.

use serde::de::value::CowStrDeserializer;
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, Visitor,
};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;

/// The checked levels: the object, its fields such as `metadata` and `spec`, and their fields, such as
/// `labels`. Below, lockkeeper's own types reject duplicate keys.
const DEPTH_MAX: u8 = 3;

/// Up to this number, the keys of a map are compared one by one, which is fastest; most maps have fewer.
const LINEAR_SEARCH_KEYS_MAX: usize = 16;

/// Why an object cannot be decoded.
#[derive(Debug)]
pub(crate) enum DecodeError {
    /// It has this duplicate key.
    DuplicateKey(String),
    /// It is invalid JSON or does not match the type.
    Json(serde_json::Error),
}

/// Decodes an object and rejects duplicate keys in its upper levels.
pub(crate) fn from_str<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, DecodeError> {
    let duplicate = Cell::new(None);
    let mut json = serde_json::Deserializer::from_str(text);
    let decoded = T::deserialize(RejectDuplicateKeys {
        inner: &mut json,
        depth: DepthLimit {
            levels_left: DEPTH_MAX,
            duplicate: &duplicate,
        },
    });
    decoded
        // `deserialize` alone accepts characters after the object.
        .and_then(|object| json.end().map(|()| object))
        .map_err(|error| {
            duplicate
                .take()
                .map_or(DecodeError::Json(error), DecodeError::DuplicateKey)
        })
}

/// The number of levels left to check, and where to store a duplicate key.
#[derive(Clone, Copy)]
struct DepthLimit<'a> {
    levels_left: u8,
    duplicate: &'a Cell<Option<String>>,
}

/// A deserializer that checks the keys of maps.
struct RejectDuplicateKeys<'a, D> {
    inner: D,
    depth: DepthLimit<'a>,
}

/// Values without keys at this level are forwarded.
macro_rules! forward {
    ($($method:ident($($name:ident: $type:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(
            self,
            $($name: $type,)*
            visitor: V,
        ) -> Result<V::Value, D::Error> {
            self.inner.$method($($name,)* visitor)
        }
    )*};
}

/// Values that may be maps are checked.
macro_rules! check_keys {
    ($($method:ident($($name:ident: $type:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(
            self,
            $($name: $type,)*
            visitor: V,
        ) -> Result<V::Value, D::Error> {
            let depth = self.depth;
            self.inner.$method($($name,)* DuplicateKeyVisitor { visitor, depth })
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for RejectDuplicateKeys<'_, D> {
    type Error = D::Error;

    check_keys! {
        deserialize_any();
        deserialize_map();
        deserialize_option();
        deserialize_newtype_struct(name: &'static str);
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
    }

    forward! {
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(length: usize);
        deserialize_tuple_struct(name: &'static str, length: usize);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// Values that are no maps are forwarded.
macro_rules! forward_visit {
    ($($method:ident($type:ty);)*) => {$(
        fn $method<E: de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.visitor.$method(value)
        }
    )*};
}

/// A visitor that checks the keys of its map.
struct DuplicateKeyVisitor<'a, V> {
    visitor: V,
    depth: DepthLimit<'a>,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for DuplicateKeyVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(DuplicateKeyMap {
            map,
            seen: SeenKeys::default(),
            depth: self.depth,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_seq(seq)
    }

    // A visitor for any value, such as the one for user rules, also gets these.
    forward_visit! {
        visit_bool(bool);
        visit_i64(i64);
        visit_u64(u64);
        visit_f64(f64);
        visit_str(&str);
        visit_borrowed_str(&'de str);
        visit_string(String);
    }

    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let depth = self.depth;
        self.visitor
            .visit_some(RejectDuplicateKeys { inner, depth })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let depth = self.depth;
        self.visitor
            .visit_newtype_struct(RejectDuplicateKeys { inner, depth })
    }
}

/// A map with its keys so far.
struct DuplicateKeyMap<'a, 'de, A> {
    map: A,
    seen: SeenKeys<'de>,
    depth: DepthLimit<'a>,
}

/// Keys of one map.
#[derive(Default)]
struct SeenKeys<'de> {
    few: Vec<Cow<'de, str>>,
    many: BTreeSet<Cow<'de, str>>,
}

impl<'de> SeenKeys<'de> {
    /// Adds a key; false if it is a duplicate.
    fn insert(&mut self, key: Cow<'de, str>) -> bool {
        if self.few.contains(&key) {
            return false;
        }
        if self.few.len() < LINEAR_SEARCH_KEYS_MAX {
            self.few.push(key);
            return true;
        }
        self.many.insert(key)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for DuplicateKeyMap<'_, 'de, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Some(key) = self.map.next_key_seed(KeySeed)? else {
            return Ok(None);
        };
        if !self.seen.insert(key.clone()) {
            let error = A::Error::custom(format_args!("duplicate field `{key}`"));
            // Kept aside, because an error of serde has only a text.
            self.depth.duplicate.set(Some(key.into_owned()));
            return Err(error);
        }
        let key: CowStrDeserializer<'_, A::Error> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match self.depth.levels_left.checked_sub(1) {
            None | Some(0) => self.map.next_value_seed(seed),
            Some(levels) => self.map.next_value_seed(NestedSeed {
                seed,
                depth: DepthLimit {
                    levels_left: levels,
                    ..self.depth
                },
            }),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        self.map.size_hint()
    }
}

/// A key, borrowed from the text where it can be.
struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        // A key with escapes differs from its text.
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// A value one level further down.
struct NestedSeed<'a, S> {
    seed: S,
    depth: DepthLimit<'a>,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for NestedSeed<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        let depth = self.depth;
        self.seed.deserialize(RejectDuplicateKeys { inner, depth })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use lockkeeper_api::ClusterQueue;
    use serde::de::DeserializeOwned;

    #[track_caller]
    fn assert_rejected<T: DeserializeOwned>(text: &str, key: &str) {
        match from_str::<T>(text) {
            Err(DecodeError::DuplicateKey(found)) => assert_eq!(found, key, "{text}"),
            Err(DecodeError::Json(error)) => panic!("{text}: {error}"),
            Ok(_) => panic!("{text} was taken"),
        }
    }

    #[test]
    fn duplicate_key_is_detected() {
        for (text, key) in [
            (r#"{"metadata": {}, "metadata": {}}"#, "metadata"),
            (r#"{"spec": null, "x": 1, "spec": null}"#, "spec"),
            (r#"{"x": 1, "x": 1}"#, "x"),
            (r#"{"metadata": {"name": "a", "\u006eame": "b"}}"#, "name"),
            (
                r#"{"metadata": {"labels": {"a/b": "1", "a/b": "1"}}}"#,
                "a/b",
            ),
            (
                r#"{"spec": {"nodeName": "a", "containers": [], "nodeName": "b"}}"#,
                "nodeName",
            ),
        ] {
            assert_rejected::<Pod>(text, key);
        }
        assert_rejected::<ClusterQueue>(
            r#"{"metadata": {"name": "q"}, "spec": {}, "spec": {"cohortName": "c"}}"#,
            "spec",
        );
        assert_rejected::<ClusterQueue>(
            r#"{"metadata": {}, "spec": {"cohortName": "c", "cohortName": "c"}}"#,
            "cohortName",
        );
    }

    #[test]
    fn duplicate_among_many_keys_is_detected() {
        let many = |last: &str| {
            let labels: Vec<String> = (0..100).map(|n| format!(r#""k{n}": """#)).collect();
            format!(
                r#"{{"metadata": {{"labels": {{{}, {last}: ""}}}}}}"#,
                labels.join(", ")
            )
        };
        for key in ["k0", "k15", "k16", "k17", "k99"] {
            assert_rejected::<Pod>(&many(&format!("{key:?}")), key);
        }
        assert!(from_str::<Pod>(&many(r#""k100""#)).is_ok());
    }

    #[test]
    fn decoding_equals_plain_serde_decoding() {
        for text in [
            r#"{"metadata": {"name": "a", "labels": {"name": "b", "": "c"}}, "spec": null}"#,
            r#"{"metadata": {"name": "\u00e4\n", "generation": 5}, "spec": {"containers": [
                {"name": "a", "env": [{"name": "b", "value": "c"}],
                 "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 1}]}]}}"#,
            r#"{"metadata": null}"#,
            r#"{"metadata": {"name": 5}}"#,
            r#"{"metadata": []}"#,
            "[{}]",
            "{} x",
            "{\"a\"",
            "",
            "null",
        ] {
            let plain = serde_json::from_str::<Pod>(text).map_err(|error| error.to_string());
            let looked = from_str::<Pod>(text).map_err(|fault| match fault {
                DecodeError::Json(error) => error.to_string(),
                DecodeError::DuplicateKey(key) => panic!("{text}: {key}"),
            });
            assert_eq!(looked, plain, "{text}");
        }
    }
}
