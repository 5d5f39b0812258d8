//! What rules say in Kubernetes' CEL, held against what they say in Rust, object by object.

use super::RuleFn;
use crate::Failure;
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

/// The rules of lockkeeper's kinds that say something in CEL, by kind.
#[derive(Default)]
pub(super) struct CelCrossCheck {
    kinds: BTreeMap<String, Vec<CelRulePair>>,
    /// These rules look at one object alone.
    empty_index: Index,
}

/// A rule in both forms.
struct CelRulePair {
    rule: &'static str,
    /// The schema with its expressions, and no others.
    structure: StructuralSchema,
    /// In these it is the only rule that is on: a verdict has room for so many findings.
    settings: Settings,
}

impl CelCrossCheck {
    pub(super) fn new() -> Result<Self, Failure> {
        let mut kinds: BTreeMap<String, Vec<CelRulePair>> = BTreeMap::new();
        for definition in lockkeeper_crdgen::plain_definitions() {
            let kind = definition.spec.names.kind;
            let versions = definition.spec.versions.into_iter();
            let schemas = versions.filter_map(|it| it.schema?.open_api_v3_schema);
            for schema in schemas {
                for rule in rules_for_kind(GROUP, &kind) {
                    if let Some(schema) = schema_with(schema.clone(), &rule)? {
                        let said = CelRulePair::new(&rule, &serde_json::to_value(schema)?)?;
                        kinds.entry(kind.clone()).or_default().push(said);
                    }
                }
            }
        }
        Ok(Self {
            kinds,
            empty_index: Index::default(),
        })
    }

    /// A finding for each rule that says otherwise in Rust than in CEL of an object of the right shape.
    pub(super) fn disagreements(&self, kind: &str, rules: RuleFn, object: &Value) -> Vec<Finding> {
        let all = self.kinds.get(kind).into_iter().flatten();
        let differing = all.filter_map(|said| {
            let context = Context {
                cluster: &self.empty_index,
                settings: &said.settings,
            };
            // What has no type is told of elsewhere.
            let verdict = rules(object, &context).ok()?;
            let is_refused = verdict.denials.iter().any(|it| it.rule == said.rule);
            said.finding(is_refused, !said.structure.check(object, None).is_empty())
        });
        differing.collect()
    }
}

impl CelRulePair {
    fn new(rule: &RuleInfo, schema: &Value) -> Result<Self, Failure> {
        let mut config = Config::default();
        let actions = &mut config.rules.actions;
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

    fn finding(&self, by_rule: bool, by_expressions: bool) -> Option<Finding> {
        let (refuses, accepts) = match (by_rule, by_expressions) {
            (true, false) => ("the rule refuses", "its CEL lets it pass"),
            (false, true) => ("the CEL of the rule refuses", "the rule lets it pass"),
            _ => return None,
        };
        let rule = self.rule;
        let detail = format!(
            "{rule}: {refuses} the object, and {accepts}; this is a mistake of lockkeeper, report it"
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
        reason = "rules may say that an object does not fit its type"
    )]

    use super::*;
    use lockkeeper_policies::engine::Verdict;
    use serde_json::json;

    const LENDS_ALL: &str = "it lends more than it has";

    /// What is said of a queue that lends this much of its four, by rules that refuse it or do not.
    fn details(lends: u32, rules: RuleFn) -> Vec<String> {
        let twice = CelCrossCheck::new().unwrap_or_else(|_| unreachable!("the rules compile"));
        let resource =
            json!({"name": "cpu", "nominalQuota": "4", "lendingLimit": lends.to_string()});
        let group = json!({"coveredResources": ["cpu"], "flavors": [{"name": "a", "resources": [resource]}]});
        let queue = json!({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": "ClusterQueue", "metadata": {"name": "q"},
                           "spec": {"cohortName": "all", "resourceGroups": [group]}});
        let found = twice.disagreements("ClusterQueue", rules, &queue);
        found.into_iter().map(|it| it.detail.into_owned()).collect()
    }

    /// Rules that find nothing.
    fn accept_all(_: &Value, _: &Context<'_>) -> Result<Verdict, Finding> {
        Ok(Verdict::default())
    }

    /// Rules that always refuse by CQ007.
    fn reject_all(_: &Value, _: &Context<'_>) -> Result<Verdict, Finding> {
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
        let end = "this is a mistake of lockkeeper, report it";
        assert_eq!(details(4, accept_all), [""; 0]);
        assert_eq!(
            details(5, accept_all),
            [format!(
                "CQ007: the CEL of the rule refuses the object, and the rule lets it pass; {end}"
            )]
        );
        assert_eq!(
            details(4, reject_all),
            [format!(
                "CQ007: the rule refuses the object, and its CEL lets it pass; {end}"
            )]
        );
        assert_eq!(details(5, reject_all), [""; 0]);
    }
}
