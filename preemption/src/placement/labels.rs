//! Labels and label selectors.

use crate::ids::SymbolId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Interned strings: keys and values of labels and taints, names of namespaces and nodes.
#[derive(Clone, Debug, Default)]
pub struct SymbolTable {
    ids: BTreeMap<Arc<str>, SymbolId>,
    symbols: Vec<Symbol>,
    /// Ids to be used again.
    free_ids: BTreeSet<SymbolId>,
}

#[derive(Clone, Debug)]
struct Symbol {
    text: Arc<str>,
    /// The value of the string as an integer, if it is one. Parsed once, so that `Gt` and `Lt` need no parsing for each
    /// node.
    number: Option<i64>,
}

impl SymbolTable {
    /// The id of a string; a new one if it was not interned before.
    pub fn intern(&mut self, text: &str) -> SymbolId {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let symbol = Symbol {
            text: text.into(),
            number: text.parse().ok(),
        };
        let key = Arc::clone(&symbol.text);
        let reused = self.free_ids.pop_first();
        let id = reused.unwrap_or_else(|| SymbolId::of(self.symbols.len()));
        match self.symbols.get_mut(id.index()) {
            Some(slot) => *slot = symbol,
            None => self.symbols.push(symbol),
        }
        self.ids.insert(key, id);
        id
    }

    /// The id of a string that was interned before.
    #[must_use]
    pub fn lookup(&self, text: &str) -> Option<SymbolId> {
        self.ids.get(text).copied()
    }

    /// The string of an id.
    #[must_use]
    pub fn text(&self, symbol: SymbolId) -> &str {
        let symbol = self.symbols.get(symbol.index());
        symbol.map_or("", |it| &it.text)
    }

    /// The number of interned strings.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Removes all strings but these. Costs all strings.
    pub(super) fn retain(&mut self, is_used: impl Fn(SymbolId) -> bool) {
        let (symbols, free_ids) = (&mut self.symbols, &mut self.free_ids);
        self.ids.retain(|_, id| {
            let is_kept = is_used(*id);
            if !is_kept {
                free_ids.insert(*id);
                if let Some(slot) = symbols.get_mut(id.index()) {
                    *slot = Symbol {
                        text: "".into(),
                        number: None,
                    };
                }
            }
            is_kept
        });
    }

    /// The string as an integer.
    fn number(&self, symbol: SymbolId) -> Option<i64> {
        self.symbols.get(symbol.index())?.number
    }
}

/// Labels, sorted by the id of the key. A duplicate key has its last value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels(Box<[(SymbolId, SymbolId)]>);

impl Labels {
    /// Labels from pairs of key and value.
    #[must_use]
    pub fn from_pairs(pairs: impl IntoIterator<Item = (SymbolId, SymbolId)>) -> Self {
        let pairs: std::collections::BTreeMap<_, _> = pairs.into_iter().collect();
        Self(pairs.into_iter().collect())
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: SymbolId) -> Option<SymbolId> {
        let at = self.0.binary_search_by_key(&key, |pair| pair.0).ok()?;
        self.0.get(at).map(|pair| pair.1)
    }

    /// Whether there are no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys and values.
    pub(super) const fn pairs(&self) -> &[(SymbolId, SymbolId)] {
        &self.0
    }
}

/// The operator of a requirement with its values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LabelCondition {
    /// The label exists with one of these values.
    In(Box<[SymbolId]>),
    /// The label does not exist, or has another value.
    NotIn(Box<[SymbolId]>),
    /// The label exists.
    Exists,
    /// The label does not exist.
    DoesNotExist,
    /// The value is an integer above this one.
    GreaterThan(i64),
    /// The value is an integer below this one.
    LessThan(i64),
}

/// A condition on the value of one key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// The key.
    pub key: SymbolId,
    /// The condition on its value.
    pub condition: LabelCondition,
}

impl Requirement {
    /// Whether labels match. Source: apimachinery `labels.Requirement.Matches`.
    #[must_use]
    pub fn matches(&self, labels: &Labels, symbols: &SymbolTable) -> bool {
        let value = labels.get(self.key);
        let number = || value.and_then(|it| symbols.number(it));
        match &self.condition {
            LabelCondition::In(values) => value.is_some_and(|it| values.contains(&it)),
            LabelCondition::NotIn(values) => value.is_none_or(|it| !values.contains(&it)),
            LabelCondition::Exists => value.is_some(),
            LabelCondition::DoesNotExist => value.is_none(),
            LabelCondition::GreaterThan(bound) => number().is_some_and(|it| it > *bound),
            LabelCondition::LessThan(bound) => number().is_some_and(|it| it < *bound),
        }
    }

    /// The values of its condition.
    pub(super) const fn values(&self) -> &[SymbolId] {
        match &self.condition {
            LabelCondition::In(values) | LabelCondition::NotIn(values) => values,
            LabelCondition::Exists
            | LabelCondition::DoesNotExist
            | LabelCondition::GreaterThan(_)
            | LabelCondition::LessThan(_) => &[],
        }
    }
}

/// A selector: all requirements must match. An empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector(pub Box<[Requirement]>);

impl Selector {
    /// Whether labels match all requirements.
    #[must_use]
    pub fn matches(&self, labels: &Labels, symbols: &SymbolTable) -> bool {
        self.0.iter().all(|it| it.matches(labels, symbols))
    }

    /// Whether there are no requirements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
