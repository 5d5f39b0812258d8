//! Collects from all sources what the check of any object needs, before any object is checked.

use crate::conversion::PriorityClassValues;
use crate::definitions::{DefinitionSet, is_definition};
use crate::preemption_loops::LoopSearchInput;
use crate::source::ParsedSource;
use lockkeeper_crd_schema::admission_policy::PolicySet;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use serde_json::Value;
use std::collections::BTreeSet;

/// The kinds of parameters, as `apiVersion` and kind ([`PolicySet::param_kinds`]).
pub type ParamKinds = BTreeSet<(String, String)>;

/// What to collect.
#[derive(Clone, Copy, Debug)]
pub struct CollectOptions {
    /// The facts that rules look up.
    pub facts: bool,
    /// The queues and priorities for the loop search.
    pub preemption_loops: bool,
    /// The definitions of kinds, and admission policies.
    pub definitions: bool,
}

impl CollectOptions {
    /// Whether there is nothing to collect.
    #[must_use]
    pub fn are_empty(self) -> bool {
        !self.facts && !self.preemption_loops && !self.definitions
    }
}

/// The collected data of one source.
#[derive(Default)]
pub struct SourceParts {
    /// The facts that rules look up.
    pub facts: Index,
    /// The queues and priorities for the loop search.
    pub loop_input: LoopSearchInput,
    /// The values of priority classes.
    pub classes: PriorityClassValues,
    /// The definitions of kinds.
    pub definitions: DefinitionSet,
    /// Admission policies, bindings and Namespaces.
    pub policies: PolicySet,
}

impl SourceParts {
    /// Collects from the objects of a source. `at` is its number among all sources. Patches are skipped: the object that
    /// a patch changes is among the sources.
    #[must_use]
    pub fn new(at: usize, source: &ParsedSource, options: CollectOptions) -> Self {
        let mut parts = Self::default();
        if options.facts {
            parts.facts = collect_facts(source);
        }
        for (number, document) in source.documents.iter().enumerate() {
            if document.is_patch {
                continue;
            }
            parts.classes.add_document(document);
            if let Some(object) = document.object().filter(|_| options.preemption_loops) {
                parts.loop_input.add_object((at, number), object);
            }
            if options.definitions && is_definition(&document.value) {
                // The check of the source reports what is missing.
                let _ = parts.definitions.add(&document.value);
            }
            if options.definitions {
                add_policy(&mut parts.policies, &document.value);
            }
        }
        parts
    }
}

/// The facts of all objects in a source. A patch has none: the object that it changes has them.
#[must_use]
pub fn collect_facts(source: &ParsedSource) -> Index {
    let mut index = Index::default();
    let whole = source.documents.iter().filter(|it| !it.is_patch);
    for object in whole.filter_map(|it| it.object()) {
        // An object that does not fit its type has no facts; its check reports why.
        let _ = facts::collect(&mut index, object);
    }
    index
}

/// Adds an object to a set if it is a parameter of one of its policies.
pub fn add_param(set: &mut PolicySet, kinds: &ParamKinds, object: &Value) {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    if kinds.contains(&(text("apiVersion"), text("kind"))) {
        set.add_param(object);
    }
}

/// Adds a policy, a binding or a Namespace to a set. Other objects are ignored.
pub fn add_policy(set: &mut PolicySet, object: &Value) {
    if PolicySet::is_policy(object) {
        set.add(object);
    } else if object["kind"] == "Namespace" && object["apiVersion"] == "v1" {
        set.add_namespace(object);
    }
}
