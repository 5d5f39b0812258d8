//! The rule as a unit.

use crate::cel::CelRule;
use crate::cluster_view::ClusterView;
use crate::finding::Findings;
use crate::settings::Settings;
use lockkeeper_api::config::Action;
use std::fmt;

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

/// What is known of a rule without its check. The fields are those of [`Rule`].
#[derive(Clone, Debug)]
pub struct RuleInfo {
    /// The stable code.
    pub id: &'static str,
    /// The name of the bad thing.
    pub name: &'static str,
    /// The API group of the kind; empty for the core group.
    pub group: String,
    /// The kind of object; `*` for any.
    pub kind: String,
    /// The version of lockkeeper that had it first.
    pub since: &'static str,
    /// The default action.
    pub action: Action,
    /// What it covers.
    pub covers: &'static [&'static str],
    /// Where it is checked.
    pub layers: &'static [Layer],
    /// The operations that it runs on.
    pub operations: &'static [Operation],
    /// Whether an update is excused for what the stored object has already.
    pub ratchets: bool,
    /// The page.
    pub doc: &'static str,
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

/// Where a rule is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// By the webhook, and by everything else that runs the rules in Rust.
    Webhook,
    /// By the API server, from the schema of the kind, and by whoever reads that schema. The expressions are in the
    /// schemas of lockkeeper's kinds, and in admission policies for kinds of others; for what shapes say there are none.
    Schema(&'static [CelRule]),
    /// By the API server, from admission policies: what no schema can hold, or what the administrator may soften.
    Policy(&'static [CelRule]),
    /// By `lockkeeper check` alone.
    Check,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Webhook => f.write_str("webhook"),
            Self::Schema(_) => f.write_str("schema"),
            Self::Policy(_) => f.write_str("policy"),
            Self::Check => f.write_str("check"),
        }
    }
}

/// What a request does to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
}

impl Operation {
    /// As it is written in an admission review.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}
