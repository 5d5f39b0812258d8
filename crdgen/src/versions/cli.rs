//! The commands `migration` and `check-removal`.

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

/// Help for the CRD argument.
const SOURCE: &str =
    "CRD is a file, a directory, - for standard input, or REVISION:PATH in Git's notation.";

/// Exit codes of `migration`.
const MIGRATION_CODES: &str = "Exit codes: 0 success; 2 invalid command line or unreadable input";

/// Exit codes of `check-removal`.
const REMOVAL_CODES: &str = "Exit codes: 0 the version can be removed; 1 it cannot; 2 undecided: invalid command line, unreadable \
                             input, unknown version, or no status.storedVersions";

/// Arguments of `migration`.
#[derive(Clone, Debug, Args)]
#[command(after_help = [SOURCE, MIGRATION_CODES].join("\n\n"))]
pub struct Migrate {
    #[command(flatten)]
    about: DefinitionArgs,
}

/// Arguments of `check-removal`.
#[derive(Clone, Debug, Args)]
#[command(after_help = [SOURCE, REMOVAL_CODES].join("\n\n"))]
pub struct Remove {
    #[command(flatten)]
    about: DefinitionArgs,

    /// Version to remove
    // Not named `version`: each command has a flag of that name.
    #[arg(value_name = "VERSION")]
    removed: String,
}

/// Arguments of both commands.
#[derive(Clone, Debug, Args)]
struct DefinitionArgs {
    /// CRDs, preferably from the cluster: kubectl get crd NAME -o yaml
    #[arg(value_name = "CRD")]
    definitions: String,

    /// Value of status.storedVersions, if the CRDs have no status
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    stored: Vec<String>,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Output,
}

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Text; a migration can be passed to kubectl apply
    #[default]
    Human,
    /// JSON
    Json,
}

/// An error of these commands.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input cannot be read.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// The input has no definition.
    #[error("{place} has no CustomResourceDefinition; give a file that has one")]
    Nothing {
        /// The argument.
        place: String,
    },
    /// The definition lacks the data to decide.
    #[error(transparent)]
    Undecided(#[from] RemovalError),
    /// The output cannot be encoded as YAML.
    #[error("cannot encode the output; this is a bug, please report it")]
    Yaml(#[from] YamlError),
    /// The output cannot be written.
    #[error("cannot write the output")]
    Output(#[source] io::Error),
}

/// The stored versions of a definition and its migration.
#[derive(Serialize)]
struct MigrationRow {
    definition: String,
    /// The storage version.
    stores: String,
    /// Other versions in which objects may be stored; null if unknown.
    outstanding: Option<Vec<String>>,
    /// Null if no migration is needed.
    migration: Option<StorageVersionMigration>,
}

/// Writes a migration for each definition that needs one.
///
/// # Errors
///
/// If the input cannot be read or the output cannot be written.
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

/// Reports whether a version can be removed, and returns the result.
///
/// # Errors
///
/// If the input cannot be read, the output cannot be written, or the definition lacks the data to decide.
pub fn remove(arguments: &Remove, out: &mut dyn Write) -> Result<bool, Error> {
    let definitions = arguments.about.definitions()?;
    let version = arguments.removed.as_str();
    let has_version =
        |it: &CustomResourceDefinition| it.spec.versions.iter().any(|it| it.name == version);
    let mut selected: Vec<&CustomResourceDefinition> =
        definitions.iter().filter(|it| has_version(it)).collect();
    if selected.is_empty() {
        // Report the versions of the first definition in the error.
        selected.extend(definitions.first());
    }
    let mut rows = Vec::new();
    let mut text = String::new();
    let mut is_removable = true;
    for definition in selected {
        let found = removal_blockers(definition, version);
        if let Some(undecided) = found.iter().find(|it| it.is_undecided()) {
            return Err(undecided.clone().into());
        }
        is_removable = is_removable && found.is_empty();
        rows.push(removal_json(definition, version, &found));
        text.push_str(&removal_text(definition, version, &found));
    }
    if arguments.about.output == Output::Json {
        text = format!("{:#}\n", json!(rows));
    }
    write_text(&text, out)?;
    Ok(is_removable)
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
        return format!("{name}: {version} can be removed\n");
    }
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    lines.join("\n") + "\n"
}

impl DefinitionArgs {
    fn definitions(&self) -> Result<Vec<CustomResourceDefinition>, Error> {
        let source = match Source::parse(&self.definitions) {
            // A bare revision has the path of the other side, and there is no other side.
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
        let outstanding = known.map(|versions| {
            let others = versions.iter().filter(|it| **it != stores);
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

    /// The migration, with a comment that states the reason.
    fn text(&self) -> Result<String, YamlError> {
        let Self {
            definition, stores, ..
        } = self;
        let why = match self.outstanding.as_deref() {
            None => {
                "other stored versions are unknown: there is no status.storedVersions".to_owned()
            }
            Some([]) => "no other version is stored, no migration is needed".to_owned(),
            Some(versions) => format!("objects may still be stored in {}", versions.join(", ")),
        };
        let migration = self.migration.as_ref().map(yaml::document).transpose()?;
        Ok(format!(
            "# {definition} stores {stores}; {why}\n{}",
            migration.unwrap_or_default()
        ))
    }
}

/// Ignores a closed pipe, such as with `head`.
fn write_text(text: &str, out: &mut dyn Write) -> Result<(), Error> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
