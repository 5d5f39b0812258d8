//! The kinds with rules or a schema of their own.

use super::decode::{ChangeRuleFn, DefaultFn, RuleFn};
use super::schemas::{KindDefinition, SchemaSource};
use crate::list_target::ListTarget;
use lockkeeper_policies::engine::Verdict;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::rule::Context;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A kind in one version.
pub struct KindEntry {
    /// `None` if the kind has only a schema.
    pub rules: Option<RuleFn>,
    pub change_rules: Option<ChangeRuleFn>,
    /// Defaults that the schema does not have.
    pub defaulting: Option<DefaultFn>,
    /// The resource name in the paths of the API server.
    pub plural: String,
    pub is_namespaced: bool,
    pub schema: SchemaSource,
}

impl KindEntry {
    /// Runs the rules on an object, or on its change from an old one.
    pub fn verdict(
        &self,
        object: &Value,
        old: Option<&Value>,
        context: &Context<'_>,
    ) -> Result<Verdict, Box<Finding>> {
        match (old, self.rules, self.change_rules) {
            (Some(old), _, Some(rules)) => rules(old, object, context),
            (_, Some(rules), _) => rules(object, context),
            _ => Ok(Verdict::default()),
        }
    }
}

/// All kinds, by API version and kind.
#[derive(Default)]
pub struct KindMap {
    kinds: BTreeMap<String, BTreeMap<String, KindEntry>>,
}

impl KindMap {
    /// Adds a kind in a version.
    pub fn add(&mut self, version: String, kind: String, entry: KindEntry) {
        self.kinds.entry(version).or_default().insert(kind, entry);
    }

    /// Adds the schema of a kind, which may have no rules.
    pub fn add_schema(&mut self, definition: KindDefinition, schema: SchemaSource) {
        let kinds = self.kinds.entry(definition.version).or_default();
        let kind = kinds.entry(definition.kind).or_insert(KindEntry {
            rules: None,
            change_rules: None,
            defaulting: None,
            plural: definition.plural,
            is_namespaced: definition.is_namespaced,
            schema: SchemaSource::None,
        });
        kind.schema = schema;
    }

    /// Each version, kind and entry.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &KindEntry)> {
        let versions = self.kinds.iter();
        versions.flat_map(|(version, kinds)| {
            let kinds = kinds.iter();
            kinds.map(move |(kind, entry)| (version.as_str(), kind.as_str(), entry))
        })
    }

    /// A kind in a version.
    pub fn get_mut(&mut self, version: &str, kind: &str) -> Option<&mut KindEntry> {
        self.kinds.get_mut(version)?.get_mut(kind)
    }

    /// The kind of an object.
    pub fn find(&self, object: &Value) -> Option<&KindEntry> {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        self.kinds.get(text("apiVersion")?)?.get(text("kind")?)
    }

    /// The newest version of a kind.
    pub fn newest_version(&self, kind: &str) -> Option<&str> {
        let mut versions = self
            .kinds
            .iter()
            .filter(|(_, kinds)| kinds.contains_key(kind));
        let (first, _) = versions.next()?;
        let group = first.split_once('/').map_or("", |it| it.0);
        // Later versions of the same group are newer.
        let mut same = versions.filter(|(it, _)| it.split_once('/').map_or("", |it| it.0) == group);
        Some(same.next_back().map_or(first, |(it, _)| it))
    }

    /// All kinds to list from a cluster: by group and kind, the newest version first.
    pub fn list_targets(&self) -> Vec<ListTarget<'_>> {
        let targets = self.iter().map(|(version, kind, it)| ListTarget {
            version,
            kind,
            plural: &it.plural,
        });
        let mut all: Vec<ListTarget<'_>> = targets.collect();
        // The versions are compared as texts: v1beta2 comes before v1beta1.
        all.sort_by_key(|it| (it.group(), it.kind, Reverse(it.version)));
        all
    }
}
