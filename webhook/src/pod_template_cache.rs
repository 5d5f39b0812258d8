//! Decoded pod templates of recent reviews.
//!
//! Half of the cost of a review of a Workload is to decode its pod templates. The same text is reviewed several times: for
//! defaults and then for validation, as object and old object of an update, and for the Workloads of equal jobs.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use lru::LruCache;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest text that is kept, in bytes: others would leave no room for many.
const TEXT_BYTES_MAX: usize = 32 << 10;

/// The estimated memory of all templates, in bytes.
const WEIGHT_MAX: usize = 24 << 20;

/// No object of a list in a template takes more memory, in bytes, with the spare capacity of the list. Tenants choose the texts, and
/// `{}` is short.
const OBJECT_BYTES_MAX: usize = 7 << 10;

/// No byte of other text takes more memory, in bytes: `""` in a list is a string without a block, `"a":""` an entry of a map.
const BYTES_PER_TEXT_BYTE: usize = 16;

/// Pod templates by their text, of which those that were not used for the longest time are removed.
#[derive(Debug)]
pub(crate) struct PodTemplateCache {
    /// Random, so that no tenant can choose texts with equal digests.
    hasher: RandomState,
    entries: Mutex<Entries>,
}

/// A text with its digest, which is computed once.
#[derive(Debug)]
pub(crate) struct TemplateKey<'a> {
    text: &'a str,
    digest: u64,
}

#[derive(Debug)]
struct Entries {
    by_digest: LruCache<u64, Entry>,
    weight: usize,
}

#[derive(Debug)]
struct Entry {
    text: Box<str>,
    template: Arc<PodTemplateSpec>,
    weight: usize,
}

impl Default for PodTemplateCache {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            entries: Mutex::new(Entries {
                by_digest: LruCache::unbounded(),
                weight: 0,
            }),
        }
    }
}

impl PodTemplateCache {
    /// The key of a template with this text, unless the text is too long for the cache. The cost is linear in the text.
    pub(crate) fn key<'a>(&self, text: &'a str) -> Option<TemplateKey<'a>> {
        (text.len() <= TEXT_BYTES_MAX).then(|| TemplateKey {
            text,
            digest: self.hasher.hash_one(text),
        })
    }

    /// The template with the text of a key.
    pub(crate) fn get(&self, key: &TemplateKey<'_>) -> Option<Arc<PodTemplateSpec>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.by_digest.get(&key.digest)?;
        (*entry.text == *key.text).then(|| Arc::clone(&entry.template))
    }

    /// Keeps a template that was decoded from the text of this key.
    pub(crate) fn insert(&self, key: &TemplateKey<'_>, template: &Arc<PodTemplateSpec>) {
        let weight = weight(key.text);
        if weight > WEIGHT_MAX {
            return;
        }
        let entry = Entry {
            text: key.text.into(),
            template: Arc::clone(template),
            weight,
        };
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = entries.by_digest.put(key.digest, entry);
        let replaced = replaced.map_or(0, |it| it.weight);
        entries.weight = entries.weight.saturating_sub(replaced);
        entries.weight = entries.weight.saturating_add(weight);
        while entries.weight > WEIGHT_MAX
            && let Some((_, oldest)) = entries.by_digest.pop_lru()
        {
            entries.weight = entries.weight.saturating_sub(oldest.weight);
        }
    }
}

/// An upper bound of the memory of a template with this text, in bytes.
fn weight(text: &str) -> usize {
    let objects = text.bytes().filter(|it| *it == b'{').count();
    let of_objects = objects.saturating_mul(OBJECT_BYTES_MAX);
    let of_text = text.len().saturating_mul(BYTES_PER_TEXT_BYTE);
    of_objects.saturating_add(of_text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::{OBJECT_BYTES_MAX, PodTemplateCache, TEXT_BYTES_MAX, WEIGHT_MAX, weight};
    use k8s_openapi::api::core::v1::{
        Container, EphemeralContainer, PodTemplateSpec, Volume, VolumeProjection,
    };
    use std::sync::Arc;

    fn text(number: usize, padding: usize) -> String {
        let padding = "x".repeat(padding);
        format!(r#"{{"metadata":{{"labels":{{"a":"{number}-{padding}"}}}}}}"#)
    }

    fn add(cache: &PodTemplateCache, text: &str) {
        let template: PodTemplateSpec = serde_json::from_str(text).unwrap();
        if let Some(key) = cache.key(text) {
            cache.insert(&key, &Arc::new(template));
        }
    }

    fn get(cache: &PodTemplateCache, text: &str) -> Option<Arc<PodTemplateSpec>> {
        cache.get(&cache.key(text)?)
    }

    #[test]
    fn template_is_shared_by_equal_texts_only() {
        let cache = PodTemplateCache::default();
        let [one, other] = [text(1, 0), text(2, 0)];
        assert!(get(&cache, &one).is_none());
        add(&cache, &one);
        let first = get(&cache, &one).unwrap();
        assert_eq!(
            *first,
            serde_json::from_str::<PodTemplateSpec>(&one).unwrap()
        );
        assert!(Arc::ptr_eq(&first, &get(&cache, &one.clone()).unwrap()));
        assert!(get(&cache, &other).is_none());
    }

    #[test]
    fn memory_is_bounded_and_oldest_template_is_removed() {
        let cache = PodTemplateCache::default();
        let kept = text(0, 10_000);
        add(&cache, &kept);
        for number in 1..1_000 {
            add(&cache, &text(number, 10_000));
            // It is used meanwhile, so it stays.
            assert!(get(&cache, &kept).is_some());
        }
        assert!(get(&cache, &text(1, 10_000)).is_none());
        assert!(get(&cache, &text(999, 10_000)).is_some());
        let entries = cache.entries.lock().unwrap();
        let sum: usize = entries.by_digest.iter().map(|(_, it)| it.weight).sum();
        assert_eq!(sum, entries.weight);
        assert!(sum <= WEIGHT_MAX && sum > WEIGHT_MAX / 2);
    }

    #[test]
    fn long_texts_are_not_kept() {
        let cache = PodTemplateCache::default();
        let long = text(1, TEXT_BYTES_MAX);
        add(&cache, &long);
        let many_objects = format!(
            r#"{{"spec":{{"containers":[{}]}}}}"#,
            vec![r#"{"name":""}"#; 2_600].join(",")
        );
        assert!(many_objects.len() <= TEXT_BYTES_MAX);
        assert!(weight(&many_objects) > 2_600 * OBJECT_BYTES_MAX);
        assert!(cache.key(&long).is_none());
        assert_eq!(cache.entries.lock().unwrap().weight, 0);
    }

    /// A list has up to twice the capacity that its elements need.
    #[test]
    fn bound_of_memory_holds_for_largest_elements() {
        for bytes in [
            size_of::<Container>(),
            size_of::<EphemeralContainer>(),
            size_of::<Volume>(),
            size_of::<VolumeProjection>(),
        ] {
            assert!(2 * bytes <= OBJECT_BYTES_MAX, "{bytes}");
        }
    }
}
