//! Values by flavor and resource.

use foldhash::fast::FixedState;
use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::sync::Arc;

/// The number of recent names that are searched for an equal one.
const SHARED_NAMES_MAX: usize = 8;

/// A flavor, and a resource of it.
pub type FlavorResource<'a> = (&'a str, &'a str);

/// A flavor and a resource with their hash, for several lookups. The order is first that of the hash: comparing hashes
/// is much faster than comparing names, which often have long common prefixes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HashedKey<'a> {
    hash: u64,
    of: FlavorResource<'a>,
}

impl<'a> HashedKey<'a> {
    /// The hash is the same in each process, so that equal values are equal vectors.
    pub(super) fn new(of: FlavorResource<'a>) -> Self {
        let hash = FixedState::default().hash_one(of);
        Self { hash, of }
    }
}

/// Values by flavor and resource. A vector sorted by the hash of the keys: lookups are far more frequent than changes, and a
/// lookup by borrowed names needs no copies. The names are shared or borrowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByFlavor<T, N = SharedName>(Vec<Entry<T, N>>);

/// Most names occur several times, so equal names share one allocation.
type SharedName = Arc<str>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry<T, N> {
    /// Of the flavor and the resource.
    hash: u64,
    flavor: N,
    resource: N,
    value: T,
}

impl<T, N: AsRef<str>> Entry<T, N> {
    fn new(flavor: N, resource: N, value: T) -> Self {
        Self {
            hash: HashedKey::new((flavor.as_ref(), resource.as_ref())).hash,
            flavor,
            resource,
            value,
        }
    }

    fn key(&self) -> HashedKey<'_> {
        HashedKey {
            hash: self.hash,
            of: self.flavor_resource(),
        }
    }

    fn flavor_resource(&self) -> FlavorResource<'_> {
        (self.flavor.as_ref(), self.resource.as_ref())
    }
}

impl<T, N> Default for ByFlavor<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, N> ByFlavor<T, N> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }
}

impl<T, N: AsRef<str>> ByFlavor<T, N> {
    /// Sorts the values. Of several with the same key the last one is kept.
    fn from_unsorted(mut all: Vec<Entry<T, N>>) -> Self {
        // The sort is stable: values with equal keys keep their order.
        all.sort_by(|a, b| a.key().cmp(&b.key()));
        all.dedup_by(|later, kept| {
            let is_same = later.key() == kept.key();
            if is_same {
                // `dedup_by` removes the later one, so the swap keeps its value.
                std::mem::swap(later, kept);
            }
            is_same
        });
        Self(all)
    }

    /// The value of a flavor and resource. Costs O(log n).
    #[must_use]
    pub fn get(&self, of: FlavorResource<'_>) -> Option<&T> {
        self.get_hashed(HashedKey::new(of))
    }

    /// The value of a flavor and resource. Costs O(log n).
    pub(super) fn get_hashed(&self, key: HashedKey<'_>) -> Option<&T> {
        // Names are compared for entries with the hash only: usually one.
        let start = self.0.partition_point(|it| it.hash < key.hash);
        let same_hash = self.0.get(start..)?.iter();
        let mut same_hash = same_hash.take_while(|it| it.hash == key.hash);
        let found = same_hash.find(|it| it.flavor_resource() == key.of)?;
        Some(&found.value)
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The flavors, each once, sorted.
    pub fn flavors(&self) -> impl Iterator<Item = &str> {
        let flavors: BTreeSet<&str> = self.0.iter().map(|it| it.flavor.as_ref()).collect();
        flavors.into_iter()
    }

    /// All values with their keys, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (FlavorResource<'_>, &T)> {
        self.0.iter().map(|it| (it.flavor_resource(), &it.value))
    }
}

/// The shared copy of a name. Only the most recent names are searched, because they are the most likely.
fn shared_name(known: &mut Vec<SharedName>, name: &str) -> SharedName {
    let mut last = known.iter().rev().take(SHARED_NAMES_MAX);
    if let Some(it) = last.find(|it| ***it == *name) {
        return Arc::clone(it);
    }
    let new = SharedName::from(name);
    known.push(Arc::clone(&new));
    new
}

/// Of several values with the same key the last one is kept.
impl<'a, T> FromIterator<(FlavorResource<'a>, T)> for ByFlavor<T, &'a str> {
    fn from_iter<I: IntoIterator<Item = (FlavorResource<'a>, T)>>(all: I) -> Self {
        let entry = |((flavor, resource), value)| Entry::new(flavor, resource, value);
        Self::from_unsorted(all.into_iter().map(entry).collect())
    }
}

/// Of several values with the same key the last one is kept.
impl<'a, T> FromIterator<(FlavorResource<'a>, T)> for ByFlavor<T> {
    fn from_iter<I: IntoIterator<Item = (FlavorResource<'a>, T)>>(all: I) -> Self {
        let (mut flavors, mut resources) = (Vec::new(), Vec::new());
        let owned = |((flavor, resource), value): (FlavorResource<'_>, T)| {
            let flavor = shared_name(&mut flavors, flavor);
            Entry::new(flavor, shared_name(&mut resources, resource), value)
        };
        Self::from_unsorted(all.into_iter().map(owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::ByFlavor;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        #[test]
        fn by_flavor_equals_btree_map(all in prop::collection::vec((("[ab]{0,2}", "[ab]{0,2}"), any::<u8>()), 0..12)) {
            let borrowed = all.iter().map(|((flavor, resource), it)| ((flavor.as_str(), resource.as_str()), *it));
            let map: BTreeMap<(&str, &str), u8> = borrowed.clone().collect();
            let held: ByFlavor<u8> = borrowed.collect();
            prop_assert_eq!(held.len(), map.len());
            let flavors: BTreeSet<&str> = map.keys().map(|(flavor, _)| *flavor).collect();
            prop_assert!(held.flavors().eq(flavors));
            let iterated: BTreeMap<(&str, &str), u8> = held.iter().map(|(of, it)| (of, *it)).collect();
            prop_assert_eq!(iterated, map.clone());
            for of in [("", ""), ("a", ""), ("", "b"), ("ab", "a")] {
                prop_assert_eq!(held.get(of), map.get(&of));
            }
        }
    }
}
