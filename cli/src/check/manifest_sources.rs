//! `--crds`, `--policies` and `--old`: manifests of files, folders, charts and git revisions that are not checked
//! themselves; and `--schema-location`: JSON Schemas.

use crate::Failure;
use clap::Args;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_check::report::CheckedFile;
use lockkeeper_check::{
    Converter, DefinitionSet, OldObjects, ParsedSource, ReadError, Release, SchemaCatalog,
    SchemaLocation, is_definition, worker_pool,
};
use lockkeeper_crdgen::diff::source::{Error, Source, Text};
use lockkeeper_crdgen::manifests::{TextError, read_file};
use serde_json::Value;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Args, Debug)]
pub(super) struct SourceArguments {
    /// Definitions (CRDs) of the kinds to check: a file, folder, chart or git:REV:PATH; repeatable
    #[arg(long, value_name = "SOURCE", conflicts_with = "stored")]
    crds: Vec<ManifestSource>,

    /// JSON Schemas of other kinds: a path template of kubeconform; repeatable
    #[arg(long, value_name = "TEMPLATE", conflicts_with = "stored")]
    schema_location: Vec<SchemaLocation>,

    /// Admission policies, bindings and parameters to evaluate: a file, folder or git:REV:PATH; repeatable
    #[arg(long, value_name = "SOURCE", conflicts_with = "stored")]
    policies: Vec<ManifestSource>,

    /// Check the change from these manifests: a file, folder, git:REV or git:REV:PATH
    #[arg(long, value_name = "SOURCE", conflicts_with = "stored")]
    old: Option<ManifestSource>,
}

/// A source of manifests.
#[derive(Clone, Debug)]
struct ManifestSource(Source);

impl FromStr for ManifestSource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(place) = text.strip_prefix("git:") else {
            return Ok(Self(Source::Path(folder_of_definitions(text.into()))));
        };
        Ok(Self(match place.split_once(':') {
            Some((revision, path)) => Source::Revision {
                revision: revision.to_owned(),
                path: path.to_owned(),
            },
            None => Source::RevisionOnly {
                revision: place.to_owned(),
            },
        }))
    }
}

/// The folder `crds` of a Helm chart: its other files have placeholders.
fn folder_of_definitions(path: PathBuf) -> PathBuf {
    let folder = path.join("crds");
    if path.join("Chart.yaml").is_file() && folder.is_dir() {
        folder
    } else {
        path
    }
}

impl SourceArguments {
    /// The definitions of `--crds`, and the files that cannot be read.
    pub(super) fn definitions(&self) -> Result<(DefinitionSet, Vec<CheckedFile>), Failure> {
        let mut definitions = DefinitionSet::default();
        let mut unreadable = Vec::new();
        for ManifestSource(source) in &self.crds {
            let texts = source.texts(source).map_err(usage_failure)?;
            for_each_source(&texts, &mut unreadable, |source| {
                let documents = source.documents.iter();
                for document in documents.filter(|it| is_definition(&it.value)) {
                    definitions
                        .add(&document.value)
                        .map_err(|error| ReadError {
                            location: source.locate(document, &FieldPath::default()),
                            message: error.to_string(),
                        })?;
                }
                Ok(())
            });
        }
        Ok((definitions, unreadable))
    }

    /// The objects of `--policies`, and the files that cannot be read.
    pub(super) fn policy_objects(&self) -> Result<(Vec<Value>, Vec<CheckedFile>), Failure> {
        let mut objects = Vec::new();
        let mut unreadable = Vec::new();
        for ManifestSource(source) in &self.policies {
            let texts = source.texts(source).map_err(usage_failure)?;
            for_each_source(&texts, &mut unreadable, |source| {
                objects.extend(source.documents.into_iter().map(|it| it.value));
                Ok(())
            });
        }
        Ok((objects, unreadable))
    }

    /// The JSON Schemas of `--schema-location` for a release, read on demand.
    pub(super) fn schemas(&self, release: Release) -> SchemaCatalog {
        let read = |path: &str| match read_file(Path::new(path)) {
            Ok(text) => Ok(Some(text)),
            Err(TextError::Io(error)) if is_absent(&error) => Ok(None),
            Err(error) => Err(error.to_string()),
        };
        SchemaCatalog::new(release, self.schema_location.clone(), Box::new(read))
    }

    /// The objects of `--old`, converted like the new ones, and the files that cannot be read.
    pub(super) fn old_objects(
        &self,
        release: Release,
        paths: &[PathBuf],
        converter: &Converter,
    ) -> Result<(OldObjects, Vec<CheckedFile>), Failure> {
        let mut objects = OldObjects::new(release);
        let mut unreadable = Vec::new();
        let Some(ManifestSource(source)) = &self.old else {
            return Ok((objects, unreadable));
        };
        let mut texts = Vec::new();
        if matches!(source, Source::RevisionOnly { .. }) {
            for path in paths.iter().filter(|it| it.as_path() != Path::new("-")) {
                texts.extend(existing_texts(source, &Source::Path(path.clone()))?);
            }
        } else {
            texts = source.texts(source).map_err(usage_failure)?;
        }
        for_each_source(&texts, &mut unreadable, |source| {
            for document in converter.convert_source(source).documents {
                objects.add(document);
            }
            Ok(())
        });
        Ok((objects, unreadable))
    }
}

/// Whether there is no such file.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The texts of a path in a revision; none if the revision does not have the path yet.
fn existing_texts(source: &Source, path: &Source) -> Result<Vec<Text>, Failure> {
    match source.texts(path) {
        Err(Error::Git { message, .. })
            if message.contains("does not exist in") || message.contains("but not in") =>
        {
            Ok(Vec::new())
        }
        result => result.map_err(usage_failure),
    }
}

fn usage_failure(error: Error) -> Failure {
    Failure::Usage(error.into())
}

/// Parses texts on all cores, and consumes them in their order. A text with an error is unreadable.
fn for_each_source(
    texts: &[Text],
    unreadable: &mut Vec<CheckedFile>,
    mut consume: impl FnMut(ParsedSource) -> Result<(), ReadError> + Send,
) {
    worker_pool::run_ordered(
        texts.len(),
        worker_pool::thread_count(),
        |at| {
            let text = texts.get(at)?;
            Some((text, ParsedSource::parse(text.text.clone())))
        },
        |_, parsed| {
            let Some((text, parsed)) = parsed else {
                return;
            };
            if let Err(error) = parsed.and_then(&mut consume) {
                unreadable.push(CheckedFile {
                    name: text.place.clone(),
                    outcome: Err(error),
                });
            }
        },
    );
}
