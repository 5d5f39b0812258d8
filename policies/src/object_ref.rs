//! References to objects, and the objects that hold them.

use std::collections::BTreeSet;
use std::fmt;

/// The namespace and name of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName {
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return f.write_str(&self.name);
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The objects that use another one: their number, and some of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Referrers {
    /// Their number.
    pub total: usize,
    /// The first by namespace and name, up to the limit of the lookup.
    pub first: Vec<ObjectName>,
}

impl Referrers {
    /// The number of these, and the first up to the limit.
    pub(crate) fn from_set(all: Option<&BTreeSet<ObjectName>>, limit: usize) -> Self {
        all.map_or_else(Self::default, |all| Self {
            total: all.len(),
            first: all.iter().take(limit).cloned().collect(),
        })
    }
}
