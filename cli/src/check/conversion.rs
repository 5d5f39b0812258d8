//! `--as`: Kueue's objects, judged as lockkeeper's.

use super::source::{Document, Identity, Input, Problem, Source};
use crate::Failure;
use anyhow::{Context, Error};
use clap::{Args, ValueEnum};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::{self, Converted};
use lockkeeper_policies::conversion;
use lockkeeper_policies::finding::Finding;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

const CLASS: &str = "WorkloadPriorityClass";

/// Whose kinds objects are judged as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Group {
    /// Lockkeeper's
    #[value(name = "lockkeeper.dev")]
    Lockkeeper,
}

/// The flags.
#[derive(Args, Debug)]
pub(super) struct Conversion {
    /// Judge Kueue's objects, and jobs and pods with its labels, as the kinds of this API group, and name what is lost
    #[arg(long = "as", value_enum, value_name = "GROUP")]
    group: Option<Group>,

    /// Where what came out is written, as YAML; `-` is standard output, in place of all else
    #[arg(long, value_name = "FILE", requires = "group")]
    converted: Option<PathBuf>,
}

impl Conversion {
    pub(super) fn converter(&self) -> Converter {
        Converter {
            is_on: self.group.is_some(),
            is_collected: self.converted.is_some(),
            taken: BTreeSet::new(),
        }
    }

    /// Whether what came out is all that is printed.
    pub(super) fn is_all(&self) -> bool {
        self.converted.as_deref() == Some(Path::new("-"))
    }

    /// Writes what came out, if that is wanted.
    pub(super) fn write(&self, yaml: &str, out: &mut impl Write) -> Result<(), Failure> {
        match &self.converted {
            None => {}
            Some(_) if self.is_all() => {
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
    pub(super) lost: Vec<Finding>,
    /// Nothing came out.
    pub(super) is_gone: bool,
    converted: Converted,
}

impl Origin {
    /// Where in the object that was given a field of what came out stands.
    pub(super) fn field(&self, field: &FieldPath) -> FieldPath {
        self.converted.origin(field)
    }
}

/// Converts objects, or leaves them as they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Converter {
    is_on: bool,
    is_collected: bool,
    /// Names of Kueue's classes that other classes have.
    taken: BTreeSet<String>,
}

impl Converter {
    /// Whether anything is converted.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Reads and parses an input.
    pub(super) fn read(&self, input: &Input) -> Result<Source, Problem> {
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
        let identity = Identity::of(&document.value);
        let object = converted.object.take();
        document.origin = Some(Box::new(Origin {
            identity,
            lost: converted.lost.iter().map(conversion::finding).collect(),
            is_gone: object.is_none(),
            converted,
        }));
        if let Some(object) = object {
            document.value = object;
        }
    }

    /// Remembers which classes cannot be converted, once all are known.
    pub(super) fn take(&mut self, classes: &Classes) {
        self.taken = classes.taken();
    }

    /// The source, without the classes that cannot be converted.
    pub(super) fn settled(&self, mut source: Source) -> Source {
        for document in &mut source.documents {
            self.settle(document);
        }
        source
    }

    /// Nothing comes out of a class whose name is taken.
    pub(super) fn settle(&self, document: &mut Document) {
        if let Some(origin) = &mut document.origin
            && origin.identity.kind == CLASS
            && !origin.is_gone
            && self.taken.contains(&origin.identity.name)
        {
            origin.is_gone = true;
            origin.lost.push(conversion::taken());
        }
    }

    /// What came out of a file, as YAML; nothing if nobody wants it.
    pub(super) fn yaml(&self, source: &Source) -> Result<String, Error> {
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
pub(super) fn collect(all: &mut Result<String, Error>, yaml: Result<String, Error>) {
    match (&mut *all, yaml) {
        (Ok(all), Ok(yaml)) => all.push_str(&yaml),
        (Ok(_), Err(error)) => *all = Err(error),
        (Err(_), _) => {}
    }
}

/// The classes of both projects, by name.
#[derive(Default)]
pub(super) struct Classes {
    kubernetes: BTreeMap<String, BTreeSet<i64>>,
    kueue: BTreeMap<String, BTreeSet<i64>>,
}

impl Classes {
    pub(super) fn take(&mut self, document: &Document) {
        let Some(value) = document.object().and_then(|it| it.get("value")) else {
            return;
        };
        let identity = Identity::of(&document.value);
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
    pub(super) fn add(&mut self, other: Self) {
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
    fn taken(&self) -> BTreeSet<String> {
        let both = self.kueue.iter().filter(|(name, values)| {
            let others = self.kubernetes.get(*name);
            others.is_some_and(|others| others != *values)
        });
        both.map(|(name, _)| name.clone()).collect()
    }
}

/// An object by itself, converted if that is asked for.
pub(super) fn document(converter: &Converter, value: Value) -> Document {
    let mut document = Document {
        number: 0,
        pointer: String::new(),
        value,
        origin: None,
    };
    converter.convert(&mut document);
    document
}
