//! Places of a schema, as people write them.

use serde::{Serialize, Serializer};
use std::fmt;

/// A place, such as `spec.resourceGroups[].flavors[].name` or `spec.labels[*]`; the top is `(root)`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Field(String),
    Items,
    Entries,
}

impl SchemaPath {
    /// One of its fields.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        self.step(Step::Field(name.to_owned()))
    }

    /// Its items.
    #[must_use]
    pub fn items(&self) -> Self {
        self.step(Step::Items)
    }

    /// Its entries, whose names are free.
    #[must_use]
    pub fn entries(&self) -> Self {
        self.step(Step::Entries)
    }

    /// Whether it is the top.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    fn step(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

impl fmt::Display for SchemaPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str("(root)");
        }
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if index == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Items => f.write_str("[]")?,
                Step::Entries => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

impl Serialize for SchemaPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
