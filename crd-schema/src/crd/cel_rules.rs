//! Evaluates the CEL rules of a schema, with transition rules and ratcheting, as
//! `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel`.

use super::cel_rule::Rule;
use super::correlation::{Correlated, find_item};
use super::expression::{Budget, Failure, Scope, Value as Cel, evaluate};
use super::node::{Kind, Node};
use super::values::quoted_json;
use crate::finding::{ErrorKind, FINDINGS_PER_RULE_MAX, Finding};
use crate::rule_ids::CEL_RULE_VIOLATION;
use crate::structural::path::{PathStack, PathStep};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::borrow::Cow;

/// The longest evaluated message, in bytes.
const MESSAGE_MAX_BYTES: usize = 5 * 1024;

const BUDGET_EXCEEDED: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Findings for a new object.
pub(super) fn validate(root: &Node, object: &Value) -> Vec<Finding> {
    Validator::default()
        .run(root, object, None, Ratchet::default())
        .0
}

/// Findings for a value that is also the stored one, without ratcheting.
pub(super) fn validate_unchanged(root: &Node, value: &Value) -> Vec<Finding> {
    let ratchet = Ratchet::default();
    Validator::default()
        .run(root, value, Some(value), ratchet)
        .0
}

/// Findings for an update, and findings that are only warnings because their part is unchanged.
pub(super) fn validate_update(
    root: &Node,
    object: &Value,
    old: &Value,
) -> (Vec<Finding>, Vec<Finding>) {
    let ratchet = Ratchet {
        current: Some(Correlated::root(root, object, Some(old))),
        parent: None,
    };
    Validator::default().run(root, object, Some(old), ratchet)
}

/// The stored version of the current part, or of the nearest part above it that has one.
#[derive(Clone, Copy, Default)]
struct Ratchet<'a> {
    current: Option<Correlated<'a>>,
    parent: Option<Correlated<'a>>,
}

impl Ratchet<'_> {
    fn is_unchanged(self) -> bool {
        let nearest = self.current.or(self.parent);
        nearest.is_some_and(Correlated::is_unchanged)
    }

    fn key(self, name: &str) -> Self {
        let Some(current) = self.current else {
            return self;
        };
        if self.parent.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self::default();
        }
        Self {
            current: current.key(name),
            parent: Some(current),
        }
    }

    fn index(self, position: usize) -> Self {
        let Some(current) = self.current else {
            return self;
        };
        Self {
            current: current.index(position),
            parent: Some(current),
        }
    }
}

#[derive(Default)]
struct Validator<'a> {
    way: PathStack<'a>,
    findings: Vec<Finding>,
    warnings: Vec<Finding>,
    budget: Budget,
    /// The cost limit is exceeded: no further rules are evaluated.
    is_stopped: bool,
}

impl<'a> Validator<'a> {
    fn run(
        mut self,
        root: &'a Node,
        object: &'a Value,
        old: Option<&'a Value>,
        ratchet: Ratchet<'a>,
    ) -> (Vec<Finding>, Vec<Finding>) {
        self.node(root, root, object, old, ratchet, true);
        (self.findings, self.warnings)
    }

