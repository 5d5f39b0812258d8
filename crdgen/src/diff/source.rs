//! Sources of definitions and objects: files, folders, standard input and git revisions.

mod error;
mod git;
mod text;

pub use error::Error;
pub use text::Text;

use crate::diff::name_of;
use crate::manifests::{FileList, ListedFile, parse_documents, plain_words, read_file, read_text};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use text::is_manifest_file;

/// A source of definitions or objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Standard input.
    Stdin,
    /// A file, or all files of a folder and those below it.
    Path(PathBuf),
    /// A path in a revision of git, from the top of the repository unless it begins with `./`.
    Revision {
        /// The revision, such as `main` or `v1.2.0`.
        revision: String,
        /// The path.
        path: String,
    },
    /// The path of the other side in a revision of git.
    RevisionOnly {
        /// The revision.
        revision: String,
    },
}

/// The definitions of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definitions {
    /// The definitions, in the order of the source.
    pub items: Vec<CustomResourceDefinition>,
    /// How many documents were of another kind.
    pub skipped: usize,
}

impl Source {
    /// Parses an argument: `-`, a path that exists, `REVISION:PATH`, or a revision.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text == "-" {
            Self::Stdin
        } else if Path::new(text).exists() {
            Self::Path(text.into())
        } else if let Some((revision, path)) = text.split_once(':') {
            Self::Revision {
                revision: revision.to_owned(),
                path: path.to_owned(),
            }
        } else if is_manifest_file(Path::new(text)) {
            // A missing file should be reported as a file, not as a revision.
            Self::Path(text.into())
        } else {
            Self::RevisionOnly {
                revision: text.to_owned(),
            }
        }
    }

    /// The definitions in the source.
    ///
    /// # Errors
    ///
    /// When something cannot be read or decoded.
    pub fn definitions(&self, other: &Self) -> Result<Definitions, Error> {
        let mut definitions = Definitions::default();
        let mut names = BTreeSet::new();
        for text in self.texts(other)? {
            for document in documents(&text)? {
                if kind(&document) != "CustomResourceDefinition" {
                    definitions.skipped = definitions.skipped.saturating_add(1);
                    continue;
                }
                let definition = definition(&text.place, document)?;
                let name = name_of(&definition);
                if !names.insert(name.clone()) {
                    let place = text.place.clone();
                    return Err(Error::Twice { place, name });
                }
                definitions.items.push(definition);
            }
        }
        Ok(definitions)
    }

    /// All objects in the source.
    ///
    /// # Errors
    ///
    /// When something cannot be read or decoded.
    pub fn objects(&self) -> Result<Vec<Value>, Error> {
        self.objects_beside(self)
    }

    /// All objects in the source. A revision without a path has that of the other source.
    ///
    /// # Errors
    ///
    /// When something cannot be read or decoded.
    pub fn objects_beside(&self, other: &Self) -> Result<Vec<Value>, Error> {
        let mut objects = Vec::new();
        for text in self.texts(other)? {
            objects.extend(documents(&text)?);
        }
        Ok(objects)
    }

    /// The texts of the source, in the order of their names. A revision without a path has that of the other source.
    ///
    /// # Errors
    ///
    /// When a file, a folder or a revision cannot be read.
    pub fn texts(&self, other: &Self) -> Result<Vec<Text>, Error> {
        match (self, other) {
            (Self::Stdin, _) => {
                let place = "standard input".to_owned();
                match read_text(io::stdin().lock()) {
                    Ok(text) => Ok(vec![Text { place, text }]),
                    Err(error) => Err(Error::Read {
                        place,
                        reason: error.to_string(),
                    }),
                }
            }
            (Self::Path(path), _) => read_path(path),
            (Self::RevisionOnly { revision }, Self::Path(path)) => {
                git::revision_texts(revision, path)
            }
            (Self::Revision { revision, path }, _)
            | (Self::RevisionOnly { revision }, Self::Revision { path, .. }) => {
                git::show_texts(Path::new("."), revision, path)
            }
            (Self::RevisionOnly { revision }, _) => Err(Error::NoPath {
                revision: revision.clone(),
            }),
        }
    }
}

fn read_path(path: &Path) -> Result<Vec<Text>, Error> {
    let files = FileList::default().list(path).into_iter();
    let texts = files.map(|listed| match listed {
        ListedFile::File(path) => {
            let place = path.display().to_string();
            match read_file(&path) {
                Ok(text) => Ok(Text { place, text }),
                Err(error) => Err(Error::Read {
                    place,
                    reason: error.to_string(),
                }),
            }
        }
        ListedFile::Unreadable { path, reason } => Err(Error::Read {
            place: path.display().to_string(),
            reason,
        }),
    });
    texts.collect()
}

/// The objects of a text, those of lists one by one.
fn documents(text: &Text) -> Result<Vec<Value>, Error> {
    let read = parse_documents(&text.text).map_err(|reason| Error::Syntax {
        place: text.place.clone(),
        reason,
    })?;
    let mut objects = Vec::new();
    for document in read {
        match document {
            Value::Null => {}
            Value::Object(mut fields) if is_list(&fields) => {
                if let Some(Value::Array(items)) = fields.remove("items") {
                    objects.extend(items);
                }
            }
            other => objects.push(other),
        }
    }
    Ok(objects)
}

fn is_list(fields: &serde_json::Map<String, Value>) -> bool {
    let kind = fields.get("kind").and_then(Value::as_str);
    kind.is_some_and(|it| it.ends_with("List")) && fields.get("items").is_some_and(Value::is_array)
}

fn kind(object: &Value) -> &str {
    object
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn definition(place: &str, document: Value) -> Result<CustomResourceDefinition, Error> {
    let place = place.to_owned();
    let metadata = document.get("metadata").and_then(|it| it.get("name"));
    let name = metadata
        .and_then(Value::as_str)
        .unwrap_or("without a name")
        .to_owned();
    let version = document
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if version != "apiextensions.k8s.io/v1" {
        let version = version.to_owned();
        return Err(Error::OldDefinition {
            place,
            name,
            version,
        });
    }
    serde_path_to_error::deserialize(document).map_err(|error| Error::Definition {
        place,
        name,
        field: error.path().to_string(),
        reason: plain_words(&error.into_inner().to_string()),
    })
}
