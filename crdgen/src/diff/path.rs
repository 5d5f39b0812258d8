//! Paths in a schema.

use serde::{Serialize, Serializer};
use std::fmt;

/// A path, such as `spec.resourceGroups[].flavors[].name` or `spec.labels[*]`; the top is `(root)`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Field(String),
    Items,
    Entries,
}

impl SchemaPath {
    /// The path of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        self.step(Step::Field(name.to_owned()))
    }

    /// The path of the items.
    #[must_use]
    pub fn items(&self) -> Self {
        self.step(Step::Items)
    }

    /// The path of the entries with any name.
    #[must_use]
    pub fn entries(&self) -> Self {
        self.step(Step::Entries)
    }

    /// Whether it is the root.
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
