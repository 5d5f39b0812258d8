//! Labels and label selectors.

use crate::ids::{Interner, SymbolId};

/// Interned strings: keys and values of labels and taints, names of namespaces and pods.
#[derive(Clone, Debug, Default)]
pub struct SymbolTable {
    names: Interner,
    /// By symbol id: the value of the string as an integer, if it is one.
    numbers: Vec<Option<i64>>,
}

impl SymbolTable {
    /// The id of a string; a new one if it was not interned before.
    pub fn intern(&mut self, text: &str) -> SymbolId {
        let number = self.names.intern(text);
        let id = SymbolId(number);
        if self.numbers.len() <= id.index() {
            // Parsed once, so that `Gt` and `Lt` need no parsing for each node.
            self.numbers.push(text.parse().ok());
        }
        id
    }

    /// The id of a string that was interned before.
    #[must_use]
    pub fn lookup(&self, text: &str) -> Option<SymbolId> {
        self.names.get(text).map(SymbolId)
    }

    /// The string of an id.
    #[must_use]
    pub fn text(&self, symbol: SymbolId) -> &str {
        self.names.name(symbol.0)
    }

    /// The string as an integer.
    fn number(&self, symbol: SymbolId) -> Option<i64> {
        self.numbers.get(symbol.index()).copied().flatten()
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
