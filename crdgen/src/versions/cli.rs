//! The commands `migration` and `removal`.

use crate::diff::source::{self, Source};
use crate::yaml::{self, YamlError};
use clap::{Args, ValueEnum};
use k8s_openapi::api::storagemigration::v1::StorageVersionMigration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lockkeeper_conversion::{RemovalError, definition_name, migration, removal_blockers};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;

/// What may be named.
const SOURCE: &str =
    "CRD is a file, a folder, - for standard input, or REVISION:PATH as git writes it.";

/// How `migration` ends.
const MIGRATION_CODES: &str =
    "Exit codes: 0 done; 2 the command line is wrong or something cannot be read";

/// How `removal` ends.
const REMOVAL_CODES: &str = "Exit codes: 0 the version may go; 1 it may not; 2 it cannot be said: the command line is wrong, \
                             something cannot be read, no definition has the version, or nobody says what is stored";

/// Migrating what is stored.
#[derive(Clone, Debug, Args)]
#[command(after_help = [SOURCE, MIGRATION_CODES].join("\n\n"))]
pub struct Migrate {
    #[command(flatten)]
    about: DefinitionArgs,
}

/// Asking whether a version may go.
#[derive(Clone, Debug, Args)]
#[command(after_help = [SOURCE, REMOVAL_CODES].join("\n\n"))]
pub struct Remove {
    #[command(flatten)]
    about: DefinitionArgs,

    /// The version that is to be taken out
    // It may not be called version: each command has a flag of that name.
    #[arg(value_name = "VERSION")]
    removed: String,
}

/// What both take.
#[derive(Clone, Debug, Args)]
struct DefinitionArgs {
    /// The definitions, best as the cluster has them: kubectl get crd NAME -o yaml
    #[arg(value_name = "CRD")]
    definitions: String,

    /// The versions of status.storedVersions, where the definitions do not say
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    stored: Vec<String>,

