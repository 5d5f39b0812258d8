//! Values by flavor and resource.

use std::sync::Arc;

/// The number of recent names that are searched for an equal one.
const SHARED_NAMES_MAX: usize = 8;

/// A flavor, and a resource of it.
pub type FlavorResource<'a> = (&'a str, &'a str);

/// Values by flavor and resource, sorted. A sorted vector, because lookups are far more frequent than changes, and a
/// lookup by borrowed names needs no copies. The names are shared or borrowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByFlavor<T, N = SharedName>(Vec<((N, N), T)>);

/// Most names occur several times, so equal names share one allocation.
type SharedName = Arc<str>;

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

impl<T, N: AsRef<str> + Ord> ByFlavor<T, N> {
    /// Sorts the values. Of several with the same key the last one is kept.
    fn from_unsorted(mut all: Vec<((N, N), T)>) -> Self {
        // The sort is stable: values with equal keys keep their order.
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
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
        let at = self
            .0
            .binary_search_by(|(key, _)| as_flavor_resource(key).cmp(&of));
        self.0.get(at.ok()?).map(|(_, it)| it)
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

    /// The flavors, each once.
    pub fn flavors(&self) -> impl Iterator<Item = &str> {
        let of_each = self.0.chunk_by(|(a, _), (b, _)| a.0 == b.0);
        of_each.filter_map(|it| Some(it.first()?.0.0.as_ref()))
    }

    /// All values with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (FlavorResource<'_>, &T)> {
        self.0.iter().map(|(key, it)| (as_flavor_resource(key), it))
    }
}

fn as_flavor_resource<N: AsRef<str>>((flavor, resource): &(N, N)) -> FlavorResource<'_> {
    (flavor.as_ref(), resource.as_ref())
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
        Self::from_unsorted(all.into_iter().collect())
    }
}

/// Of several values with the same key the last one is kept.
impl<'a, T> FromIterator<(FlavorResource<'a>, T)> for ByFlavor<T> {
    fn from_iter<I: IntoIterator<Item = (FlavorResource<'a>, T)>>(all: I) -> Self {
        let (mut flavors, mut resources) = (Vec::new(), Vec::new());
        let owned = |((flavor, resource), it): (FlavorResource<'_>, T)| {
            let key = (
                shared_name(&mut flavors, flavor),
                shared_name(&mut resources, resource),
            );
            (key, it)
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
            prop_assert!(held.iter().map(|(of, it)| (of, *it)).eq(map.iter().map(|(of, it)| (*of, *it))));
            for of in [("", ""), ("a", ""), ("", "b"), ("ab", "a")] {
                prop_assert_eq!(held.get(of), map.get(&of));
            }
        }
    }
}
