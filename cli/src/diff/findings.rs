//! The findings of rules about queues, cohorts, flavors and classes that a change adds or resolves.

use crate::world_source::QueueObjects;
use anyhow::Error;
use lockkeeper_api::config::Config;
use lockkeeper_check::report::ReportedFinding;
use lockkeeper_check::{
    Checker, Converter, Identity, LoopFindings, LoopSearchInput, RuleSelection, Severity,
    convert_value, offline_settings,
};
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::preemption_loops;
use lockkeeper_policies::user_rules::UserRules;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A checked object. Absent fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckedName {
    /// Group and version.
    pub(super) api_version: String,
    /// The kind.
    pub(super) kind: String,
    /// The namespace.
    pub(super) namespace: String,
    /// The name.
    pub(super) name: String,
}

/// A finding about an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueueFinding {
    /// The id of the rule.
    pub(super) rule: String,
    /// `error` or `warning`.
    pub(super) severity: &'static str,
    /// The object.
    pub(super) object: CheckedName,
    /// The path of the field.
    pub(super) field: String,
    /// The path, the violation and the accepted values.
    pub(super) message: String,
    /// The steps of a preemption loop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) steps: Vec<String>,
}

impl QueueFinding {
    /// Whether workloads may preempt each other in turn.
    pub(super) fn is_preemption_loop(&self) -> bool {
        self.rule == preemption_loops::RULE
    }
}

/// The findings that only one side has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FindingChanges {
    /// Findings after the change alone.
    pub(super) new_findings: Vec<QueueFinding>,
    /// Findings before the change alone.
    pub(super) resolved_findings: Vec<QueueFinding>,
}

impl FindingChanges {
    /// Whether both sides have the same findings.
    pub(super) const fn is_empty(&self) -> bool {
        self.new_findings.is_empty() && self.resolved_findings.is_empty()
    }

    /// Whether the change adds an error, or makes a preemption loop possible.
    pub(super) fn is_harmful(&self) -> bool {
        let mut added = self.new_findings.iter();
        added.any(|it| it.severity == Severity::Error.word() || it.is_preemption_loop())
    }
}

/// Object, rule and field. The message is not part of it: amounts in it may change.
type FindingKey = (CheckedName, String, String);

/// Compares the findings on both sides. Exceptions of the configuration end at `now_seconds`, since 1970.
///
/// # Errors
///
/// The configuration names an unknown rule.
pub(super) fn compare_findings(
    before: &QueueObjects,
    after: &QueueObjects,
    config: &Config,
    now_seconds: i64,
) -> Result<FindingChanges, Error> {
    let before = findings(before, config, now_seconds)?;
    let after = findings(after, config, now_seconds)?;
    let only = |one: &BTreeMap<FindingKey, QueueFinding>, other: &BTreeMap<FindingKey, _>| {
        let keys = one.iter().filter(|(key, _)| !other.contains_key(*key));
        keys.map(|(_, finding)| finding.clone()).collect()
    };
    Ok(FindingChanges {
        new_findings: only(&after, &before),
        resolved_findings: only(&before, &after),
    })
}

/// The findings about all objects.
fn findings(
    objects: &QueueObjects,
    config: &Config,
    now_seconds: i64,
) -> Result<BTreeMap<FindingKey, QueueFinding>, Error> {
    let selection = RuleSelection::default();
    let user_rules = Arc::new(UserRules::default());
    let settings = offline_settings(config.clone(), user_rules, &selection, now_seconds)?;
    let mut index = Index::default();
    let mut loop_input = LoopSearchInput::default();
    for (number, object) in objects.iter().enumerate() {
        // An object that does not fit its type has no facts; its check reports why.
        let _ = facts::ingest(&mut index, object);
        loop_input.add_object((0, number), object);
    }
    let loops = loop_input.search(config, None);
    let checker =
        Checker::new(settings, index, selection, LoopFindings::new())?.with_served_versions();
    let converter = Converter::default();
    let mut found = BTreeMap::new();
    for (number, object) in objects.iter().enumerate() {
        let document = convert_value(&converter, object.clone());
        let found_loop = loops.get(&(0, number));
        let Some(result) = checker.check_document(document, found_loop) else {
            continue;
        };
        let identity = result.object.identity;
        let reported = result.object.findings.into_iter();
        for reported in reported.filter(|it| it.suppressed.is_none()) {
            let finding = queue_finding(&identity, reported);
            let mut object = finding.object.clone();
            // A change of the version of an object does not change its findings.
            object
                .api_version
                .truncate(group_length(&object.api_version));
            let key = (object, finding.rule.clone(), finding.field.clone());
            found.insert(key, finding);
        }
    }
    Ok(found)
}

fn queue_finding(identity: &Identity, reported: ReportedFinding) -> QueueFinding {
    QueueFinding {
        rule: reported.finding.rule.to_string(),
        severity: reported.severity.word(),
        object: CheckedName {
            api_version: identity.api_version.clone(),
            kind: identity.kind.clone(),
            namespace: identity.namespace.clone(),
            name: identity.name.clone(),
        },
        field: reported.finding.field.text(),
        message: reported.finding.text(),
        steps: reported.notes,
    }
}

/// The length of the API group in `GROUP/VERSION`.
fn group_length(api_version: &str) -> usize {
    api_version
        .split_once('/')
        .map_or(0, |(group, _)| group.len())
}
