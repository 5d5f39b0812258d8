//! Judges objects by the rules of users.

use super::Rules;
use super::expression::{Expression, Fault, Seen, WORK_TOTAL_MAX};
use super::front::FailurePolicy;
use super::page::{KindName, Rule, Validation, is_message};
use crate::engine::{Subject, Verdict, excuse};
use crate::finding::{ErrorKind, FINDINGS_PER_RULE_MAX, Finding};
use crate::rule::{Change, Operation};
use crate::settings::Settings;
use crate::structure::shown;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_cel::cel::Value as Cel;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Judges an object by the rules of users for its kind, and adds what they find to the verdict: with their
/// actions, exceptions and bounds as for any other rule.
///
/// An update is not refused for what the stored object had already, unless the expression asks for that one by
/// itself.
pub fn review(
    rules: &Rules,
    kind: KindName<'_>,
    subject: &Subject<'_, Value>,
    settings: &Settings,
    verdict: &mut Verdict,
) {
    let metadata = metadata(new_of(subject));
    let namespace = metadata.namespace.as_deref();
    let rules = rules.about(kind).filter_map(|rule| {
        let action = settings.action(&rule.id, rule.action, namespace);
        (action != Action::Off).then_some((rule, action))
    });
    run(rules, kind, subject, settings, verdict);
}

/// The same by these rules, with these actions.
pub(super) fn run<'a>(
    rules: impl Iterator<Item = (&'a Rule, Action)>,
    kind: KindName<'_>,
    subject: &Subject<'_, Value>,
    settings: &Settings,
    verdict: &mut Verdict,
) {
    let operation = match subject {
        Subject::Create(_) => Operation::Create,
        Subject::Update(_) => Operation::Update,
        Subject::Delete(_) => Operation::Delete,
    };
    let rules = rules.filter(|(it, _)| it.operations.contains(&operation));
    let mut rules = rules.peekable();
    // To make an object ready takes longer than most rules.
    if rules.peek().is_none() {
        return;
    }
    let metadata = metadata(new_of(subject));
    let mut bench = Bench::new(kind, subject, operation, &metadata);
    for (rule, action) in rules {
        let findings = bench.findings(rule);
        verdict.settle(&rule.id, action, findings, settings, &metadata);
    }
}

/// The object itself; that of an update as it would be.
fn new_of<'a>(subject: &Subject<'a, Value>) -> &'a Value {
    match subject {
        Subject::Create(object) | Subject::Delete(object) => object,
        Subject::Update(change) => change.new,
    }
}

/// What is known of an object's metadata; what is not as it should be is as if it were not there.
fn metadata(object: &Value) -> ObjectMeta {
    let given = object.get("metadata");
    let read = given.and_then(|it| ObjectMeta::deserialize(it).ok());
    read.unwrap_or_default()
}

/// An object, ready to be asked about.
struct Bench<'a> {
    subject: &'a Subject<'a, Value>,
    operation: Operation,
    request: Value,
    now: Seen,
    /// The stored object by itself, once it is asked about.
    before: Option<Seen>,
    left: u64,
}

