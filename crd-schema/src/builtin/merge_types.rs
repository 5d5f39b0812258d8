//! How the lists and maps of built-in kinds are merged, from the table that `builtin/generate.sh` writes.

use super::kind::BuiltInKind;
use super::table::{Table, Type};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The table as text.
const TEXT: &str = include_str!("../../builtin/merge.txt");

/// How a list or map is merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The new value replaces the old one.
    Atomic,
    /// Maps: by their keys.
    Merged,
    /// Lists: the union of the values.
    Set,
    /// Lists: by these fields of the items.
    Keys(Vec<String>),
}

/// The type of a value of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuiltInType {
    table: &'static Table,
    kind: &'static Type,
    /// The word of the field in the table.
    relation: Option<&'static str>,
}

/// The words of the table by type and field.
type Words = BTreeMap<(&'static str, &'static str), &'static str>;

fn words() -> &'static Words {
    static WORDS: OnceLock<Words> = OnceLock::new();
    WORDS.get_or_init(|| {
        let lines = TEXT.lines().filter(|it| !it.starts_with('#'));
        let words = lines.filter_map(|line| {
            let mut words = line.split(' ');
            Some(((words.next()?, words.next()?), words.next()?))
        });
        words.collect()
    })
}

fn field_of(table: &'static Table, definition: &str, name: &str) -> Option<BuiltInType> {
    let (name, field) = table.definition(definition).get_key_value(name)?;
    let word = words().iter().find(|it| *it.0 == (definition, *name));
    Some(BuiltInType {
        table,
        kind: &field.kind,
        relation: word.map(|it| *it.1),
    })
}

impl BuiltInType {
    /// The type of a field of an object of a kind; `None` if the kind has no such field.
    pub(crate) fn of_field(kind: &BuiltInKind, name: &str) -> Option<Self> {
        field_of(kind.table, kind.definition, name)
    }

    /// The type of a field or of a value of a map; `None` if the type has no such field.
    pub(crate) fn field(self, name: &str) -> Option<Self> {
        match self.target() {
            Type::Struct(definition) => field_of(self.table, definition, name),
            Type::Map(value) => Some(Self {
                kind: value,
                relation: None,
                ..self
            }),
            _ => None,
        }
    }

    /// The type of the items of a list.
    pub(crate) fn items(self) -> Option<Self> {
        match self.target() {
            Type::List(item) => Some(Self {
                kind: item,
                relation: None,
                ..self
            }),
            _ => None,
        }
    }

    /// How values of the type are merged.
    pub(crate) fn relation(self) -> Relation {
        let own = match self.target() {
            Type::Struct(name) => words().get(&(*name, ".")).copied(),
            _ => None,
        };
        match (own.or(self.relation), self.target()) {
            (Some("atomic"), _) => Relation::Atomic,
            (Some("set"), _) => Relation::Set,
            (Some(keys), _) => Relation::Keys(keys.split(',').map(str::to_owned).collect()),
            (None, Type::Struct(_) | Type::Map(_)) => Relation::Merged,
            (None, _) => Relation::Atomic,
        }
    }

    /// Whether the type has any value, such as an embedded object.
    pub(crate) fn is_any(self) -> bool {
        matches!(self.target(), Type::Any)
    }

    fn target(self) -> &'static Type {
        let mut kind = self.kind;
        while let Type::Pointer(target) = kind {
            kind = target;
        }
        kind
    }
}

#[cfg(test)]
mod tests {
    use super::{BuiltInKind, BuiltInType, Relation, words};
    use crate::builtin::table::Table;

    #[test]
    fn relations_are_those_of_the_table() {
        let pod = BuiltInKind::find("v1", "Pod").unwrap();
        let spec = BuiltInType::of_field(&pod, "spec").unwrap();
        assert_eq!(spec.relation(), Relation::Merged);
        let containers = spec.field("containers").unwrap();
        assert_eq!(
            containers.relation(),
            Relation::Keys(vec!["name".to_owned()])
        );
        let container = containers.items().unwrap();
        assert_eq!(
            container.field("args").unwrap().relation(),
            Relation::Atomic
        );
        assert_eq!(
            spec.field("nodeSelector").unwrap().relation(),
            Relation::Atomic
        );
        let metadata = BuiltInType::of_field(&pod, "metadata").unwrap();
        assert_eq!(
            metadata.field("labels").unwrap().relation(),
            Relation::Merged
        );
        assert_eq!(
            metadata.field("finalizers").unwrap().relation(),
            Relation::Set
        );
        assert!(spec.field("none").is_none());
        // Every type of the table that objects have has the field.
        for (definition, field) in words().keys() {
            let fields = Table::newest().definition(definition);
            assert!(
                fields.is_empty() || *field == "." || fields.contains_key(field),
                "{definition} {field}"
            );
        }
    }
}
