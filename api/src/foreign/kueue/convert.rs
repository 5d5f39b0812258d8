//! Conversion of Kueue's objects to lockkeeper's, with the dropped fields.
//!
//! Every field is either in the converted object or reported as dropped. Fields that are unknown to both projects are
//! kept: the schema of lockkeeper's kind rejects them.

mod dropped_fields;
mod metadata;

use super::{FORMER_VERSION, GROUP, VERSION, upgrade};
use crate::field_path::{FieldPath, unescaped};
use crate::foreign::scheduling::{SYSTEM_PREFIX, USER_PRIORITY_MAX};
use crate::labels;
use serde_json::{Map, Value, json};

/// Kueue's finalizer on objects in use.
const RESOURCE_IN_USE: &str = "kueue.x-k8s.io/resource-in-use";

/// The pointers to the class of a Workload of `v1beta1`.
const PRIORITY_CLASS_SOURCES: [&str; 2] = [
    "kueue.x-k8s.io/workloadpriorityclass",
    "scheduling.k8s.io/priorityclass",
];

/// A field that lockkeeper does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedField {
    /// The field of the source object; the fields below it are dropped as well.
    pub field: FieldPath,
    /// The reason and the remedy.
    pub advice: &'static str,
}

/// A field that has moved, as JSON pointers. The fields below it have moved with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenamedField {
    /// In the source object.
    pub from: String,
    /// In the converted object.
    pub to: String,
}

/// The result of a conversion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KueueConversion {
    /// The converted object; `None` if lockkeeper has no such kind, which one dropped field reports.
    pub object: Option<Value>,
    /// The dropped fields.
    pub dropped: Vec<DroppedField>,
    /// The moved fields.
    pub renamed: Vec<RenamedField>,
}

impl KueueConversion {
    /// The result for an object that cannot be converted.
    fn unconvertible(field: FieldPath, advice: &'static str) -> Self {
        Self {
            object: None,
            dropped: vec![DroppedField { field, advice }],
            renamed: Vec::new(),
        }
    }

    fn drop_field(&mut self, field: FieldPath, advice: &'static str) {
        self.dropped.push(DroppedField { field, advice });
    }

    fn rename_field(&mut self, from: impl Into<String>, to: impl Into<String>) {
        let (from, to) = (from.into(), to.into());
        self.renamed.push(RenamedField { from, to });
    }

    /// The field of the source object for a field of the converted object.
    #[must_use]
    pub fn origin(&self, field: &FieldPath) -> FieldPath {
        let pointer = field.pointer();
        let mut all = self.renamed.iter();
        let from = all.find_map(|name| {
            let below = pointer.strip_prefix(&name.to)?;
            // `/spec/cohortName` begins with `/spec/cohort`, and is not below it.
            let is_below = below.is_empty() || below.starts_with('/');
            is_below.then(|| format!("{}{below}", name.from))
        });
        from.map_or_else(|| field.clone(), |it| path_from_pointer(&it))
    }
}

/// Converts an object of Kueue, or a job or pod with Kueue's labels, to lockkeeper's kinds. `None` for other
/// objects.
#[must_use]
pub fn convert(object: &Value) -> Option<KueueConversion> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let Some((GROUP, version)) = version.split_once('/') else {
        return metadata::convert(object, version, kind);
    };
    if !dropped_fields::CONVERTIBLE_KINDS.contains(&kind) {
        let advice = dropped_fields::kind_advice(kind);
        return Some(KueueConversion::unconvertible(
            FieldPath::new("kind"),
            advice,
        ));
    }
    if ![VERSION, FORMER_VERSION].contains(&version) {
        let advice = "only v1beta1 and v1beta2 are converted; let Kueue convert it first";
        return Some(KueueConversion::unconvertible(
            FieldPath::new("apiVersion"),
            advice,
        ));
    }
    if kind == "WorkloadPriorityClass"
        && let Some((field, advice)) = priority_class_obstacle(object)
    {
        return Some(KueueConversion::unconvertible(field, advice));
    }
    let mut out = KueueConversion::default();
    let mut object = object.clone();
    for (of, place, advice) in dropped_fields::FIELDS {
        if of.is_empty() || *of == kind {
            let steps: Vec<&str> = place.split('/').skip(1).collect();
            remove_field(&mut object, &steps, FieldPath::default(), advice, &mut out);
        }
    }
    match kind {
        "Workload" => convert_priority_class(&mut object, version, &mut out),
        "ClusterQueue" => {
            for field in upgrade(&mut object) {
                out.rename_field(field.from, field.to);
            }
        }
        _ => {}
    }
    convert_finalizer(&mut object);
    metadata::remove_kueue_names(&mut object, &mut out);
    if let Some(fields) = object.as_object_mut() {
        let version = if kind == "WorkloadPriorityClass" {
            fields.insert("kind".to_owned(), json!("PriorityClass"));
            "scheduling.k8s.io/v1".to_owned()
        } else {
            format!("{}/{}", crate::GROUP, crate::VERSION)
        };
        fields.insert("apiVersion".to_owned(), Value::from(version));
    }
    out.object = Some(object);
    Some(out)
}