impl<'a> Bench<'a> {
    fn new(
        kind: KindName<'_>,
        subject: &'a Subject<'a, Value>,
        operation: Operation,
        metadata: &ObjectMeta,
    ) -> Self {
        let request = json!({
            "operation": operation.as_str(),
            "name": metadata.name.as_deref().unwrap_or_default(),
            "namespace": metadata.namespace.as_deref().unwrap_or_default(),
            "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        });
        let now = match subject {
            Subject::Create(object) => seen(object, &Value::Null, &request),
            Subject::Update(Change { old, new }) => seen(new, old, &request),
            Subject::Delete(object) => seen(object, object, &request),
        };
        Self {
            subject,
            operation,
            request,
            now,
            before: None,
            left: WORK_TOTAL_MAX,
        }
    }

    /// The findings of one rule.
    fn findings(&mut self, rule: &Rule) -> Vec<Finding> {
        let object = new_of(self.subject);
        let mut findings = Vec::new();
        match applies(rule, &self.now, &mut self.left) {
            Ok(true) => {}
            Ok(false) => return findings,
            Err(fault) => {
                findings.extend(unjudged(rule, None, object, &fault));
                return findings;
            }
        }
        for validation in &rule.validations {
            // Such a one is about a change alone, as it is in a CRD.
            if self.operation == Operation::Create && validation.expression.names(&["oldSelf"]) {
                continue;
            }
            let Some(finding) = ask(rule, validation, &self.now, object, &mut self.left) else {
                continue;
            };
            if findings.len() < FINDINGS_PER_RULE_MAX && !self.was_there(rule, validation, &finding)
            {
                findings.push(finding);
            }
        }
        findings
    }

    /// Whether the stored object gives the same finding.
    fn was_there(&mut self, rule: &Rule, validation: &Validation, finding: &Finding) -> bool {
        let Subject::Update(Change { old, .. }) = self.subject else {
            return false;
        };
        if validation.expression.names(&["oldObject", "oldSelf"]) {
            return false;
        }
        let request = &self.request;
        let before = self
            .before
            .get_or_insert_with(|| seen(old, &Value::Null, request));
        let before = match applies(rule, before, &mut self.left) {
            Ok(true) => ask(rule, validation, before, old, &mut self.left),
            Ok(false) => None,
            Err(fault) => unjudged(rule, None, old, &fault),
        };
        let mut findings = vec![finding.clone()];
        excuse(&mut findings, before.as_slice());
        findings.is_empty()
    }
}

fn seen(object: &Value, old: &Value, request: &Value) -> Seen {
    Seen::new(&[
        (&["object", "self"], object),
        (&["oldObject", "oldSelf"], old),
        (&["request"], request),
    ])
}

/// Whether a rule is about the object: all of its conditions hold. As in Kubernetes one that does not goes
/// before one that cannot be asked.
fn applies(rule: &Rule, seen: &Seen, left: &mut u64) -> Result<bool, Fault> {
    let mut fault = None;
    for condition in &rule.conditions {
        match seen.holds(condition, left) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(it) => fault = fault.or(Some(it)),
        }
    }
    fault.map_or(Ok(true), Err)
}

/// What one validation finds.
fn ask(
    rule: &Rule,
    validation: &Validation,
    seen: &Seen,
    object: &Value,
    left: &mut u64,
) -> Option<Finding> {
    match seen.holds(&validation.expression, left) {
        Ok(true) => None,
        Ok(false) => {
            let text = message(validation, seen, left);
            Some(finding(rule, validation, object, text))
        }
        Err(fault) => unjudged(rule, Some(validation), object, &fault),
    }
}

fn message(validation: &Validation, seen: &Seen, left: &mut u64) -> String {
    let told = validation.message_expression.as_ref();
    let told = told.and_then(|it| spoken(it, seen, left));
    let told = told.or_else(|| validation.message.clone());
    told.unwrap_or_else(|| format!("this must hold: {}", validation.expression.text.trim()))
}

/// The text that an expression gives; `None` if it gives none that can be shown, as in Kubernetes.
fn spoken(expression: &Expression, seen: &Seen, left: &mut u64) -> Option<String> {
    match seen.ask(expression, left).ok()? {
        Cel::String(text) if is_message(&text) => Some(text.trim().to_owned()),
        _ => None,
    }
}

fn finding(rule: &Rule, validation: &Validation, object: &Value, detail: String) -> Finding {
    let has_value = matches!(validation.kind, ErrorKind::Invalid | ErrorKind::Duplicate);
    let at = validation.field.pointer();
    // The whole object is no value to show.
    let value = object.pointer(&at).filter(|_| has_value && !at.is_empty());
    Finding {
        rule: Cow::Owned(rule.id.clone()),
        field: validation.field.clone(),
        kind: validation.kind,
        value: value.map(shown),
        detail: detail.into(),
    }
}

/// What becomes of a rule that cannot judge.
fn unjudged(
    rule: &Rule,
    validation: Option<&Validation>,
    object: &Value,
    fault: &Fault,
) -> Option<Finding> {
    if rule.failure_policy == FailurePolicy::Ignore {
        return None;
    }
    let detail = format!("the rule cannot judge it: {fault}");
    Some(match validation {
        Some(validation) => finding(rule, validation, object, detail),
        None => Finding {
            rule: Cow::Owned(rule.id.clone()),
            field: FieldPath::default(),
            kind: ErrorKind::Invalid,
            value: None,
            detail: detail.into(),
        },
    })
}
