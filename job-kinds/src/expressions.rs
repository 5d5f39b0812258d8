//! The expressions of a declaration, and their defaults.

use lockkeeper_crd_schema::crd::{ObjectExpression, ResultType};

/// The variable of the whole job.
pub(crate) const SELF: &str = "self";

/// The variable of an item of `forEach`.
pub(crate) const ITEM: &str = "item";

/// The variable of the key of an item in a map.
pub(crate) const KEY: &str = "key";

/// An expression of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusExpression {
    Succeeded,
    Failed,
    Message,
    Ready,
    Stopped,
    Started,
}

impl StatusExpression {
    pub(crate) const ALL: [Self; 6] = [
        Self::Succeeded,
        Self::Failed,
        Self::Message,
        Self::Ready,
        Self::Stopped,
        Self::Started,
    ];

    /// The field of the declaration.
    pub(crate) const fn field(self) -> &'static str {
        match self {
            Self::Succeeded => "spec.status.succeeded",
            Self::Failed => "spec.status.failed",
            Self::Message => "spec.status.message",
            Self::Ready => "spec.status.ready",
            Self::Stopped => "spec.status.stopped",
            Self::Started => "spec.status.started",
        }
    }

    /// The type of the result.
    pub(crate) const fn result(self) -> ResultType {
        match self {
            Self::Message => ResultType::Text,
            _ => ResultType::Boolean,
        }
    }

    /// The expression of a declaration that has none: the usual conditions.
    pub(crate) const fn default_text(self) -> &'static str {
        match self {
            Self::Succeeded => {
                "self.?status.?conditions.orValue([]).exists(c, \
                 c.type in ['Complete', 'Completed', 'Succeeded'] && c.status == 'True')"
            }
            Self::Failed => {
                "self.?status.?conditions.orValue([]).exists(c, c.type == 'Failed' && c.status == 'True')"
            }
            Self::Message => {
                "self.?status.?conditions.orValue([]).filter(c, \
                 c.type in ['Complete', 'Completed', 'Succeeded', 'Failed'] && c.status == 'True')\
                 .map(c, c.?message.orValue(''))[?0].orValue('')"
            }
            Self::Ready => {
                "self.?status.?conditions.orValue([]).exists(c, \
                 c.type in ['Ready', 'Running'] && c.status == 'True')"
            }
            Self::Stopped => {
                "!self.?status.?conditions.orValue([]).exists(c, \
                 (c.type in ['Ready', 'Running'] && c.status == 'True') \
                 || (c.type == 'Suspended' && c.status == 'False'))"
            }
            Self::Started => {
                "!self.?status.?conditions.orValue([]).exists(c, c.type == 'Suspended' && c.status == 'True')"
            }
        }
    }
}

/// Compiles an expression of a declaration.
///
/// # Errors
///
/// The reason if the text is no expression, or reads an unknown variable.
pub(crate) fn compile(text: &str, variables: &[&str]) -> Result<ObjectExpression, String> {
    let expression = ObjectExpression::new(text)?;
    for variable in [SELF, ITEM, KEY] {
        if expression.reads(variable) && !variables.contains(&variable) {
            return Err(format!(
                "there is no variable {variable:?} here; the variables are {}",
                variables.join(", ")
            ));
        }
    }
    Ok(expression)
}
