//! Decodes an object into its type, with the pod templates that were decoded before.

use crate::duplicate_keys::{self, DecodeError};
use crate::json_cursor::JsonCursor;
use crate::pod_template_cache::PodTemplateCache;
use lockkeeper_policies::validated_kind::ValidatedKind;
use std::borrow::Cow;
use std::ops::Range;

/// Decodes an object. Pod templates that the cache has are not decoded again; it gets the others.
pub(super) fn typed_object<T: ValidatedKind>(
    raw: &str,
    templates: &PodTemplateCache,
) -> Result<T, DecodeError> {
    let places = T::HAS_POD_SETS.then(|| template_places(raw.as_bytes()));
    match places.flatten() {
        Some(places) => object_with_templates(raw, &places, templates),
        None => duplicate_keys::from_str(raw),
    }
}

fn object_with_templates<T: ValidatedKind>(
    raw: &str,
    places: &[Range<usize>],
    cache: &PodTemplateCache,
) -> Result<T, DecodeError> {
    let texts: Vec<&str> = places.iter().filter_map(|it| raw.get(it.clone())).collect();
    let keys: Vec<_> = texts.iter().map(|it| cache.key(it)).collect();
    let known: Vec<_> = keys.iter().map(|key| cache.get(key.as_ref()?)).collect();
    let shortened = without_known(raw, places, known.iter().map(Option::is_some));
    let Ok(mut object) = duplicate_keys::from_str::<T>(&shortened) else {
        // Errors have places in the whole text.
        return duplicate_keys::from_str(raw);
    };
    let templates = T::pod_set_templates(&mut object);
    if templates.len() != keys.len() {
        return duplicate_keys::from_str(raw);
    }
    for ((template, key), known) in templates.into_iter().zip(keys).zip(known) {
        match (known, key) {
            (Some(known), _) => *template = known,
            (None, Some(key)) => cache.insert(&key, template),
            (None, None) => {}
        }
    }
    Ok(object)
}

/// The text with `{}` in place of the known templates.
fn without_known<'a>(
    raw: &'a str,
    places: &[Range<usize>],
    is_known: impl Iterator<Item = bool>,
) -> Cow<'a, str> {
    let mut shortened = String::new();
    let mut copied = 0;
    for (place, _) in places
        .iter()
        .zip(is_known)
        .filter(|(_, is_known)| *is_known)
    {
        shortened.push_str(raw.get(copied..place.start).unwrap_or_default());
        shortened.push_str("{}");
        copied = place.end;
    }
    if copied == 0 {
        return Cow::Borrowed(raw);
    }
    shortened.push_str(raw.get(copied..).unwrap_or_default());
    Cow::Owned(shortened)
}

/// Where the values of `spec.podSets[*].template` are. `None` if an object has a key twice, so that it is undefined which value
/// counts, or if a pod set has no template that is an object.
fn template_places(raw: &[u8]) -> Option<Vec<Range<usize>>> {
    let mut places = None;
    JsonCursor::new(raw).members(|cursor, key| {
        if key != b"spec" || cursor.peek()? != b'{' {
            return cursor.skip_value();
        }
        cursor.members(|cursor, key| {
            if key != b"podSets" || cursor.peek()? != b'[' {
                return cursor.skip_value();
            }
            let found = places_in_pod_sets(cursor)?;
            places.replace(found).is_none().then_some(())
        })
    })?;
    places
}

