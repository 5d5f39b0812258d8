//! The fields of all built-in kinds, from the table that `builtin/generate.sh` writes.

use super::lifecycle::Lifecycle;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The table as text: 171 kinds of Kubernetes 1.37.
pub(super) const TEXT: &str = include_str!("../../builtin/kinds.txt");

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

/// All kinds and types.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The types of kinds, by `apiVersion` and kind.
    kinds: BTreeMap<&'static str, BTreeMap<&'static str, (&'static str, Lifecycle)>>,
    definitions: BTreeMap<&'static str, Definition>,
}

impl Table {
    /// The table of the supported version of Kubernetes, parsed once.
    pub(super) fn get() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| Self::parse(TEXT))
    }

    fn parse(text: &'static str) -> Self {
        let mut out = Self::default();
        let mut current = "";
        for line in text.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next()) {
                (Some("kind"), Some(api_version), Some(kind)) => {
                    let definition = words.next().unwrap_or_default();
                    let kinds = out.kinds.entry(api_version).or_default();
                    kinds.insert(kind, (definition, Lifecycle::parse(words)));
                }
                (Some("type"), Some(name), None) => {
                    current = name;
                    out.definitions.insert(name, Definition::new());
                }
                (Some(""), Some(name), Some(kind)) => {
                    let field = field(kind, words.next().unwrap_or_default());
                    if let Some(definition) = out.definitions.get_mut(current) {
                        definition.insert(name, field);
                    }
                }
                _ => {}
            }
        }
        out
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
mod tests {
    use super::{TEXT, Table, Type};

    /// The kinds that the recorded answers of an API server cover.
    const RECORDED: [(&str, &str); 21] = [
        (
            "admissionregistration.k8s.io/v1",
            "MutatingWebhookConfiguration",
        ),
        (
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
        ),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("batch/v1", "CronJob"),
        ("batch/v1", "Job"),
        ("networking.k8s.io/v1", "Ingress"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("policy/v1", "PodDisruptionBudget"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("v1", "ConfigMap"),
        ("v1", "PersistentVolumeClaim"),
        ("v1", "Pod"),
        ("v1", "Secret"),
        ("v1", "Service"),
        ("v1", "ServiceAccount"),
    ];

    /// `builtin/generate.sh` writes the table from the Go types of `k8s.io/api`; no Go is needed for this test.
    #[test]
    fn table_has_all_recorded_kinds_and_every_type() {
        let table = Table::get();
        for (api_version, kind) in RECORDED {
            let (_, _, definition) = table.kind(api_version, kind).unwrap();
            assert!(table.definition(definition).contains_key("metadata"));
        }
        let kinds = table.kinds.values().map(std::collections::BTreeMap::len);
        assert_eq!(kinds.sum::<usize>(), 171);
        let fields = table.definitions.values().flat_map(|it| it.values());
        let mut count = 0;
        for field in fields {
            let mut kind = &field.kind;
            while let Type::List(item) | Type::Map(item) | Type::Pointer(item) = kind {
                kind = item;
            }
            if let Type::Struct(name) = kind {
                assert!(table.definitions.contains_key(name), "{name}");
            }
            count += 1;
        }
        // All lines are kinds, types or fields; four are comments.
        let lines = TEXT.lines().count();
        assert_eq!(lines, 4 + 171 + table.definitions.len() + count);
    }
}
