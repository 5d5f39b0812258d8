//! The differences between two JSON values, as entries that can be restored one by one.

use lockkeeper_api::field_path::FieldPath;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The number of entries tried one by one after restoring all at once has failed. Further entries are dropped: each attempt
/// converts the object.
const RESTORE_ATTEMPTS_MAX: usize = 64;

/// A list with keyed items (`x-kubernetes-list-type: map`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListKey {
    /// The path of the list, such as `spec.windows`; `*` is any item or entry.
    pub list: &'static str,
    /// The field of an item that is its key; its value is a string.
    pub key: &'static str,
}

/// One element of a path to a value.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Step {
    /// A field, or an entry of a map.
    Field(String),
    /// An item of a list.
    Item {
        /// The key of the item.
        item: String,
    },
}

/// One difference: the value to restore at a path.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Entry {
    /// The path.
    pub(crate) at: Vec<Step>,
    #[serde(flatten)]
    value: EntryValue,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
enum EntryValue {
    /// The keys of a list's items, in order.
    Order { order: Vec<String> },
    /// A value that differs.
    Value {
        /// The number of leading path elements that existed in the base. If one of these is missing on restore, it was
        /// removed since, and the entry is dropped; missing elements after these are created.
        #[serde(rename = "in")]
        inside: usize,
        /// The value in the base; `None` if absent.
        #[serde(
            default,
            deserialize_with = "present",
            skip_serializing_if = "Option::is_none"
        )]
        base: Option<Value>,
        /// The value to restore; `None` if absent.
        #[serde(
            default,
            deserialize_with = "present",
            skip_serializing_if = "Option::is_none"
        )]
        kept: Option<Value>,
    },
}

/// Distinguishes an explicit null from an absent value.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The entries that turn `base` into `preserved`.
pub(crate) fn difference(base: &Value, preserved: &Value, keyed: &[ListKey]) -> Vec<Entry> {
    let mut search = DifferenceSearch {
        keyed,
        at: Vec::new(),
        out: Vec::new(),
    };
    search.compare(Some(base), Some(preserved), 0);
    search.out
}

/// Restores the entries that still apply, as long as `is_same` accepts the result. If it rejects the result of all together,
/// the entries are tried one by one.
pub(crate) fn restore(
    value: Value,
    entries: &[Entry],
    keyed: &[ListKey],
    is_same: impl Fn(&Value) -> bool,
) -> Value {
    if entries.is_empty() {
        return value;
    }
    let mut all = value.clone();
    for entry in entries {
        entry.restore(&mut all, keyed);
    }
    if is_same(&all) {
        return all;
    }
    let mut value = value;
    // One stale entry must not block the restoration of the others.
    for entry in entries.iter().take(RESTORE_ATTEMPTS_MAX) {
        let mut candidate = value.clone();
        if entry.restore(&mut candidate, keyed) && is_same(&candidate) {
            value = candidate;
        }
    }
    value
}

struct DifferenceSearch<'a> {
    keyed: &'a [ListKey],
    at: Vec<Step>,
    out: Vec<Entry>,
}