    /// How the answer is written
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Output,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people; of a migration also for kubectl apply
    #[default]
    Human,
    /// For programs
    Json,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something cannot be read.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// There is no definition.
    #[error("{place} holds no CustomResourceDefinition; name the file that does")]
    Nothing {
        /// What was named.
        place: String,
    },
    /// It cannot be said whether a version may go.
    #[error(transparent)]
    Undecided(#[from] RemovalError),
    /// The answer has no form as text.
    #[error("the answer cannot be written; this is a defect, please report it")]
    Yaml(#[from] YamlError),
    /// The answer cannot be written.
    #[error("cannot write the answer")]
    Output(#[source] io::Error),
}

/// What is stored of a definition, and what has it written anew.
#[derive(Serialize)]
struct MigrationRow {
    definition: String,
    /// The version that is written.
    stores: String,
    /// Those in which objects may still lie; null if nobody knows.
    outstanding: Option<Vec<String>>,
    /// Null if nothing is to be done.
    migration: Option<StorageVersionMigration>,
}

/// Writes what migrates the objects of each definition that needs it.
///
/// # Errors
///
/// When something cannot be read or written.
pub fn migrate(arguments: &Migrate, out: &mut dyn Write) -> Result<(), Error> {
    let definitions = arguments.about.definitions()?;
    let rows: Vec<MigrationRow> = definitions
        .iter()
        .map(MigrationRow::from_definition)
        .collect();
    let text = match arguments.about.output {
        Output::Human => {
            let texts: Result<Vec<String>, YamlError> =
                rows.iter().map(MigrationRow::text).collect();
            texts?.join("---\n")
        }
        Output::Json => format!("{:#}\n", json!(rows)),
    };
    write_text(&text, out)
}

/// Writes whether a version may be taken out, and says it.
///
/// # Errors
///
/// When something cannot be read or written, and when it cannot be said.
pub fn remove(arguments: &Remove, out: &mut dyn Write) -> Result<bool, Error> {
    let definitions = arguments.about.definitions()?;
    let version = arguments.removed.as_str();
    let has_it =
        |it: &CustomResourceDefinition| it.spec.versions.iter().any(|it| it.name == version);
    let mut asked: Vec<&CustomResourceDefinition> =
        definitions.iter().filter(|it| has_it(it)).collect();
    if asked.is_empty() {
        // The first one says which versions there are instead.
        asked.extend(definitions.first());
    }
    let mut rows = Vec::new();
    let mut text = String::new();
    let mut may_go = true;
    for definition in asked {
        let found = removal_blockers(definition, version);
        if let Some(undecided) = found.iter().find(|it| it.is_undecided()) {
            return Err(undecided.clone().into());
        }
        may_go = may_go && found.is_empty();
        rows.push(removal_json(definition, version, &found));
        text.push_str(&removal_text(definition, version, &found));
    }
    if arguments.about.output == Output::Json {
        text = format!("{:#}\n", json!(rows));
    }
    write_text(&text, out)?;
    Ok(may_go)
}

fn removal_json(
    definition: &CustomResourceDefinition,
    version: &str,
    found: &[RemovalError],
) -> Value {
    let hindrances = found
        .iter()
        .map(|it| json!({"reason": it.reason(), "text": it.to_string()}));
    json!({
        "definition": definition_name(definition),
        "version": version,
        "mayGo": found.is_empty(),
        "hindrances": hindrances.collect::<Vec<_>>(),
    })
}

fn removal_text(
    definition: &CustomResourceDefinition,
    version: &str,
    found: &[RemovalError],
) -> String {
    if found.is_empty() {
        let name = definition_name(definition);
        return format!("{name}: {version} may go\n");
    }
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    lines.join("\n") + "\n"
}

impl DefinitionArgs {
    fn definitions(&self) -> Result<Vec<CustomResourceDefinition>, Error> {
        let source = match Source::parse(&self.definitions) {
            // There is no other side whose path it could have.
            Source::RevisionOnly { revision } => Source::Path(PathBuf::from(revision)),
            source => source,
        };
        let mut items = source.definitions(&source)?.items;
        if items.is_empty() {
            return Err(Error::Nothing {
                place: self.definitions.clone(),
            });
        }
        if !self.stored.is_empty() {
            for definition in &mut items {
                let status = definition.status.get_or_insert_default();
                status.stored_versions = Some(self.stored.clone());
            }
        }
        Ok(items)
    }
}

impl MigrationRow {
    fn from_definition(definition: &CustomResourceDefinition) -> Self {
        let current = definition.spec.versions.iter().find(|it| it.storage);
        let stores = current.map_or_else(String::new, |it| it.name.clone());
        let known = definition.status.as_ref();
        let known = known.and_then(|it| it.stored_versions.as_ref());
        let outstanding = known.map(|it| {
            let others = it.iter().filter(|it| **it != stores);
            others.cloned().collect::<Vec<_>>()
        });
        let is_done = outstanding.as_ref().is_some_and(Vec::is_empty);
        Self {
            definition: definition_name(definition),
            migration: (!is_done).then(|| migration(definition)),
            stores,
            outstanding,
        }
    }

    /// The migration, with a comment that says why.
    fn text(&self) -> Result<String, YamlError> {
        let Self {
            definition, stores, ..
        } = self;
        let why = match self.outstanding.as_deref() {
            None => "nobody says what else is stored: there is no status.storedVersions".to_owned(),
            Some([]) => "nothing else is stored, and nothing is to be migrated".to_owned(),
            Some(versions) => format!("objects may still be stored in {}", versions.join(", ")),
        };
        let migration = self.migration.as_ref().map(yaml::document).transpose()?;
        Ok(format!(
            "# {definition} stores {stores}; {why}\n{}",
            migration.unwrap_or_default()
        ))
    }
}

/// A reader that stops reading, as `head` does, is no error.
fn write_text(text: &str, out: &mut dyn Write) -> Result<(), Error> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
