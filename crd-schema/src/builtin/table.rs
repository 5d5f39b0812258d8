//! The fields of all built-in kinds of a release, from the tables that `builtin/generate.sh` writes.

mod kind_index;
mod text;

use super::lifecycle::Lifecycle;
use super::release::Release;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

pub(super) use kind_index::KindIndex;

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Bool,
    Int32,
    Int64,
    Float,
    /// Bytes in base64.
    Bytes,
    Quantity,
    Time,
    MicroTime,
    Duration,
    IntOrString,
    /// Any JSON, which is not decoded further.
    Any,
    List(Box<Type>),
    Map(Box<Type>),
    /// A pointer in a list or a map.
    Pointer(Box<Type>),
    /// The name of a definition.
    Struct(&'static str),
}

/// A field of a definition.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) kind: Type,
    /// Whether the field is set if its value is zero.
    pub(super) is_pointer: bool,
    /// Whether the stored form omits the field if it is empty.
    pub(super) omits: Omission,
}

/// When the stored form omits a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Omission {
    Never,
    /// Go's `omitempty`, which omits no structs.
    Empty,
    /// Go's `omitzero`.
    Zero,
}

/// The fields of a type by name.
pub(super) type Definition = BTreeMap<&'static str, Field>;

/// All kinds and types of a release.
pub(super) struct Table {
    release: Release,
    /// The types of kinds, by `apiVersion` and kind.
    kinds: BTreeMap<&'static str, BTreeMap<&'static str, (&'static str, Lifecycle)>>,
    definitions: BTreeMap<&'static str, Definition>,
}

impl Table {
    /// The table of the newest release, parsed once.
    pub(super) fn newest() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| Self::parse(Release::NEWEST))
    }

    /// The table of a release, parsed once; `None` if the release is not supported.
    pub(super) fn of(release: Release) -> Option<&'static Self> {
        static TABLES: [OnceLock<Table>; Release::SUPPORTED.len()] =
            [const { OnceLock::new() }; Release::SUPPORTED.len()];
        if release == Release::NEWEST {
            return Some(Self::newest());
        }
        let mut tables = Release::SUPPORTED.into_iter().zip(&TABLES);
        let (_, table) = tables.find(|it| it.0 == release)?;
        Some(table.get_or_init(|| Self::parse(release)))
    }

    fn parse(release: Release) -> Self {
        let mut out = Self {
            release,
            kinds: BTreeMap::new(),
            definitions: BTreeMap::new(),
        };
        let mut current = "";
        for line in text::lines(release) {
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next()) {
                (Some("kind"), Some(api_version), Some(kind)) => {
                    let definition = words.next().unwrap_or_default();
                    let kinds = out.kinds.entry(api_version).or_default();
                    kinds.insert(kind, (definition, Lifecycle::parse(words)));
                }
                (Some("-kind"), Some(api_version), Some(kind)) => {
                    if let Some(kinds) = out.kinds.get_mut(api_version) {
                        kinds.remove(kind);
                    }
                }
                (Some("type"), Some(name), None) => {
                    current = name;
                    out.definitions.entry(name).or_default();
                }
                (Some("-type"), Some(name), None) => {
                    out.definitions.remove(name);
                }
                (Some(""), Some(name), kind) => {
                    let flags = words.next().unwrap_or_default();
                    if let Some(definition) = out.definitions.get_mut(current) {
                        change_field(definition, name, kind, flags);
                    }
                }
                _ => {}
            }
        }
        for kinds in out.kinds.values_mut() {
            kinds.retain(|_, (_, lifecycle)| lifecycle.has_begun(release));
        }
        out
    }

    /// The release.
    pub(super) fn release(&self) -> Release {
        self.release
    }

    /// A kind by `apiVersion` and name: both from the table, and the name of its type.
    pub(super) fn kind(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Option<(&'static str, &'static str, &'static str)> {
        let (api_version, kinds) = self.kinds.get_key_value(api_version)?;
        let (kind, (definition, _)) = kinds.get_key_value(kind)?;
        Some((*api_version, *kind, *definition))
    }

    /// All kinds: `apiVersion` and name.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        let kinds = self.kinds.iter();
        kinds.flat_map(|(version, kinds)| kinds.keys().map(|kind| (*version, *kind)))
    }

    /// The values of `apiVersion` with a kind of this name.
    pub(super) fn versions<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'static str> + 'a {
        self.kinds().filter(move |it| it.1 == kind).map(|it| it.0)
    }

    /// The releases that serve a kind.
    pub(super) fn lifecycle(&self, api_version: &str, kind: &str) -> Lifecycle {
        let kinds = self.kinds.get(api_version);
        let kind = kinds.and_then(|it| it.get(kind));
        kind.map_or_else(Lifecycle::default, |it| it.1)
    }

    /// The fields of a type.
    pub(super) fn definition(&self, name: &str) -> &Definition {
        static EMPTY: Definition = Definition::new();
        self.definitions.get(name).unwrap_or(&EMPTY)
    }

    /// The newer releases in which a type has a field, the oldest first. They are parsed on first use.
    pub(super) fn later_releases(&self, definition: &str, field: &str) -> Vec<Release> {
        let later = Release::SUPPORTED
            .into_iter()
            .filter(|it| *it > self.release);
        let has_field = |it: &Self| it.definition(definition).contains_key(field);
        later
            .filter(|it| Self::of(*it).is_some_and(has_field))
            .collect()
    }
}

/// Two tables of the same release are equal.
impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.release == other.release
    }
}

impl Eq for Table {}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Table").field(&self.release).finish()
    }
}

/// Adds, replaces or removes a field of a type.
fn change_field(
    definition: &mut Definition,
    name: &'static str,
    kind: Option<&'static str>,
    flags: &str,
) {
    match (kind, name.strip_prefix('-')) {
        (Some(kind), _) => {
            definition.insert(name, field(kind, flags));
        }
        (None, Some(removed)) => {
            definition.remove(removed);
        }
        (None, None) => {}
    }
}

fn field(kind: &'static str, flags: &str) -> Field {
    let omits = match flags {
        _ if flags.contains('!') => Omission::Zero,
        _ if flags.contains('?') => Omission::Empty,
        _ => Omission::Never,
    };
    Field {
        kind: type_of(kind),
        is_pointer: flags.starts_with('*'),
        omits,
    }
}

fn type_of(text: &'static str) -> Type {
    if let Some(item) = text.strip_prefix("[]") {
        return Type::List(Box::new(type_of(item)));
    }
    if let Some(item) = text.strip_prefix("{}") {
        return Type::Map(Box::new(type_of(item)));
    }
    if let Some(item) = text.strip_prefix('*') {
        return Type::Pointer(Box::new(type_of(item)));
    }
    match text {
        "string" => Type::Text,
        "bool" => Type::Bool,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "float64" => Type::Float,
        "bytes" => Type::Bytes,
        "quantity" => Type::Quantity,
        "time" => Type::Time,
        "microtime" => Type::MicroTime,
        "duration" => Type::Duration,
        "intorstring" => Type::IntOrString,
        "any" | "object" => Type::Any,
        name => Type::Struct(name),
    }
}

#[cfg(test)]
mod tests;
