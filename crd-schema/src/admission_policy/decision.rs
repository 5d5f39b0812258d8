//! The decision of a policy about a request.

use std::fmt;

/// What one binding of a policy decides. A request that the policy permits has no decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The kind of the policy.
    pub kind: PolicyKind,
    /// The name of the policy.
    pub policy: String,
    /// The name of the binding; `None` if the policy itself cannot be used.
    pub binding: Option<String>,
    /// The result.
    pub outcome: Outcome,
    /// The field of the object that the expression reads, if it is only one: the names on the way.
    pub field: Vec<String>,
}

/// The kind of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// `ValidatingAdmissionPolicy`.
    Validating,
    /// `MutatingAdmissionPolicy`.
    Mutating,
}

/// The result of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An expression is false or has an error.
    Denied {
        /// The message for the user, in the words of the API server.
        message: String,
        /// What the API server does.
        actions: Actions,
    },
    /// The result depends on something that the set does not have.
    Undecided(Missing),
    /// An expression of the policy cannot be compiled: its field and the reason.
    Unusable(String),
}

/// What a policy needs to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The user of the request.
    User,
    /// The rights of the user, which expressions ask the authorizer for.
    Rights,
    /// The Namespace with this name, for its labels or fields.
    Namespace(String),
    /// Parameters: their kind, and their name or what selects them.
    Params(String),
    /// The object in another version of its kind.
    Version(String),
    /// The schema of the kind, by which partial objects are applied.
    Schema,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("the user of the request"),
            Self::Rights => f.write_str("the rights of the user"),
            Self::Namespace(name) => write!(f, "the Namespace {name}"),
            Self::Params(what) => write!(f, "the parameters ({what})"),
            Self::Version(version) => write!(f, "the object in version {version}"),
            Self::Schema => f.write_str("the schema of the kind"),
        }
    }
}

/// What the API server does with a request that a policy denies. At least one is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// It rejects the request.
    pub is_denied: bool,
    /// It answers with a warning.
    pub is_warned: bool,
    /// It writes an audit annotation.
    pub is_audited: bool,
}

impl Actions {
    /// The actions of a binding.
    pub(super) fn new(names: &[String]) -> Self {
        let has = |name: &str| names.iter().any(|it| it == name);
        Self {
            is_denied: has("Deny"),
            is_warned: has("Warn"),
            is_audited: has("Audit"),
        }
    }

    /// The request is rejected.
    pub(super) const DENY: Self = Self {
        is_denied: true,
        is_warned: false,
        is_audited: false,
    };

    pub(super) fn are_empty(self) -> bool {
        self == Self::default()
    }
}
