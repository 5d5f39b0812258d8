//! Values by flavor and resource.

use std::sync::Arc;

/// Among as many names another one is looked for.
const SHARED_NAMES_MAX: usize = 8;

/// A flavor, and a resource of it.
pub type FlavorResource<'a> = (&'a str, &'a str);

/// Values by flavor and resource, in their order. What a queue has of them is asked for far more often than it changes,
/// and by names that nobody need copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByFlavor<T>(Vec<((Name, Name), T)>);

/// Nearly all names stand several times: those that are equal are kept once.
type Name = Arc<str>;

impl<T> Default for ByFlavor<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> ByFlavor<T> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Costs a logarithm of their number.
    #[must_use]
    pub fn get(&self, of: FlavorResource<'_>) -> Option<&T> {
        let at = self
            .0
            .binary_search_by(|(key, _)| as_flavor_resource(key).cmp(&of));
        self.0.get(at.ok()?).map(|(_, it)| it)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The flavors, each once.
    pub fn flavors(&self) -> impl Iterator<Item = &str> {
        let of_each = self.0.chunk_by(|(a, _), (b, _)| a.0 == b.0);
        of_each.filter_map(|it| Some(&*it.first()?.0.0))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (FlavorResource<'_>, &T)> {
        self.0.iter().map(|(key, it)| (as_flavor_resource(key), it))
    }
}

fn as_flavor_resource((flavor, resource): &(Name, Name)) -> FlavorResource<'_> {
    (flavor, resource)
}

/// The name as one of those that are known, of which the last are the likeliest.
fn shared_name(known: &mut Vec<Name>, name: &str) -> Name {
    let mut last = known.iter().rev().take(SHARED_NAMES_MAX);
    if let Some(it) = last.find(|it| ***it == *name) {
        return Arc::clone(it);
    }
    let new = Name::from(name);
    known.push(Arc::clone(&new));
    new
}

/// Of several of the same flavor and resource the last counts.
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
        let mut all: Vec<_> = all.into_iter().map(owned).collect();
        // A stable sort leaves equal ones in the order in which they came.
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                std::mem::swap(later, kept);
            }
            is_same
        });
        Self(all)
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
