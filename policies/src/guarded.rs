//! The kinds of objects that rules guard.

use crate::defaulting::Defaults;
use crate::rule::{Context, Operation, Rule};
use kube::Resource;
use serde::de::DeserializeOwned;

/// A kind of object that rules guard or that is defaulted.
pub trait Guarded: Resource<DynamicType = ()> + DeserializeOwned + 'static {
    /// Whether objects of this kind live in namespaces.
    const NAMESPACED: bool;

    /// Whether the kind is one of lockkeeper's own: such a kind is guarded with the failure policy
    /// `Fail`, others with `Ignore`.
    const OWN: bool;

    /// The label that an object must carry to be sent to the webhook; `None` sends all.
    const SELECTED_BY: Option<&'static str> = None;

    /// The operations on which [`Guarded::defaults`] may fill in anything.
    const DEFAULTED_ON: &'static [Operation] = &[];

    /// The rules for this kind.
    fn rules() -> &'static [Rule<Self>];

    /// What would be filled in when the object is made, or changed from `old`. It fills in nothing
    /// that is there, except that it suspends a job that names a queue; filling in twice changes
    /// nothing.
    fn defaults(_object: &Self, _old: Option<&Self>, _context: &Context<'_>) -> Defaults {
        Defaults::default()
    }
}
