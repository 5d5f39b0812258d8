//! Bindings of policies.

use super::decision::Actions;
use super::match_resources::MatchResources;
use super::params::ParamRef;
use crate::crd::values::{metadata_of, text_at, texts_at};
use serde_json::Value;

/// A binding.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) policy: String,
    pub(super) params: Option<ParamRef>,
    pub(super) requests: MatchResources,
    pub(super) actions: Actions,
}

impl Binding {
    /// Reads a binding; `None` if it names no policy.
    pub(super) fn new(object: &Value) -> Option<Self> {
        let spec = object.get("spec")?;
        let name = metadata_of(object).get("name").and_then(Value::as_str);
        Some(Self {
            name: name.unwrap_or_default().to_owned(),
            policy: text_at(spec, "policyName")?.to_owned(),
            params: spec.get("paramRef").map(ParamRef::new),
            requests: MatchResources::new(spec.get("matchResources")),
            actions: Actions::new(&texts_at(spec, "validationActions")),
        })
    }
}