impl DifferenceSearch<'_> {
    fn compare(&mut self, base: Option<&Value>, preserved: Option<&Value>, inside: usize) {
        match (base, preserved) {
            (base, preserved) if base == preserved => {}
            (Some(Value::Object(base)), Some(Value::Object(preserved))) => {
                self.compare_fields(Some(base), preserved, self.at.len());
            }
            // Descend instead of storing the object whole: a sibling added since must not block the other fields.
            (None, Some(Value::Object(preserved)))
                if !preserved.is_empty() && self.is_at_field() =>
            {
                self.compare_fields(None, preserved, inside);
            }
            (base @ (Some(Value::Array(_)) | None), Some(Value::Array(preserved))) => {
                let items = base
                    .and_then(Value::as_array)
                    .map_or(&[][..], Vec::as_slice);
                if !self.compare_items(items, preserved, base.map_or(inside, |_| self.at.len())) {
                    self.push_entry(base, Some(&Value::from(preserved.clone())), inside);
                }
            }
            (base, preserved) => self.push_entry(base, preserved, inside),
        }
    }

    /// Whether the current path ends in a field. List items are restored as a whole.
    fn is_at_field(&self) -> bool {
        !matches!(self.at.last(), Some(Step::Item { .. }))
    }

    fn push_entry(&mut self, base: Option<&Value>, preserved: Option<&Value>, inside: usize) {
        self.out.push(Entry {
            at: self.at.clone(),
            value: EntryValue::Value {
                inside,
                base: base.cloned(),
                kept: preserved.cloned(),
            },
        });
    }

    fn compare_fields(
        &mut self,
        base: Option<&Map<String, Value>>,
        preserved: &Map<String, Value>,
        inside: usize,
    ) {
        let base_names = base.into_iter().flat_map(Map::keys);
        let names: BTreeSet<&String> = base_names.chain(preserved.keys()).collect();
        for name in names {
            let base = base.and_then(|it| it.get(name));
            self.at.push(Step::Field(name.clone()));
            self.compare(base, preserved.get(name), inside);
            self.at.pop();
        }
    }

    /// Compares two lists item by item. Returns false if the items have no unique keys.
    fn compare_items(&mut self, base: &[Value], preserved: &[Value], inside: usize) -> bool {
        let Some(key) = find_list_key(self.keyed, &self.at) else {
            return false;
        };
        let (Some(base_keys), Some(preserved_keys)) =
            (unique_keys(base, key), unique_keys(preserved, key))
        else {
            return false;
        };
        if preserved.is_empty() {
            // Restoring items by key cannot produce an empty list.
            return false;
        }
        let base: BTreeMap<&str, &Value> = base_keys.iter().copied().zip(base).collect();
        let items: BTreeMap<&str, &Value> = preserved_keys.iter().copied().zip(preserved).collect();
        let all: BTreeSet<&str> = base.keys().chain(items.keys()).copied().collect();
        for key in all {
            let item = key.to_owned();
            self.at.push(Step::Item { item });
            self.compare(base.get(key).copied(), items.get(key).copied(), inside);
            self.at.pop();
        }
        if base_keys != preserved_keys {
            let order = preserved_keys.iter().map(|&it| it.to_owned()).collect();
            self.out.push(Entry {
                at: self.at.clone(),
                value: EntryValue::Order { order },
            });
        }
        true
    }
}

/// The path in Kubernetes' notation: `spec.windows[night].zone`.
pub(crate) fn format_path(at: &[Step]) -> String {
    let path = at
        .iter()
        .fold(FieldPath::default(), |path, step| match step {
            Step::Field(name) => path.named(name.as_str()),
            Step::Item { item } => path.key(item.as_str()),
        });
    path.text()
}

/// The key field of the list at `at`.
fn find_list_key(keyed: &[ListKey], at: &[Step]) -> Option<&'static str> {
    let found = keyed.iter().find(|it| matches_path(it.list, at));
    found.map(|it| it.key)
}

/// Whether a pattern matches the whole path.
fn matches_path(pattern: &str, at: &[Step]) -> bool {
    pattern.split('.').count() == at.len() && matches_prefix(pattern, at)
}

/// Whether a pattern matches the path or one of its ancestors.
fn matches_prefix(pattern: &str, at: &[Step]) -> bool {
    let mut steps = at.iter();
    pattern.split('.').all(|name| match (name, steps.next()) {
        ("*", Some(_)) => true,
        (name, Some(Step::Field(field))) => name == field,
        (_, Some(Step::Item { .. }) | None) => false,
    })
}

/// The keys of all items, if each has a unique one.
fn unique_keys<'a>(items: &'a [Value], key: &str) -> Option<Vec<&'a str>> {
    let all: Option<Vec<&str>> = items.iter().map(|it| it.get(key)?.as_str()).collect();
    all.filter(|all| all.iter().collect::<BTreeSet<_>>().len() == all.len())
}

impl Entry {
    /// Whether this is the order of a list.
    pub(crate) fn is_order(&self) -> bool {
        matches!(self.value, EntryValue::Order { .. })
    }

    /// Whether a pattern of [`Version::LACKS`](crate::Version::LACKS) covers this entry: it matches the path or an ancestor,
    /// or, as `spec.windows[]`, the order of a list.
    pub(crate) fn matches_pattern(&self, pattern: &str) -> bool {
        match (&self.value, pattern.strip_suffix("[]")) {
            (EntryValue::Order { .. }, Some(list)) => matches_path(list, &self.at),
            (_, None) => matches_prefix(pattern, &self.at),
            (EntryValue::Value { .. }, Some(_)) => false,
        }
    }

