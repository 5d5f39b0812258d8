//! The rule as a unit.

use crate::cluster_view::ClusterView;
use crate::finding::Findings;
pub use crate::rule_info::{Layer, Operation, RuleInfo};
use crate::settings::Settings;
use lockkeeper_api::config::Action;

/// What is allowed of objects of kind `T`: one declaration, from which the check, the reference
/// page, the tests and the registration at the API server are derived.
pub struct Rule<T: 'static> {
    /// The stable code, two letters and three digits. It is never reused, even after removal.
    pub id: &'static str,
    /// The name of the bad thing in kebab-case; it reads well after "allow".
    pub name: &'static str,
    /// The version of lockkeeper that had it first.
    pub since: &'static str,
    /// What happens to its findings unless the configuration says otherwise.
    pub action: Action,
    /// The rules of Kueue, Kubernetes, Koordinator or the design documents that it covers.
    pub covers: &'static [&'static str],
    /// Where it is checked.
    pub layers: &'static [Layer],
    /// The page: documentation, fixtures and test at once.
    pub doc: &'static str,
    /// The check itself.
    pub check: Check<T>,
}

impl<T> Rule<T> {
    /// A rule that the API server of the kind enforces by itself. Where that has happened it would only cost
    /// time, so it is off unless it is switched on; it serves objects that have not got there yet.
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

/// How a rule looks at an object. Object, context and versions checks run on CREATE and UPDATE.
pub enum Check<T: 'static> {
    /// At the object alone.
    Object(fn(&T, &mut Findings)),
    /// At the object, other objects and the administrator's settings.
    Context(fn(&T, &Context<'_>, &mut Findings)),
    /// At the object and, on an update, at the stored one as well: such a rule says by itself what an
    /// update may keep, so the engine drops nothing of what it finds.
    Transition(fn(&Transition<'_, T>, &Context<'_>, &mut Findings)),
    /// At an object that is made. For fields that no update may change.
    Create(fn(&T, &Context<'_>, &mut Findings)),
    /// At what an update changes.
    Change(fn(&Change<'_, T>, &Context<'_>, &mut Findings)),
    /// At the deletion of the object.
    Delete(fn(&T, &Context<'_>, &mut Findings)),
}

impl<T> Check<T> {
    /// The operations that it runs on.
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

/// An object as it would be stored and, on an update, as it is stored.
pub struct Transition<'a, T> {
    /// As it is stored; `None` when it would be made.
    pub old: Option<&'a T>,
    /// As it would be stored.
    pub new: &'a T,
}

/// An update: the object as it was stored and as it would be.
pub struct Change<'a, T> {
    /// As it is stored.
    pub old: &'a T,
    /// As it would be stored.
    pub new: &'a T,
}

/// What rules may ask besides the object.
pub struct Context<'a> {
    /// The other objects.
    pub cluster: &'a dyn ClusterView,
    /// The administrator's settings.
    pub settings: &'a Settings,
}
