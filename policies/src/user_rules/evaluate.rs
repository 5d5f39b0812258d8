//! Runs user rules on objects.

use super::front_matter::FailurePolicy;
use super::page::{KindName, UserRule, Validation, is_message};
use super::rule_set::UserRules;
use crate::engine::{ReviewSubject, Verdict, drop_preexisting};
use crate::finding::{ErrorKind, FINDINGS_PER_RULE_MAX, Finding};
use crate::rule::{Change, Operation};
use crate::settings::Settings;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_crd_schema::cel::{COST_TOTAL_MAX, EvaluationError, EvaluationInput, Expression};
use lockkeeper_crd_schema::display_value;
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Runs the user rules of a kind on an object and adds their findings to the verdict. Actions, exceptions and limits
/// work as for built-in rules.
///
/// Pre-existing findings are dropped on update, unless the expression reads the stored object itself.
pub fn review(
    rules: &UserRules,
    kind: KindName<'_>,
    subject: &ReviewSubject<'_, Value>,
    settings: &Settings,
    verdict: &mut Verdict,
) {
    let metadata = metadata(current_object(subject));
    let namespace = metadata.namespace.as_deref();
    let rules = rules.for_kind(kind).filter_map(|rule| {
        let action = settings.action(&rule.id, rule.action, namespace);
        (action != Action::Off).then_some((rule, action))
    });
    run_rules(rules, kind, subject, settings, verdict);
}

/// Runs these rules with these actions.
pub(super) fn run_rules<'a>(
    rules: impl Iterator<Item = (&'a UserRule, Action)>,
    kind: KindName<'_>,
    subject: &ReviewSubject<'_, Value>,
    settings: &Settings,
    verdict: &mut Verdict,
) {
    let operation = match subject {
        ReviewSubject::Create(_) => Operation::Create,
        ReviewSubject::Update(_) => Operation::Update,
        ReviewSubject::Delete(_) => Operation::Delete,
    };
    let rules = rules.filter(|(it, _)| it.operations.contains(&operation));
    let mut rules = rules.peekable();
    // Converting an object to CEL values takes longer than most rules.
    if rules.peek().is_none() {
        return;
    }
    let metadata = metadata(current_object(subject));
    let mut evaluator = RuleEvaluator::new(kind, subject, operation, &metadata);
    for (rule, action) in rules {
        let findings = evaluator.findings(rule);
        verdict.record(&rule.id, action, findings, settings, &metadata);
    }
}

/// The object under review; for an update the new one.
fn current_object<'a>(subject: &ReviewSubject<'a, Value>) -> &'a Value {
    match subject {
        ReviewSubject::Create(object) | ReviewSubject::Delete(object) => object,
        ReviewSubject::Update(change) => change.new,
    }
}

/// The metadata of an object; empty if it does not decode.
fn metadata(object: &Value) -> ObjectMeta {
    let given = object.get("metadata");
    let read = given.and_then(|it| ObjectMeta::deserialize(it).ok());
    read.unwrap_or_default()
}

/// The variables and remaining cost for the rules of one object.
struct RuleEvaluator<'a> {
    subject: &'a ReviewSubject<'a, Value>,
    operation: Operation,
    request: Value,
    current: EvaluationInput,
    /// The input for the stored object, built on first use.
    stored: Option<EvaluationInput>,
    remaining_cost: u64,
}

