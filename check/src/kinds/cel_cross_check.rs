//! Compares each rule in Rust with its CEL, object by object.

use super::decode::RuleFn;
use crate::setup_error::SetupError;
use lockkeeper_api::GROUP;
use lockkeeper_api::config::{Action, Config};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_crdgen::cel::{rules_for_kind, schema_with};
use lockkeeper_policies::finding::{ErrorKind, Finding};
use lockkeeper_policies::index::Index;
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::{Context, RuleInfo};
use lockkeeper_policies::schema::{EXPRESSION, StructuralSchema};
use lockkeeper_policies::settings::Settings;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The rules of lockkeeper's kinds that have CEL, by kind.
#[derive(Default)]
pub struct CelCrossCheck {
    kinds: BTreeMap<String, Vec<CelRulePair>>,
    /// Rules with CEL look up no other objects.
    empty_index: Index,
}

/// A rule in Rust and in CEL.
struct CelRulePair {
    rule: &'static str,
    /// The schema of the kind with the CEL of this rule only.
    structure: StructuralSchema,
    /// Settings in which only this rule is on.
    settings: Settings,
}

impl CelCrossCheck {
    pub fn new() -> Result<Self, SetupError> {
        let mut kinds: BTreeMap<String, Vec<CelRulePair>> = BTreeMap::new();
        for definition in lockkeeper_crdgen::plain_definitions() {
            let kind = definition.spec.names.kind;
            let versions = definition.spec.versions.into_iter();
            let schemas = versions.filter_map(|it| it.schema?.open_api_v3_schema);
            for schema in schemas {
                for rule in rules_for_kind(GROUP, &kind) {
                    if let Some(schema) = schema_with(schema.clone(), &rule)? {
                        let pair = CelRulePair::new(&rule, &serde_json::to_value(schema)?)?;
                        kinds.entry(kind.clone()).or_default().push(pair);
                    }
                }
            }
        }
        Ok(Self {
            kinds,
            empty_index: Index::default(),
        })
    }

    /// A finding for each rule whose Rust and CEL disagree about an object that matches its schema.
    pub fn disagreements(&self, kind: &str, rules: RuleFn, object: &Value) -> Vec<Finding> {
        let all = self.kinds.get(kind).into_iter().flatten();
        let differing = all.filter_map(|pair| {
            let context = Context {
                cluster: &self.empty_index,
                settings: &pair.settings,
            };
            // The check of the kind reports objects that do not fit their type.
            let verdict = rules(object, &context).ok()?;
            let is_rejected = verdict.denials.iter().any(|it| it.rule == pair.rule);
            pair.finding(is_rejected, !pair.structure.check(object, None).is_empty())
        });
        differing.collect()
    }
}

impl CelRulePair {
    fn new(rule: &RuleInfo, schema: &Value) -> Result<Self, SetupError> {
        let mut config = Config::default();
        let actions = &mut config.rules.actions;
        // A verdict has a limited number of findings: other rules could crowd out this one.
        for other in registry::all() {
            actions.insert(other.id.to_owned(), Action::Off);
        }
        actions.insert(rule.id.to_owned(), Action::Enforce);
        Ok(Self {
            rule: rule.id,
            structure: StructuralSchema::new(schema)?,
            settings: registry::settings(&config)?,
        })
    }

    fn finding(&self, by_rule: bool, by_cel: bool) -> Option<Finding> {
        let (rejects, accepts) = match (by_rule, by_cel) {
            (true, false) => ("the rule", "its CEL"),
            (false, true) => ("the CEL of the rule", "the rule"),
            _ => return None,
        };
        let rule = self.rule;
        let detail = format!(
            "{rule}: {rejects} rejects the object, {accepts} accepts it; this is a bug in lockkeeper, report it"
        );
        Some(Finding {
            rule: Cow::Borrowed(EXPRESSION),
            field: FieldPath::default(),
            kind: ErrorKind::Invalid,
            value: None,
            detail: detail.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unnecessary_wraps,
        reason = "the functions must have the type RuleFn"
    )]

    use super::*;
    use lockkeeper_policies::engine::Verdict;
    use serde_json::json;

    const LENDS_ALL: &str = "it lends more than it has";

    /// The disagreements about a queue that lends this much of its quota of 4.
    fn details(lends: u32, rules: RuleFn) -> Vec<String> {
        let cross_check =
            CelCrossCheck::new().unwrap_or_else(|_| unreachable!("the rules compile"));
        let resource =
            json!({"name": "cpu", "nominalQuota": "4", "lendingLimit": lends.to_string()});
        let group = json!({"coveredResources": ["cpu"], "flavors": [{"name": "a", "resources": [resource]}]});
        let queue = json!({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": "ClusterQueue", "metadata": {"name": "q"},
                           "spec": {"cohortName": "all", "resourceGroups": [group]}});
        let found = cross_check.disagreements("ClusterQueue", rules, &queue);
        found.into_iter().map(|it| it.detail.into_owned()).collect()
    }

    /// Accepts every object.
    fn accept_all(_: &Value, _: &Context<'_>) -> Result<Verdict, Box<Finding>> {
        Ok(Verdict::default())
    }

    /// Rejects every object by CQ007.
    fn reject_all(_: &Value, _: &Context<'_>) -> Result<Verdict, Box<Finding>> {
        let mut verdict = Verdict::default();
        verdict.denials.push(Finding {
            rule: Cow::Borrowed("CQ007"),
            field: FieldPath::default(),
            kind: ErrorKind::Invalid,
            value: None,
            detail: LENDS_ALL.into(),
        });
        Ok(verdict)
    }

    #[test]
    fn cel_cross_check_names_disagreeing_rule() {
        let end = "this is a bug in lockkeeper, report it";
        assert_eq!(details(4, accept_all), [""; 0]);
        assert_eq!(
            details(5, accept_all),
            [format!(
                "CQ007: the CEL of the rule rejects the object, the rule accepts it; {end}"
            )]
        );
        assert_eq!(
            details(4, reject_all),
            [format!(
                "CQ007: the rule rejects the object, its CEL accepts it; {end}"
            )]
        );
        assert_eq!(details(5, reject_all), [""; 0]);
    }
}
