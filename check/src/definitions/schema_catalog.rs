//! JSON Schemas of kinds without a definition, read and compiled on first use.

use super::json_schema::JsonSchema;
use super::schema_location::SchemaLocation;
use lockkeeper_crd_schema::builtin::{BuiltInKind, Release};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Reads the schema at a path: its text, `None` if there is no such file, or why it cannot be read.
pub type ReadSchema = Box<dyn Fn(&str) -> Result<Option<String>, String> + Send + Sync>;

/// A compiled schema, or why it cannot be used.
type Compiled = Result<JsonSchema, String>;

/// The schema of a kind, or none, once it is known.
type Entry = Arc<OnceLock<Option<Compiled>>>;

/// The schemas at some locations, by `apiVersion` and kind. Each is read once for all threads, at the first object of its
/// kind; a kind without a schema costs one attempt for each location.
pub struct SchemaCatalog {
    release: Release,
    locations: Vec<SchemaLocation>,
    read: ReadSchema,
    schemas: Mutex<BTreeMap<(String, String), Entry>>,
}

impl SchemaCatalog {
    /// A catalogue of these locations, for a release of Kubernetes. The first location with a file is used.
    #[must_use]
    pub fn new(release: Release, locations: Vec<SchemaLocation>, read: ReadSchema) -> Self {
        Self {
            release,
            locations,
            read,
            schemas: Mutex::default(),
        }
    }

    /// Applies an operation to the schema of an object's kind, or to the reason why it cannot be used. `None` if there is
    /// no schema, or if the kind is a built-in one of any release.
    pub(super) fn with_schema<T>(
        &self,
        object: &Value,
        operation: impl FnOnce(Result<&JsonSchema, &str>) -> T,
    ) -> Option<T> {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let (api_version, kind) = (text("apiVersion")?, text("kind")?);
        if self.locations.is_empty() || BuiltInKind::is_in_any(api_version, kind) {
            return None;
        }
        let key = (api_version.to_owned(), kind.to_owned());
        let schema = {
            let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(schemas.entry(key).or_default())
        };
        // Without the lock, so that other kinds are not waited for.
        let schema = schema
            .get_or_init(|| self.load(api_version, kind))
            .as_ref()?;
        Some(operation(schema.as_ref().map_err(String::as_str)))
    }

    fn load(&self, api_version: &str, kind: &str) -> Option<Compiled> {
        let paths = self
            .locations
            .iter()
            .filter_map(|it| it.path(self.release, api_version, kind));
        for path in paths {
            let parsed = match (self.read)(&path) {
                Ok(None) => continue,
                Ok(Some(text)) => JsonSchema::parse(&text),
                Err(reason) => Err(reason),
            };
            return Some(parsed.map_err(|reason| format!("{path}: {reason}")));
        }
        None
    }
}

impl fmt::Debug for SchemaCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("SchemaCatalog");
        out.field("locations", &self.locations)
            .finish_non_exhaustive()
    }
}
