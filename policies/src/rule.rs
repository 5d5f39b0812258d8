//! Rules and their checks.

use crate::cluster_view::ClusterView;
use crate::finding::Findings;
pub use crate::rule_info::{Layer, Operation, RuleInfo};
use crate::settings::Settings;
use lockkeeper_api::config::Action;

/// A rule for objects of kind `T`: one declaration, from which the check, the reference page, the tests and the
/// webhook registration are derived.
pub struct Rule<T: 'static> {
    /// The stable code, two letters and three digits. It is never reused, even after removal.
    pub id: &'static str,
    /// The name of the defect in kebab-case; it reads well after "allow".
    pub name: &'static str,
    /// The version of lockkeeper that introduced the rule.
    pub since: &'static str,
    /// The default action.
    pub action: Action,
    /// The covered rules of Kueue, Kubernetes, Koordinator or the design documents.
    pub covers: &'static [&'static str],
    /// The places that enforce the rule.
    pub layers: &'static [Layer],
    /// The page: documentation, fixtures and test at once.
    pub doc: &'static str,
    /// The check itself.
    pub check: Check<T>,
}

impl<T> Rule<T> {
    /// A rule that the API server already enforces for the kind. It is off by default, because it never has a
    /// finding for objects from an API server; it is for files.
    pub(crate) const fn mirrored(
        id: &'static str,
        name: &'static str,
        covers: &'static [&'static str],
        doc: &'static str,
        check: Check<T>,
    ) -> Self {
        Self {
            id,
            name,
            since: "0.1.0",
            action: Action::Off,
            covers,
            layers: &[Layer::Webhook],
            doc,
            check,
        }
    }
}

/// The check of a rule. `Object`, `Context` and `Transition` checks run on CREATE and UPDATE.
pub enum Check<T: 'static> {
    /// Checks the object alone.
    Object(fn(&T, &mut Findings)),
    /// Checks the object with other objects and the settings.
    Context(fn(&T, &Context<'_>, &mut Findings)),
    /// Checks the object and, on an update, the stored one. The rule itself compares the two, so
    /// the engine does not drop pre-existing findings.
    Transition(fn(&Transition<'_, T>, &Context<'_>, &mut Findings)),
    /// Checks a new object. For immutable fields.
    Create(fn(&T, &Context<'_>, &mut Findings)),
    /// Checks the changes of an update.
    Change(fn(&Change<'_, T>, &Context<'_>, &mut Findings)),
    /// Checks the deletion of an object.
    Delete(fn(&T, &Context<'_>, &mut Findings)),
}

impl<T> Check<T> {
    /// The operations that run the check.
    #[must_use]
    pub fn operations(&self) -> &'static [Operation] {
        match self {
            Self::Object(_) | Self::Context(_) | Self::Transition(_) => {
                &[Operation::Create, Operation::Update]
            }
            Self::Create(_) => &[Operation::Create],
            Self::Change(_) => &[Operation::Update],
            Self::Delete(_) => &[Operation::Delete],
        }
    }
}

/// A new object or an update.
pub struct Transition<'a, T> {
    /// The stored object; `None` on creation.
    pub old: Option<&'a T>,
    /// The new object.
    pub new: &'a T,
}

/// An update.
pub struct Change<'a, T> {
    /// The stored object.
    pub old: &'a T,
    /// The new object.
    pub new: &'a T,
}

/// The inputs of a rule besides the object.
pub struct Context<'a> {
    /// The other objects.
    pub cluster: &'a dyn ClusterView,
    /// The administrator's settings.
    pub settings: &'a Settings,
}