fn places_in_pod_sets(cursor: &mut JsonCursor<'_>) -> Option<Vec<Range<usize>>> {
    let mut places = Vec::new();
    cursor.elements(|cursor| {
        let mut place = None;
        cursor.members(|cursor, key| {
            if key != b"template" {
                return cursor.skip_value();
            }
            let is_object = cursor.peek()? == b'{';
            let found = cursor.value_range()?;
            (is_object && place.replace(found).is_none()).then_some(())
        })?;
        places.push(place?);
        Some(())
    })?;
    Some(places)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::{template_places, typed_object};
    use crate::duplicate_keys;
    use crate::pod_template_cache::PodTemplateCache;
    use lockkeeper_api::Workload;
    use proptest::prelude::*;
    use std::sync::Arc;

    const WORKLOAD: &str = r#"{"metadata": {"name": "w"}, "spec": {"queueName": "q", "podSets": [
        {"name": "a", "template": {"spec": {"containers": [{"name": "}\"{", "image": "i"}]}}, "count": 2},
        {"name": "b", "template": {"metadata": {"labels": {"template": "x"}}, "spec": {"containers": []}}},
        {"name": "c", "template": {"spec": {"containers": [{"name": "}\"{", "image": "i"}]}}}
    ]}}"#;

    fn decoded(raw: &str, cache: &PodTemplateCache) -> Result<Workload, String> {
        typed_object(raw, cache).map_err(|error| format!("{error:?}"))
    }

    fn expected(raw: &str) -> Result<Workload, String> {
        duplicate_keys::from_str(raw).map_err(|error| format!("{error:?}"))
    }

    fn filled_cache() -> PodTemplateCache {
        let cache = PodTemplateCache::default();
        decoded(WORKLOAD, &cache).unwrap();
        cache
    }

    #[test]
    fn equal_templates_are_shared() {
        let cache = PodTemplateCache::default();
        let first = decoded(WORKLOAD, &cache).unwrap();
        assert_eq!(first, expected(WORKLOAD).unwrap());
        // Another workload with a template of the first one, and a new one.
        let other = WORKLOAD.replace(r#""name": "w""#, r#""name": "v""#);
        let other = other.replace(r#""x""#, r#""y""#);
        let second = decoded(&other, &cache).unwrap();
        assert_eq!(second, expected(&other).unwrap());
        let template = |of: &Workload, at: usize| Arc::clone(&of.spec.pod_sets[at].template);
        assert!(Arc::ptr_eq(&template(&first, 2), &template(&second, 0)));
        assert!(Arc::ptr_eq(&template(&second, 0), &template(&second, 2)));
        assert_ne!(template(&first, 1), template(&second, 1));
    }

    #[test]
    fn undecodable_objects_have_the_same_error() {
        let cache = filled_cache();
        for (from, to) in [
            (r#""count": 2"#, r#""count": "2""#),
            (r#""count": 2"#, r#""template": {}"#),
            (r#""queueName": "q""#, r#""podSets": []"#),
            (r#""metadata""#, r#""spec": {"podSets": []}, "metadata""#),
            (r#"{"name": "b","#, r#"{"name": 1,"#),
            (r#""image": "i""#, r#""image": 1"#),
            (
                r#""template": {"metadata""#,
                r#""tem\u0070late": {"metadata""#,
            ),
            (r#""template": {"metadata""#, r#""other": {"metadata""#),
            ("\n    ]}}", "\n    ]}} x"),
        ] {
            let raw = WORKLOAD.replacen(from, to, 1);
            assert_ne!(raw, WORKLOAD);
            assert_eq!(decoded(&raw, &cache), expected(&raw), "{raw}");
        }
    }

    #[test]
    fn only_templates_of_pod_sets_are_found() {
        let texts = |raw: &'static str| {
            let places = template_places(raw.as_bytes());
            places.map(|all| all.into_iter().map(|it| &raw[it]).collect::<Vec<_>>())
        };
        let raw = r#"{"template": {"a": 1}, "spec": {"template": {}, "podSets": [{"a": {"template": 1}, "template": {"b": 1}}]}}"#;
        assert_eq!(texts(raw), Some(vec![r#"{"b": 1}"#]));
        assert_eq!(texts(r#"{"spec": {"podSets": []}}"#), Some(Vec::new()));
        for raw in [
            "{}",
            r#"{"spec": {}}"#,
            r#"{"spec": {"podSets": {}}}"#,
            r#"{"spec": {"podSets": [{"name": "a"}]}}"#,
            r#"{"spec": {"podSets": [{"template": null}]}}"#,
            r#"{"spec": {"podSets": [{"template": {}, "template": {}}]}}"#,
        ] {
            assert_eq!(texts(raw), None, "{raw}");
        }
    }

    /// A part of the text is repeated at another place, or replaces the text there.
    fn edited_texts() -> impl Strategy<Value = String> {
        let place = || 0..WORKLOAD.len();
        (place(), 0..60_usize, place(), 0..60_usize).prop_map(|(from, copied, to, removed)| {
            let end =
                |start: usize, length: usize| start.saturating_add(length).min(WORKLOAD.len());
            let part = &WORKLOAD[from..end(from, copied)];
            format!("{}{part}{}", &WORKLOAD[..to], &WORKLOAD[end(to, removed)..])
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_096))]

        #[test]
        fn cache_changes_no_result(raw in edited_texts()) {
            let cache = filled_cache();
            // The second time with the templates of the edited text.
            for _ in 0..2 {
                prop_assert_eq!(decoded(&raw, &cache), expected(&raw));
            }
        }
    }
}
