use lockkeeper_crdgen::cel::ExpressionError;
use lockkeeper_policies::registry::UnknownRule;
use lockkeeper_policies::schema::SchemaError;
use thiserror::Error;

/// An error of building a checker. Only [`Self::Rule`] can have its cause in the user's configuration.
#[derive(Debug, Error)]
pub enum SetupError {
    /// A generated schema is not valid JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The CEL of a rule does not fit the schema of its kind.
    #[error(transparent)]
    Cel(#[from] ExpressionError),
    /// A schema does not compile.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The configuration names a rule that does not exist.
    #[error(transparent)]
    Rule(#[from] UnknownRule),
}