    /// Evaluates the rules of `rules`, which is `schema` or a branch of its `allOf`.
    fn node(
        &mut self,
        rules: &'a Node,
        schema: &'a Node,
        value: &'a Value,
        old: Option<&'a Value>,
        ratchet: Ratchet<'a>,
        is_resource: bool,
    ) {
        if self.is_stopped || value.is_null() || !rules.has_rules_below {
            return;
        }
        let old = old.filter(|it| !it.is_null());
        if !rules.rules.is_empty() {
            self.rules(&rules.rules, schema, value, old, ratchet, is_resource);
        }
        for branch in &rules.all_of {
            let ratchet = Ratchet {
                current: None,
                parent: ratchet.parent,
            };
            self.node(branch, schema, value, old, ratchet, is_resource);
        }
        match value {
            Value::Array(items) => {
                let (Some(rules), Some(below)) = (rules.items.as_deref(), schema.items.as_deref())
                else {
                    return;
                };
                for (position, item) in items.iter().enumerate() {
                    let old = find_item(schema, old, item);
                    self.way.push(PathStep::Index(position));
                    self.node(
                        rules,
                        below,
                        item,
                        old,
                        ratchet.index(position),
                        below.is_embedded,
                    );
                    self.way.pop();
                }
            }
            Value::Object(fields) => {
                let stored = |name: &str| old.and_then(|it| it.get(name));
                for (name, value) in fields {
                    let additional = (rules.additional.as_deref(), schema.additional.as_deref());
                    let property = (rules.properties.get(name), schema.properties.get(name));
                    let steps = [
                        (additional, PathStep::Entry(name)),
                        (property, PathStep::Field(name)),
                    ];
                    for (nodes, step) in steps {
                        if let (Some(rules), Some(below)) = nodes {
                            let ratchet = ratchet.key(name);
                            self.way.push(step);
                            self.node(
                                rules,
                                below,
                                value,
                                stored(name),
                                ratchet,
                                below.is_embedded,
                            );
                            self.way.pop();
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn rules(
        &mut self,
        rules: &'a [Rule],
        schema: &'a Node,
        value: &'a Value,
        old: Option<&'a Value>,
        ratchet: Ratchet<'a>,
        is_resource: bool,
    ) {
        for rule in rules {
            if self.is_stopped {
                return;
            }
            // A definition with an empty rule is not accepted; its defaults are checked all the same.
            if rule.text.trim().is_empty() {
                continue;
            }
            let program = match &rule.program {
                Ok(program) => program,
                Err(reason) => {
                    self.report(
                        ErrorKind::Invalid,
                        None,
                        format!("rule compile error: {reason}"),
                    );
                    continue;
                }
            };
            let uses_old = program.uses("oldSelf");
            if uses_old && old.is_none() && !rule.has_optional_old_self {
                continue;
            }
            let old = old.filter(|_| uses_old);
            let values = (value, old);
            let mut scope = scope_of(
                values,
                schema,
                uses_old && rule.has_optional_old_self,
                is_resource,
            );
            match evaluate(program, &mut scope, &mut self.budget) {
                Ok(Cel::Bool(true)) => {}
                Ok(Cel::Bool(false)) => {
                    let (message, is_stopped) = self.message(rule, &mut scope);
                    self.is_stopped = is_stopped;
                    let mut finding = self.violation(rule, schema, value, message);
                    if is_stopped {
                        finding.kind = ErrorKind::Invalid;
                    }
                    if !uses_old && ratchet.is_unchanged() {
                        self.warnings.push(finding);
                    } else if self.findings.len() < FINDINGS_PER_RULE_MAX {
                        self.findings.push(finding);
                    }
                }
                Ok(_) => self.report(
                    ErrorKind::Invalid,
                    None,
                    "the rule has no boolean result".to_owned(),
                ),
                Err(Failure::CostExceeded) => {
                    let detail = format!(
                        "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        rule.name()
                    );
                    self.stop(self.way.keyed_path(), detail.into());
                }
                Err(Failure::BudgetExceeded) => {
                    self.stop(self.way.keyed_path(), BUDGET_EXCEEDED.into());
                }
                Err(Failure::Error(reason) | Failure::Unknown(reason)) => {
                    let detail = format!("{reason} evaluating rule: {}", rule.name());
                    self.report(ErrorKind::Invalid, None, detail);
                }
            }
        }
    }

    fn report(&mut self, kind: ErrorKind, value: Option<String>, detail: String) {
        if self.findings.len() < FINDINGS_PER_RULE_MAX {
            self.findings.push(Finding {
                rule: Cow::Borrowed(CEL_RULE_VIOLATION),
                field: self.way.keyed_path(),
                kind,
                value,
                detail: detail.into(),
            });
        }
    }

    /// Reports an exceeded limit, and ends the evaluation of rules.
    fn stop(&mut self, field: FieldPath, detail: Cow<'static, str>) {
        self.is_stopped = true;
        if self.findings.len() < FINDINGS_PER_RULE_MAX {
            self.findings.push(Finding {
                rule: Cow::Borrowed(CEL_RULE_VIOLATION),
                field,
                kind: ErrorKind::Invalid,
                value: None,
                detail,
            });
        }
    }

    /// The message of a violated rule, and whether it exceeds a cost limit.
    fn message(&mut self, rule: &Rule, scope: &mut Scope<'a>) -> (String, bool) {
        let Some(program) = &rule.message_expression else {
            return (rule.default_message(), false);
        };
        let exceeded = match evaluate(program, scope, &mut self.budget) {
            Ok(value) => {
                let text = value.as_text().map(str::trim).unwrap_or_default();
                let is_usable =
                    !text.is_empty() && !text.contains('\n') && text.len() <= MESSAGE_MAX_BYTES;
                if is_usable {
                    return (text.to_owned(), false);
                }
                None
            }
            Err(Failure::CostExceeded) => Some(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression",
            ),
            Err(Failure::BudgetExceeded) => Some(
                "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run",
            ),
            Err(Failure::Error(_) | Failure::Unknown(_)) => None,
        };
        match exceeded {
            Some(exceeded) => (exceeded.to_owned(), true),
            None => (rule.default_message(), false),
        }
    }

    fn violation(&self, rule: &Rule, schema: &Node, value: &Value, message: String) -> Finding {
        let base = self.way.keyed_path();
        let field = if rule.field_path.is_empty() {
            base
        } else {
            field_below(base, schema, rule)
        };
        let is_compound = matches!(schema.kind, Some(Kind::Object | Kind::Array));
        let kind = match rule.reason.as_deref() {
            Some("FieldValueRequired") => ErrorKind::Required,
            Some("FieldValueForbidden") => ErrorKind::Forbidden,
            Some("FieldValueDuplicate") => ErrorKind::Duplicate,
            _ => ErrorKind::Invalid,
        };
        Finding {
            rule: Cow::Borrowed(CEL_RULE_VIOLATION),
            field,
            kind,
            value: (!is_compound).then(|| quoted_json(value)),
            detail: message.into(),
        }
    }
}

/// The variables of a rule: the value, and the stored one if the rule reads it.
fn scope_of<'a>(
    (value, old): (&'a Value, Option<&'a Value>),
    schema: &'a Node,
    is_optional: bool,
    is_resource: bool,
) -> Scope<'a> {
    let mut scope = Scope::new();
    scope.set("self", Cel::from_json(value, schema, is_resource));
    let stored = old.map(|it| Cel::from_json(it, schema, is_resource));
    if is_optional {
        let optional = stored.transpose().map(Cel::optional);
        scope.set("oldSelf", optional);
    } else if let Some(stored) = stored {
        scope.set("oldSelf", stored);
    }
    scope
}

/// The field that `fieldPath` names. Keys of maps are printed in brackets.
fn field_below(base: FieldPath, schema: &Node, rule: &Rule) -> FieldPath {
    let mut schema = Some(schema);
    let mut path = base.clone();
    for (position, part) in rule.field_path.iter().enumerate() {
        let property = schema.and_then(|it| it.properties.get(&part.0));
        // Only rules of invalid definitions name fields that do not exist.
        if schema.is_some_and(|it| property.is_none() && it.additional.is_none()) {
            return base;
        }
        let is_map = schema.is_some_and(|it| !it.has_properties && it.additional.is_some());
        path = if is_map && position == 0 {
            // The API server appends the text of the path.
            path.named(format!("[{}]", part.0))
        } else if is_map {
            path.key(part.0.as_str())
        } else {
            path.named(part.0.as_str())
        };
        schema = property.or_else(|| schema.and_then(|it| it.additional.as_deref()));
    }
    path
}
