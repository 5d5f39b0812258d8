//! `--as`: Kueue's objects, judged as lockkeeper's.

use super::source::{Document, Identity, Input, ParsedSource, ReadError};
use crate::Failure;
use anyhow::{Context, Error};
use clap::{Args, ValueEnum};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::{self, KueueConversion};
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::lossy_conversion;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

const PRIORITY_CLASS_KIND: &str = "WorkloadPriorityClass";

/// Whose kinds objects are judged as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Group {
    /// Lockkeeper's
    #[value(name = "lockkeeper.dev")]
    Lockkeeper,
}

/// The flags.
#[derive(Args, Debug)]
pub(super) struct ConversionArguments {
    /// Judge Kueue's objects, and jobs and pods with its labels, as the kinds of this API group, and name what is lost
    #[arg(long = "as", value_enum, value_name = "GROUP")]
    group: Option<Group>,

    /// Where what came out is written, as YAML; `-` is standard output, in place of all else
    #[arg(long, value_name = "FILE", requires = "group")]
    converted: Option<PathBuf>,
}

impl ConversionArguments {
    pub(super) fn converter(&self) -> Converter {
        Converter {
            is_on: self.group.is_some(),
            is_collected: self.converted.is_some(),
            conflicting_classes: BTreeSet::new(),
        }
    }

    /// Whether what came out is all that is printed.
    pub(super) fn is_stdout(&self) -> bool {
        self.converted.as_deref() == Some(Path::new("-"))
    }

    /// Writes what came out, if that is wanted.
    pub(super) fn write(&self, yaml: &str, out: &mut impl Write) -> Result<(), Failure> {
        match &self.converted {
            None => {}
            Some(_) if self.is_stdout() => {
                out.write_all(yaml.as_bytes())?;
                out.flush()?;
            }
            Some(path) => fs::write(path, yaml)
                .with_context(|| format!("cannot write {}", path.display()))
                .map_err(Failure::Usage)?,
        }
        Ok(())
    }
}

/// What an object was before it was converted.
pub(super) struct Origin {
    pub(super) identity: Identity,
    pub(super) lost_fields: Vec<Finding>,
    /// Nothing came out.
    pub(super) is_dropped: bool,
    converted: KueueConversion,
}

impl Origin {
    /// Where in the object that was given a field of what came out stands.
    pub(super) fn source_field(&self, field: &FieldPath) -> FieldPath {
        self.converted.origin(field)
    }
}

/// Converts objects, or leaves them as they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Converter {
    is_on: bool,
    is_collected: bool,
    /// Names of Kueue's classes that other classes have.
    conflicting_classes: BTreeSet<String>,
}

impl Converter {
    /// Whether anything is converted.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Reads and parses an input.
    pub(super) fn read(&self, input: &Input) -> Result<ParsedSource, ReadError> {
        let mut source = input.read()?;
        for document in &mut source.documents {
            self.convert(document);
        }
        Ok(source)
    }

    /// Converts an object, if that is asked for and it is of Kueue.
    pub(super) fn convert(&self, document: &mut Document) {
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

    /// Remembers which classes cannot be converted, once all are known.
    pub(super) fn set_conflicts(&mut self, classes: &PriorityClassValues) {
        self.conflicting_classes = classes.conflicts();
    }

    /// The source, without the classes that cannot be converted.
    pub(super) fn drop_conflicting_classes(&self, mut source: ParsedSource) -> ParsedSource {
        for document in &mut source.documents {
            self.drop_if_conflicting(document);
        }
        source
    }

    /// Nothing comes out of a class whose name is taken.
    pub(super) fn drop_if_conflicting(&self, document: &mut Document) {
        if let Some(origin) = &mut document.origin
            && origin.identity.kind == PRIORITY_CLASS_KIND
            && !origin.is_dropped
            && self.conflicting_classes.contains(&origin.identity.name)
        {
            origin.is_dropped = true;
            origin.lost_fields.push(lossy_conversion::name_conflict());
        }
    }

    /// What came out of a file, as YAML; nothing if nobody wants it.
    pub(super) fn yaml(&self, source: &ParsedSource) -> Result<String, Error> {
        let mut out = String::new();
        for document in source.documents.iter().filter(|_| self.is_collected) {
            out.push_str(&self.document_yaml(document)?);
        }
        Ok(out)
    }

    /// The same for one object.
    pub(super) fn document_yaml(&self, document: &Document) -> Result<String, Error> {
        match document.object() {
            Some(object) if document.origin.is_some() && self.is_collected => {
                Ok(format!("---\n{}", serde_saphyr::to_string(object)?))
            }
            _ => Ok(String::new()),
        }
    }
}

/// Adds what came out of a file to what came out before. The first error counts.
pub(super) fn append_yaml(all: &mut Result<String, Error>, yaml: Result<String, Error>) {
    match (&mut *all, yaml) {
        (Ok(all), Ok(yaml)) => all.push_str(&yaml),
        (Ok(_), Err(error)) => *all = Err(error),
        (Err(_), _) => {}
    }
}

/// The classes of both projects, by name.
#[derive(Default)]
pub(super) struct PriorityClassValues {
    kubernetes: BTreeMap<String, BTreeSet<i64>>,
    kueue: BTreeMap<String, BTreeSet<i64>>,
}

impl PriorityClassValues {
    pub(super) fn add_document(&mut self, document: &Document) {
        let Some(value) = document.object().and_then(|it| it.get("value")) else {
            return;
        };
        let identity = Identity::from_object(&document.value);
        if identity.kind != "PriorityClass"
            || !identity.api_version.starts_with("scheduling.k8s.io/")
        {
            return;
        }
        let all = if document.origin.is_some() {
            &mut self.kueue
        } else {
            &mut self.kubernetes
        };
        let values = all.entry(identity.name).or_default();
        values.extend(value.as_i64());
    }

    /// Takes over what another one has.
    pub(super) fn merge(&mut self, other: Self) {
        for (mine, theirs) in [
            (&mut self.kubernetes, other.kubernetes),
            (&mut self.kueue, other.kueue),
        ] {
            for (name, values) in theirs {
                mine.entry(name).or_default().extend(values);
            }
        }
    }

    /// The names that stand for different values.
    fn conflicts(&self) -> BTreeSet<String> {
        let both = self.kueue.iter().filter(|(name, values)| {
            let others = self.kubernetes.get(*name);
            others.is_some_and(|others| others != *values)
        });
        both.map(|(name, _)| name.clone()).collect()
    }
}

/// An object by itself, converted if that is asked for.
pub(super) fn convert_value(converter: &Converter, value: Value) -> Document {
    let mut document = Document {
        number: 0,
        pointer: String::new(),
        value,
        origin: None,
    };
    converter.convert(&mut document);
    document
}
