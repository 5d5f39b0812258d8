//! Labels, and what selects by them.

use crate::ids::{Interner, SymbolId};

/// Words and their numbers: keys and values of labels and taints, names of namespaces and pods.
#[derive(Clone, Debug, Default)]
pub struct SymbolTable {
    names: Interner,
    /// By number: the word read as a whole number, if it is one.
    numbers: Vec<Option<i64>>,
}

impl SymbolTable {
    /// The number of a word, a new one if it was not known.
    pub fn intern(&mut self, word: &str) -> SymbolId {
        let number = self.names.intern(word);
        let id = SymbolId(number);
        if self.numbers.len() <= id.index() {
            self.numbers.push(word.parse().ok());
        }
        id
    }

    /// The number of a word that was seen before.
    #[must_use]
    pub fn lookup(&self, word: &str) -> Option<SymbolId> {
        self.names.get(word).map(SymbolId)
    }

    /// The word.
    #[must_use]
    pub fn text(&self, word: SymbolId) -> &str {
        self.names.name(word.0)
    }

    /// The word as a whole number.
    fn number(&self, word: SymbolId) -> Option<i64> {
        self.numbers.get(word.index()).copied().flatten()
    }
}

/// Labels, sorted by the number of the key. A key that is given twice has its last value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels(Box<[(SymbolId, SymbolId)]>);

impl Labels {
    /// Of pairs of key and value.
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

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What a value must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LabelCondition {
    /// One of these; it must be there.
    In(Box<[SymbolId]>),
    /// None of these, or not there.
    NotIn(Box<[SymbolId]>),
    /// There, whatever it is.
    Exists,
    /// Not there.
    DoesNotExist,
    /// A whole number above this one.
    GreaterThan(i64),
    /// A whole number below this one.
    LessThan(i64),
}

/// A condition on the value of one key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// The key.
    pub key: SymbolId,
    /// What its value must be.
    pub condition: LabelCondition,
}

impl Requirement {
    /// Whether labels meet it. Source: apimachinery `labels.Requirement.Matches`.
    #[must_use]
    pub fn matches(&self, labels: &Labels, words: &SymbolTable) -> bool {
        let value = labels.get(self.key);
        let number = || value.and_then(|it| words.number(it));
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

/// Requirements, all of which must be met. One without any selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector(pub Box<[Requirement]>);

impl Selector {
    /// Whether labels meet all of them.
    #[must_use]
    pub fn matches(&self, labels: &Labels, words: &SymbolTable) -> bool {
        self.0.iter().all(|it| it.matches(labels, words))
    }

    /// True if it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
