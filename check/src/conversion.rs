//! Kueue's objects, converted to lockkeeper's kinds before they are checked.

use crate::document::{Document, Identity, Origin};
use crate::source::ParsedSource;
use lockkeeper_api::foreign::kueue;
use lockkeeper_policies::lossy_conversion;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const PRIORITY_CLASS_KIND: &str = "WorkloadPriorityClass";

/// An object that cannot be written as YAML.
pub type YamlError = serde_saphyr::ser::Error;

type YamlResult = Result<String, YamlError>;

/// Converts objects of Kueue; off by default.
#[derive(Clone, Debug, Default)]
pub struct Converter {
    is_on: bool,
    is_collected: bool,
    /// Names of `WorkloadPriorityClasses` that PriorityClasses with another value have.
    conflicting_classes: BTreeSet<String>,
}

impl Converter {
    /// A converter that converts Kueue's objects, and renders the results as YAML if `is_collected`.
    #[must_use]
    pub fn new(is_on: bool, is_collected: bool) -> Self {
        Self {
            is_on,
            is_collected,
            conflicting_classes: BTreeSet::new(),
        }
    }

    /// Whether objects are converted.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Converts all objects of a file.
    #[must_use]
    pub fn convert_source(&self, mut source: ParsedSource) -> ParsedSource {
        for document in &mut source.documents {
            self.convert(document);
        }
        source
    }

    /// Converts an object of Kueue.
    pub fn convert(&self, document: &mut Document) {
        if !self.is_on {
            return;
        }
        let Some(mut converted) = kueue::convert(&document.value) else {
            return;
        };
        let identity = Identity::from_object(&document.value);
        let object = converted.object.take();
        document.origin = Some(Box::new(Origin {
            identity,
            lost_fields: converted
                .dropped
                .iter()
                .map(lossy_conversion::dropped_field)
                .collect(),
            is_dropped: object.is_none(),
            converted,
        }));
        if let Some(object) = object {
            document.value = object;
        }
    }

    /// Sets the names that cannot be converted. Requires that all objects are collected.
    pub fn set_conflicts(&mut self, classes: &PriorityClassValues) {
        self.conflicting_classes = classes.conflicts();
    }

    /// Drops the classes of a file that cannot be converted.
    #[must_use]
    pub fn drop_conflicting_classes(&self, mut source: ParsedSource) -> ParsedSource {
        for document in &mut source.documents {
            self.drop_if_conflicting(document);
        }
        source
    }

    /// Drops a class whose name a PriorityClass with another value has.
    pub fn drop_if_conflicting(&self, document: &mut Document) {
        if let Some(origin) = &mut document.origin
            && origin.identity.kind == PRIORITY_CLASS_KIND
            && !origin.is_dropped
            && self.conflicting_classes.contains(&origin.identity.name)
        {
            // Both classes would become the same object.
            origin.is_dropped = true;
            origin.lost_fields.push(lossy_conversion::name_conflict());
        }
    }

    /// The converted objects of a file as YAML; empty unless they are collected.
    ///
    /// # Errors
    ///
    /// An object cannot be serialized.
    pub fn yaml(&self, source: &ParsedSource) -> YamlResult {
        let mut out = String::new();
        for document in source.documents.iter().filter(|_| self.is_collected) {
            out.push_str(&self.document_yaml(document)?);
        }
        Ok(out)
    }

    /// Like [`Self::yaml`], for one object.
    ///
    /// # Errors
    ///
    /// The object cannot be serialized.
    pub fn document_yaml(&self, document: &Document) -> YamlResult {
        match document.object() {
            Some(object) if document.origin.is_some() && self.is_collected => {
                Ok(format!("---\n{}", serde_saphyr::to_string(object)?))
            }
            _ => Ok(String::new()),
        }
    }
}

/// Appends the YAML of a file. The first error wins.
pub fn append_yaml(all: &mut YamlResult, yaml: YamlResult) {
    match (&mut *all, yaml) {
        (Ok(all), Ok(yaml)) => all.push_str(&yaml),
        (Ok(_), Err(error)) => *all = Err(error),
        (Err(_), _) => {}
    }
}

/// The values of the priority classes of both projects, by name.
#[derive(Default)]
pub struct PriorityClassValues {
    kubernetes: BTreeMap<String, BTreeSet<i64>>,
    kueue: BTreeMap<String, BTreeSet<i64>>,
}

impl PriorityClassValues {
    /// Adds the object if it is a priority class (after conversion).
    pub fn add_document(&mut self, document: &Document) {
        let Some(value) = document.object().and_then(|it| it.get("value")) else {
            return;
        };
        let identity = Identity::from_object(&document.value);
        if identity.kind != "PriorityClass"
            || !identity.api_version.starts_with("scheduling.k8s.io/")
        {
            return;
        }
        // Only a converted class has an origin: it was a WorkloadPriorityClass of Kueue.
        let all = if document.origin.is_some() {
            &mut self.kueue
        } else {
            &mut self.kubernetes
        };
        let values = all.entry(identity.name).or_default();
        values.extend(value.as_i64());
    }

    /// Adds the classes of another collection.
    pub fn merge(&mut self, other: Self) {
        for (mine, theirs) in [
            (&mut self.kubernetes, other.kubernetes),
            (&mut self.kueue, other.kueue),
        ] {
            for (name, values) in theirs {
                mine.entry(name).or_default().extend(values);
            }
        }
    }

    /// The names whose values differ between the projects.
    fn conflicts(&self) -> BTreeSet<String> {
        let both = self.kueue.iter().filter(|(name, values)| {
            let others = self.kubernetes.get(*name);
            others.is_some_and(|others| others != *values)
        });
        both.map(|(name, _)| name.clone()).collect()
    }
}

/// A document of a single object, converted if the converter is on.
#[must_use]
pub fn convert_value(converter: &Converter, value: Value) -> Document {
    let mut document = Document {
        number: 0,
        pointer: String::new(),
        value,
        origin: None,
        is_patch: false,
    };
    converter.convert(&mut document);
    document
}
