//! The kinds of objects that rules guard.

use crate::cel_defaults::CelDefault;
use crate::defaulting::Defaults;
use crate::rule::{Context, Operation, Rule};
use kube::Resource;
use lockkeeper_api::config::{Action, ForeignKinds};
use serde::de::DeserializeOwned;

/// Whether objects of a kind are sent to the webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookScope {
    /// Always.
    Always,
    /// If the configuration enables the kinds of this project.
    Foreign(ForeignKinds),
    /// Never: the API server enforces all rules of the kind, and only `lockkeeper check` runs them.
    Never,
}

/// A kind of object with rules or defaults.
pub trait ValidatedKind: Resource<DynamicType = ()> + DeserializeOwned + 'static {
    /// Whether objects of this kind live in namespaces.
    const NAMESPACED: bool;

    /// Whether the kind is one of lockkeeper's own: such a kind is guarded with the failure policy
    /// `Fail`, others with `Ignore`.
    const OWN: bool;

    /// The default action of rules that hold for kinds of several projects: a kind of another project has
    /// its own webhook, which enforces them.
    const ACTION: Action = if Self::OWN {
        Action::Enforce
    } else {
        Action::Off
    };

    /// Whether an update is excused for what the stored object has already, as
    /// [`crate::engine::review`] tells. Not where the rules are those of another project's webhook that
    /// judges every update whole: who switches them on asks for its answers.
    const RATCHETS: bool = true;

    /// Whether objects of this kind are sent to the webhook.
    const WEBHOOK: WebhookScope = WebhookScope::Always;

    /// The label that an object must carry to be sent to the webhook; `None` sends all.
    const SELECTED_BY: Option<&'static str> = None;

    /// The operations on which the webhook is asked to fill in [`Guarded::defaults`]. None where the API
    /// server does it by itself: then the defaults say what it will fill in, for objects that have not got
    /// there yet.
    const DEFAULTED_ON: &'static [Operation] = &[];

    /// What of [`Guarded::defaults`] an API server can fill in by itself, and no schema default does.
    const CEL_DEFAULTS: &'static [CelDefault] = &[];

    /// The rules for this kind.
    fn rules() -> &'static [Rule<Self>];

    /// Whether an update leaves everything as it is that rules look at; then it is not judged.
    fn is_unchanged(_old: &Self, _new: &Self) -> bool {
        false
    }

    /// What would be filled in when the object is made, or changed from `old`. It fills in nothing
    /// that is there, except that it suspends a job that names a queue, and that it gives the shared
    /// weight of an ElasticQuota the resources of its max; filling in twice changes nothing.
    fn defaults(_object: &Self, _old: Option<&Self>, _context: &Context<'_>) -> Defaults {
        Defaults::default()
    }
}