impl<'a> RuleEvaluator<'a> {
    fn new(
        kind: KindName<'_>,
        subject: &'a ReviewSubject<'a, Value>,
        operation: Operation,
        metadata: &ObjectMeta,
    ) -> Self {
        let request = json!({
            "operation": operation.as_str(),
            "name": metadata.name.as_deref().unwrap_or_default(),
            "namespace": metadata.namespace.as_deref().unwrap_or_default(),
            "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        });
        let current = match subject {
            ReviewSubject::Create(object) => evaluation_input(object, &Value::Null, &request),
            ReviewSubject::Update(Change { old, new }) => evaluation_input(new, old, &request),
            // On delete both variables are the stored object, so a rule may read either.
            ReviewSubject::Delete(object) => evaluation_input(object, object, &request),
        };
        Self {
            subject,
            operation,
            request,
            current,
            stored: None,
            remaining_cost: COST_TOTAL_MAX,
        }
    }

    /// The findings of one rule.
    fn findings(&mut self, rule: &UserRule) -> Vec<Finding> {
        let object = current_object(self.subject);
        let mut findings = Vec::new();
        match applies(rule, &self.current, &mut self.remaining_cost) {
            Ok(true) => {}
            Ok(false) => return findings,
            Err(fault) => {
                findings.extend(failure_finding(rule, None, object, &fault));
                return findings;
            }
        }
        for validation in &rule.validations {
            // A rule with oldSelf applies to updates only, as in a CRD.
            if self.operation == Operation::Create
                && validation.expression.references_any(&["oldSelf"])
            {
                continue;
            }
            let Some(finding) = validate(
                rule,
                validation,
                &self.current,
                object,
                &mut self.remaining_cost,
            ) else {
                continue;
            };
            if findings.len() < FINDINGS_PER_RULE_MAX
                && !self.is_preexisting(rule, validation, &finding)
            {
                findings.push(finding);
            }
        }
        findings
    }

    /// Whether the stored object has the same finding.
    fn is_preexisting(
        &mut self,
        rule: &UserRule,
        validation: &Validation,
        finding: &Finding,
    ) -> bool {
        let ReviewSubject::Update(Change { old, .. }) = self.subject else {
            return false;
        };
        // A rule that compares both objects has no result for the stored object alone.
        if validation
            .expression
            .references_any(&["oldObject", "oldSelf"])
        {
            return false;
        }
        let request = &self.request;
        let before = self
            .stored
            .get_or_insert_with(|| evaluation_input(old, &Value::Null, request));
        let before = match applies(rule, before, &mut self.remaining_cost) {
            Ok(true) => validate(rule, validation, before, old, &mut self.remaining_cost),
            Ok(false) => None,
            Err(fault) => failure_finding(rule, None, old, &fault),
        };
        let mut findings = vec![finding.clone()];
        drop_preexisting(&mut findings, before.as_slice());
        findings.is_empty()
    }
}

fn evaluation_input(object: &Value, old: &Value, request: &Value) -> EvaluationInput {
    EvaluationInput::new(&[
        (&["object", "self"], object),
        (&["oldObject", "oldSelf"], old),
        (&["request"], request),
    ])
}

/// Whether all match conditions of a rule are true. As in Kubernetes a false condition takes precedence over one that
/// fails.
fn applies(
    rule: &UserRule,
    input: &EvaluationInput,
    remaining_cost: &mut u64,
) -> Result<bool, EvaluationError> {
    let mut fault = None;
    for condition in &rule.conditions {
        match input.evaluate_bool(condition, remaining_cost) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            // No early return: a later condition may be false.
            Err(it) => fault = fault.or(Some(it)),
        }
    }
    fault.map_or(Ok(true), Err)
}

/// Runs one validation.
fn validate(
    rule: &UserRule,
    validation: &Validation,
    input: &EvaluationInput,
    object: &Value,
    remaining_cost: &mut u64,
) -> Option<Finding> {
    match input.evaluate_bool(&validation.expression, remaining_cost) {
        Ok(true) => None,
        Ok(false) => {
            let text = message(validation, input, remaining_cost);
            Some(finding(rule, validation, object, text))
        }
        Err(fault) => failure_finding(rule, Some(validation), object, &fault),
    }
}

fn message(validation: &Validation, input: &EvaluationInput, remaining_cost: &mut u64) -> String {
    let text = validation.message_expression.as_ref();
    let text = text.and_then(|it| evaluated_message(it, input, remaining_cost));
    let text = text.or_else(|| validation.message.clone());
    text.unwrap_or_else(|| format!("this must hold: {}", validation.expression.text().trim()))
}

/// The message from an expression; `None` if it is not a valid message, as in Kubernetes.
fn evaluated_message(
    expression: &Expression,
    input: &EvaluationInput,
    remaining_cost: &mut u64,
) -> Option<String> {
    let text = input.evaluate_string(expression, remaining_cost).ok()??;
    is_message(&text).then(|| text.trim().to_owned())
}

fn finding(rule: &UserRule, validation: &Validation, object: &Value, detail: String) -> Finding {
    let has_value = matches!(validation.kind, ErrorKind::Invalid | ErrorKind::Duplicate);
    let at = validation.field.pointer();
    // The whole object is too large to print.
    let value = object.pointer(&at).filter(|_| has_value && !at.is_empty());
    Finding {
        rule: Cow::Owned(rule.id.clone()),
        field: validation.field.clone(),
        kind: validation.kind,
        value: value.map(display_value),
        detail: detail.into(),
    }
}

/// The finding for a failed evaluation; `None` if the failure policy is `Ignore`.
fn failure_finding(
    rule: &UserRule,
    validation: Option<&Validation>,
    object: &Value,
    fault: &EvaluationError,
) -> Option<Finding> {
    if rule.failure_policy == FailurePolicy::Ignore {
        return None;
    }
    let detail = format!("the rule cannot be evaluated: {fault}");
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
