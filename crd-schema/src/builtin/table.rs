//! The kinds of Kubernetes with the fields of their types, from a table that `builtin/generate.sh` writes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The table. Its first lines describe the format.
const TEXT: &str = include_str!("../../builtin/kinds.txt");

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(TEXT));

/// The position of a type in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TypeId(usize);

/// The Go type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueType {
    Text,
    Bool,
    Int32,
    Int64,
    Float64,
    /// Bytes, which JSON has in base64.
    Bytes,
    Quantity,
    Time,
    MicroTime,
    Duration,
    IntOrText,
    /// JSON that is stored as it is.
    Any,
    List(Box<Self>),
    Map(Box<Self>),
    /// A pointer in a list or a map, where null stays null.
    Pointer(Box<Self>),
    Struct(TypeId),
}

/// When Go leaves a field out of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Omitted {
    Never,
    /// `omitempty`: false, 0, null, and an empty text, list or map. Never a struct.
    IfEmpty,
    /// `omitzero`: the zero value, also of a struct.
    IfZero,
}

/// A field of a struct.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) value_type: ValueType,
    pub(super) is_pointer: bool,
    pub(super) omitted: Omitted,
}

/// A struct.
#[derive(Debug)]
struct StructType {
    /// Such as `core/v1.Pod`.
    name: &'static str,
    /// Sorted by name.
    fields: Vec<Field>,
}

/// All kinds and types.
#[derive(Debug, Default)]
pub(super) struct Table {
    kinds: BTreeMap<(&'static str, &'static str), TypeId>,
    types: Vec<StructType>,
}

impl Table {
    /// The table of the newest version of Kubernetes. Parsed once, in milliseconds.
    pub(super) fn get() -> &'static Self {
        &TABLE
    }

    /// The type of a kind; the API version is `v1` or `apps/v1`.
    pub(super) fn kind(&self, api_version: &str, kind: &str) -> Option<TypeId> {
        self.kinds.get(&(api_version, kind)).copied()
    }

    /// The fields of a type, sorted by name.
    pub(super) fn fields(&self, id: TypeId) -> &[Field] {
        self.types.get(id.0).map_or(&[], |it| &it.fields)
    }

    /// The name of a type, such as `core/v1.Pod`.
    pub(super) fn type_name(&self, id: TypeId) -> &'static str {
        self.types.get(id.0).map_or("", |it| it.name)
    }

    /// The type with this name.
    #[cfg(test)]
    pub(super) fn find_type(&self, name: &str) -> Option<TypeId> {
        let at = self.types.iter().position(|it| it.name == name)?;
        Some(TypeId(at))
    }

    /// The field of a type with this name.
    pub(super) fn field(&self, id: TypeId, name: &str) -> Option<&Field> {
        let fields = self.fields(id);
        let at = fields.binary_search_by_key(&name, |it| it.name).ok()?;
        fields.get(at)
    }

    fn parse(text: &'static str) -> Self {
        let mut table = Self::default();
        let lines = || text.lines().filter(|it| !it.starts_with('#'));
        let types = lines().filter_map(|it| it.strip_prefix("type "));
        let ids: BTreeMap<&str, TypeId> = types
            .enumerate()
            .map(|(at, name)| (name, TypeId(at)))
            .collect();
        for line in lines() {
            let mut words = line.split_whitespace();
            if line.starts_with(' ') {
                if let (Some(last), Some(field)) =
                    (table.types.last_mut(), parse_field(words, &ids))
                {
                    last.fields.push(field);
                }
                continue;
            }
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some("kind"), Some(api_version), Some(kind), Some(name)) => {
                    if let Some(id) = ids.get(name) {
                        table.kinds.insert((api_version, kind), *id);
                    }
                }
                (Some("type"), Some(name), ..) => table.types.push(StructType {
                    name,
                    fields: Vec::new(),
                }),
                _ => {}
            }
        }
        for one in &mut table.types {
            one.fields.sort_by_key(|it| it.name);
        }
        table
    }
}

fn parse_field<'a>(
    mut words: impl Iterator<Item = &'static str>,
    ids: &BTreeMap<&'a str, TypeId>,
) -> Option<Field> {
    let name = words.next()?;
    let value_type = parse_type(words.next()?, ids)?;
    let flags = words.next().unwrap_or_default();
    Some(Field {
        name,
        value_type,
        is_pointer: flags.contains('*'),
        omitted: if flags.contains('!') {
            Omitted::IfZero
        } else if flags.contains('?') {
            Omitted::IfEmpty
        } else {
            Omitted::Never
        },
    })
}

fn parse_type(text: &str, ids: &BTreeMap<&str, TypeId>) -> Option<ValueType> {
    let below = |rest| parse_type(rest, ids).map(Box::new);
    if let Some(rest) = text.strip_prefix("[]") {
        return below(rest).map(ValueType::List);
    }
    if let Some(rest) = text.strip_prefix("{}") {
        return below(rest).map(ValueType::Map);
    }
    if let Some(rest) = text.strip_prefix('*') {
        return below(rest).map(ValueType::Pointer);
    }
    Some(match text {
        "string" => ValueType::Text,
        "bool" => ValueType::Bool,
        "int32" => ValueType::Int32,
        "int64" => ValueType::Int64,
        "float64" => ValueType::Float64,
        "bytes" => ValueType::Bytes,
        "quantity" => ValueType::Quantity,
        "time" => ValueType::Time,
        "microtime" => ValueType::MicroTime,
        "duration" => ValueType::Duration,
        "intorstring" => ValueType::IntOrText,
        "object" | "any" => ValueType::Any,
        name => ValueType::Struct(*ids.get(name)?),
    })
}

#[cfg(test)]
mod tests {
    use super::{TEXT, Table};

    #[test]
    fn table_is_parsed_completely() {
        let table = Table::get();
        let fields: usize = table.types.iter().map(|it| it.fields.len()).sum();
        let lines = |prefix: &str| TEXT.lines().filter(|it| it.starts_with(prefix)).count();
        assert_eq!(table.kinds.len(), lines("kind "));
        assert_eq!(table.types.len(), lines("type "));
        assert_eq!(fields, lines(" "));
        for (api_version, kind) in [
            ("v1", "Pod"),
            ("apps/v1", "StatefulSet"),
            ("batch/v1", "CronJob"),
            ("autoscaling/v2", "HorizontalPodAutoscaler"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ] {
            assert!(
                table.kind(api_version, kind).is_some(),
                "{api_version} {kind}"
            );
        }
    }
}
