//! Kinds with rules or defaults.

use crate::cel_defaults::CelDefault;
use crate::defaulting::Defaults;
use crate::finding::Finding;
use crate::rule::{Context, Operation, Rule};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::Resource;
use lockkeeper_api::config::{Action, ForeignKinds};
use lockkeeper_api::field_path::FieldPath;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

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
pub trait ValidatedKind:
    Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static
{
    /// Whether the kind is namespaced.
    const NAMESPACED: bool;

    /// Whether the kind is lockkeeper's own. The webhook configuration of own kinds has the failure policy `Fail`,
    /// that of others `Ignore`.
    const OWN: bool;

    /// The default action of rules shared by several projects. They are off for kinds of other projects, which have
    /// webhooks of their own.
    const ACTION: Action = if Self::OWN {
        Action::Enforce
    } else {
        Action::Off
    };

    /// Whether updates ratchet (see [`crate::engine::review`]). Not if the rules are those of another project's
    /// webhook that validates the whole object on every update: these rules reproduce its results.
    const RATCHETS: bool = true;

    /// Whether objects of this kind are sent to the webhook.
    const WEBHOOK: WebhookScope = WebhookScope::Always;

    /// The labels of which an object must carry one to be sent to the webhook; none sends all.
    const SELECTED_BY: &'static [&'static str] = &[];

    /// The operations on which the webhook sets [`ValidatedKind::defaults`]. None if the API server sets them
    /// itself; the defaults then serve objects in files.
    const DEFAULTED_ON: &'static [Operation] = &[];

    /// The labels of [`ValidatedKind::SELECTED_BY`] of which an object must carry one to be sent for defaults.
    const DEFAULTS_SELECTED_BY: &'static [&'static str] = Self::SELECTED_BY;

    /// The part of [`ValidatedKind::defaults`] that is in mutating admission policies and not in the schema.
    const CEL_DEFAULTS: &'static [CelDefault] = &[];

    /// Whether objects have pod templates at `spec.podSets[*].template`, which [`ValidatedKind::pod_set_templates`] returns.
    const HAS_POD_SETS: bool = false;

    /// The pod templates of all pod sets, in their order. The webhook replaces templates that it has decoded before.
    fn pod_set_templates(_object: &mut Self) -> Vec<&mut Arc<PodTemplateSpec>> {
        Vec::new()
    }

    /// The finding for an object that does not fit the type; `None` if it fits. The caller decodes first: with a
    /// path, decoding costs a third more.
    ///
    /// Each kind uses `implement_type_mismatch!`, so that the decoder is compiled once, not in each crate that
    /// decodes objects.
    fn type_mismatch(object: &Value) -> Option<Finding>;

    /// The rules for this kind.
    fn rules() -> &'static [Rule<Self>];

    /// Whether an update changes no field that rules read; then the engine skips it.
    fn is_unchanged(_old: &Self, _new: &Self) -> bool {
        false
    }

    /// The defaults for a new object, or an update of `old`. They set unset fields only, with two exceptions: a job
    /// with a queue name is suspended, and the shared weight of an ElasticQuota gets the resources of its max.
    /// Defaulting is idempotent.
    fn defaults(_object: &Self, _old: Option<&Self>, _context: &Context<'_>) -> Defaults {
        Defaults::default()
    }
}

/// [`ValidatedKind::type_mismatch`].
pub(crate) fn type_mismatch<T: DeserializeOwned>(object: &Value) -> Option<Finding> {
    let error = serde_path_to_error::deserialize::<_, T>(object).err()?;
    let base = FieldPath::default();
    Some(Finding::type_mismatch(base, &error, Some(object)))
}

/// Implements [`ValidatedKind::type_mismatch`].
macro_rules! implement_type_mismatch {
    () => {
        fn type_mismatch(object: &::serde_json::Value) -> Option<$crate::finding::Finding> {
            $crate::validated_kind::type_mismatch::<Self>(object)
        }
    };
}
pub(crate) use implement_type_mismatch;
