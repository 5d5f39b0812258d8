//! Functions for maps of sets.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// Adds `item` to the set under `key`.
pub(crate) fn add_to<V: Ord>(map: &mut BTreeMap<String, BTreeSet<V>>, key: &str, item: V) {
    match map.get_mut(key) {
        Some(set) => set.insert(item),
        None => map.entry(key.to_owned()).or_default().insert(item),
    };
}

/// Removes `item` from the set under `key`, and the set from the map if it is then empty.
pub(crate) fn remove_from<K, Q, V>(map: &mut BTreeMap<K, BTreeSet<V>>, key: &Q, item: &V)
where
    K: Ord + Borrow<Q>,
    Q: Ord + ?Sized,
    V: Ord,
{
    if let Some(set) = map.get_mut(key) {
        set.remove(item);
        if set.is_empty() {
            map.remove(key);
        }
    }
}