/// The reason why a `WorkloadPriorityClass` cannot become a PriorityClass.
fn priority_class_obstacle(object: &Value) -> Option<(FieldPath, &'static str)> {
    let value = object.get("value").and_then(Value::as_i64);
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    if value.is_some_and(|it| it > i64::from(USER_PRIORITY_MAX)) {
        let advice =
            "a PriorityClass has a value of at most 1000000000; give all classes smaller values";
        return Some((FieldPath::new("value"), advice));
    }
    name.filter(|it| it.starts_with(SYSTEM_PREFIX)).map(|_| {
        let advice =
            "the names of Kubernetes' own PriorityClasses begin so; give the class another name";
        (FieldPath::new("metadata.name"), advice)
    })
}

/// Converts the class of a Workload: a reference in `v1beta2`, a name and the kind of the class in `v1beta1`.
fn convert_priority_class(object: &mut Value, version: &str, out: &mut KueueConversion) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if version == FORMER_VERSION {
        let source = spec.remove("priorityClassSource");
        let source = source.as_ref().and_then(Value::as_str);
        let is_class = source.is_some_and(|it| PRIORITY_CLASS_SOURCES.contains(&it));
        // Without a valid source Kueue's conversion to v1beta2 drops the name.
        if !is_class
            && spec
                .remove("priorityClassName")
                .is_some_and(|it| has_content(&it))
        {
            let advice = "Kueue takes no notice of it without priorityClassSource; remove it";
            out.drop_field(FieldPath::new("spec.priorityClassName"), advice);
        }
        return;
    }
    let Some(class) = spec.remove("priorityClassRef") else {
        return;
    };
    let name = class.get("name").filter(|it| has_content(it));
    let known = class.as_object().filter(|class| {
        let mut names = class.keys().map(String::as_str);
        names.all(|it| ["group", "kind", "name"].contains(&it))
    });
    match (known, name) {
        (Some(_), Some(name)) => {
            spec.insert("priorityClassName".to_owned(), name.clone());
            out.rename_field("/spec/priorityClassRef/name", "/spec/priorityClassName");
        }
        _ if has_content(&class) => {
            let advice = "it is no reference to a class; name one";
            out.drop_field(FieldPath::new("spec.priorityClassRef"), advice);
        }
        _ => {}
    }
}

/// Replaces Kueue's finalizer by lockkeeper's.
fn convert_finalizer(object: &mut Value) {
    let all = object.pointer_mut("/metadata/finalizers");
    for item in all.and_then(Value::as_array_mut).into_iter().flatten() {
        if item.as_str() == Some(RESOURCE_IN_USE) {
            *item = Value::from(labels::RESOURCE_IN_USE);
        }
    }
}

/// Removes the value at a pointer, in which `*` is any item of a list.
fn remove_field(
    value: &mut Value,
    steps: &[&str],
    at: FieldPath,
    advice: &'static str,
    out: &mut KueueConversion,
) {
    match (steps, value) {
        ([name], Value::Object(fields)) => match fields.remove(*name) {
            // An empty value is removed without a report: no data is lost.
            Some(value) if has_content(&value) => out.drop_field(at.named(*name), advice),
            _ => {}
        },
        (["*", rest @ ..], Value::Array(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                remove_field(item, rest, at.clone().index(index), advice, out);
            }
        }
        ([name, rest @ ..], Value::Object(fields)) => {
            if let Some(value) = fields.get_mut(*name) {
                remove_field(value, rest, at.named(*name), advice, out);
            }
        }
        _ => {}
    }
}

/// Whether the value is not empty, so that dropping it loses data.
fn has_content(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => items.iter().any(has_content),
        Value::Object(fields) => fields.values().any(has_content),
        _ => true,
    }
}

/// The path of a JSON pointer.
fn path_from_pointer(pointer: &str) -> FieldPath {
    let mut steps = pointer.split('/').skip(1).map(unescaped);
    let mut path = FieldPath::default();
    while let Some(step) = steps.next() {
        path = match step.parse() {
            Ok(index) => path.index(index),
            // Keys of maps are printed in brackets: `metadata.labels[a/b]`.
            Err(_) if step == "labels" || step == "annotations" => {
                let name = steps.next();
                let path = path.named(step);
                name.into_iter().fold(path, FieldPath::key)
            }
            Err(_) => path.named(step),
        };
    }
    path
}

/// The entries of a map whose values are maps.
fn fields_of<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    value.get_mut(name)?.as_object_mut()
}

#[cfg(test)]
mod tests;