    /// Restores this entry if the current value is the one in the base. Returns false otherwise.
    fn restore(&self, value: &mut Value, keyed: &[ListKey]) -> bool {
        match &self.value {
            EntryValue::Order { order } => self.restore_order(value, order, keyed),
            EntryValue::Value {
                inside,
                base,
                kept: preserved,
            } => {
                let Some((last, above)) = self.at.split_last() else {
                    return false;
                };
                let found = self.find(value, keyed);
                // A client has changed the value since: the change takes precedence over the entry.
                if found != base.as_ref() {
                    return false;
                }
                let mut parent = value;
                for (depth, step) in above.iter().enumerate() {
                    let path = self.at.get(..depth).unwrap_or_default();
                    let next = self.at.get(depth.saturating_add(1));
                    // Containers that existed in the base and are gone now were removed on purpose.
                    let make = (depth >= *inside).then_some(next).flatten();
                    match descend(parent, step, find_list_key(keyed, path), make) {
                        Some(child) => parent = child,
                        None => return false,
                    }
                }
                set_value(parent, last, find_list_key(keyed, above), preserved.clone())
            }
        }
    }

    fn find<'a>(&self, value: &'a Value, keyed: &[ListKey]) -> Option<&'a Value> {
        let mut at = value;
        for (depth, step) in self.at.iter().enumerate() {
            let path = self.at.get(..depth).unwrap_or_default();
            at = match step {
                Step::Field(name) => at.get(name)?,
                Step::Item { item } => {
                    let items = at.as_array()?;
                    items.get(item_position(items, find_list_key(keyed, path)?, item)?)?
                }
            };
        }
        Some(at)
    }

    fn restore_order(&self, value: &mut Value, order: &[String], keyed: &[ListKey]) -> bool {
        let mut list = value;
        for (depth, step) in self.at.iter().enumerate() {
            let path = self.at.get(..depth).unwrap_or_default();
            match descend(list, step, find_list_key(keyed, path), None) {
                Some(child) => list = child,
                None => return false,
            }
        }
        let (Some(items), Some(key)) = (list.as_array_mut(), find_list_key(keyed, &self.at)) else {
            return false;
        };
        let positions: BTreeMap<&str, usize> =
            order.iter().map(String::as_str).zip(0_usize..).collect();
        // Items added since go to the end; the sort is stable, so they stay in their order.
        items.sort_by_key(|item| {
            let key = item.get(key).and_then(Value::as_str);
            let position = key.and_then(|it| positions.get(it));
            position.copied().unwrap_or(usize::MAX)
        });
        true
    }
}

/// The position of the item with this key.
fn item_position(items: &[Value], key: &str, item: &str) -> Option<usize> {
    let is_it = |it: &Value| it.get(key).and_then(Value::as_str) == Some(item);
    items.iter().position(is_it)
}

/// Descends one path element. If a field is missing and `make`, the next element, is given, creates a container for it.
fn descend<'a>(
    parent: &'a mut Value,
    step: &Step,
    key: Option<&str>,
    make: Option<&Step>,
) -> Option<&'a mut Value> {
    match step {
        Step::Field(name) => {
            let fields = parent.as_object_mut()?;
            if let (None, Some(next)) = (fields.get(name), make) {
                let empty = match next {
                    Step::Field(_) => Value::Object(Map::new()),
                    Step::Item { .. } => Value::Array(Vec::new()),
                };
                fields.insert(name.clone(), empty);
            }
            fields.get_mut(name)
        }
        Step::Item { item } => {
            let items = parent.as_array_mut()?;
            let place = item_position(items, key?, item)?;
            items.get_mut(place)
        }
    }
}

/// Sets the value at a path element, or removes it if `preserved` is `None`.
fn set_value(parent: &mut Value, step: &Step, key: Option<&str>, preserved: Option<Value>) -> bool {
    match (parent, step) {
        (Value::Object(fields), Step::Field(name)) => {
            match preserved {
                Some(preserved) => fields.insert(name.clone(), preserved),
                None => fields.remove(name),
            };
            true
        }
        (Value::Array(items), Step::Item { item }) => {
            let Some(key) = key else {
                return false;
            };
            match (item_position(items, key, item), preserved) {
                (Some(place), Some(preserved)) => {
                    if let Some(slot) = items.get_mut(place) {
                        *slot = preserved;
                    }
                }
                (Some(place), None) => {
                    items.remove(place);
                }
                (None, Some(preserved)) => items.push(preserved),
                (None, None) => {}
            }
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
