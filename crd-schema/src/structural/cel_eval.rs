//! Evaluates the CEL rules of a schema.

use super::check::{find_stored_item, stored_field};
use super::node::{CelPresence, Expressions, Node};
use super::path::{PathStack, PathStep};
use crate::cel::fast_path::FastCel;
use crate::finding::{ErrorKind, FINDINGS_PER_RULE_MAX, Finding, quoted};
use crate::rule_ids::CEL_RULE_VIOLATION;
use kube_cel::{ValidationErrors, validate_compiled};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::borrow::Cow;

/// Findings for the CEL rules that an object violates.
pub(super) fn expressions(root: &Node, object: &Value, old: Option<&Value>) -> Vec<Finding> {
    let mut evaluator = CelEvaluator {
        findings: Vec::new(),
        is_comparing: false,
    };
    evaluator.node(root, object, old, &mut PathStack::default());
    evaluator.findings
}

/// The CEL rules that the fast path and kube-cel evaluate differently for a new object.
pub(super) fn fast_path_mismatches(root: &Node, object: &Value) -> Vec<Finding> {
    let mut evaluator = CelEvaluator {
        findings: Vec::new(),
        is_comparing: true,
    };
    evaluator.node(root, object, None, &mut PathStack::default());
    evaluator.findings
}

/// Whether the fast path satisfies all rules of a node for a new value. `false` decides nothing: kube-cel then
/// evaluates the rules and produces the messages.
fn all_satisfied_fast(expressions: &Expressions, value: &Value) -> bool {
    let mut results = expressions.fast.iter().map(|all| {
        all.iter()
            .all(|it| it.is_satisfied(value, &expressions.compiled))
    });
    results.next() == Some(true)
}

/// The rules of a node that the fast path satisfies for `fast_value`, and kube-cel does not for `value`.
fn mismatched_rules<'e>(
    expressions: &'e Expressions,
    value: &Value,
    fast_value: &Value,
) -> Vec<&'e str> {
    let schema = &expressions.compiled;
    let result = validate_compiled(schema, value, None);
    let violations = result.err().map_or(Vec::new(), ValidationErrors::into_vec);
    let all = schema.validations.iter().flatten();
    // `false` of the fast path is no difference: kube-cel evaluates the rule then.
    let differing = all.filter(|validation| {
        let is_violated = violations
            .iter()
            .any(|problem| problem.rule == validation.rule.rule);
        let fast = FastCel::from_expr(validation.program.expression());
        is_violated && fast.is_some_and(|fast| fast.is_satisfied(fast_value, schema))
    });
    differing.map(|it| it.rule.rule.as_str()).collect()
}

struct CelEvaluator {
    findings: Vec<Finding>,
    /// Whether to run both evaluators and report only their differences.
    is_comparing: bool,
}

impl CelEvaluator {
    fn node<'a>(
        &mut self,
        node: &'a Node,
        value: &'a Value,
        old: Option<&Value>,
        way: &mut PathStack<'a>,
    ) {
        // Ratcheting: the API server does not evaluate CEL rules of an unchanged value again.
        if old == Some(value) || node.cel_presence == CelPresence::Absent {
            return;
        }
        if let Some(expressions) = &node.expressions {
            // kube-cel copies every value once for each node above it with rules, which is too slow
            // for files. On update the fast path cannot evaluate transition rules.
            if self.is_comparing {
                self.compare(expressions, value, way);
            } else if !(old.is_none() && all_satisfied_fast(expressions, value)) {
                self.evaluate(expressions, value, old, way);
            }
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let (child, step) = match node.properties.get(name) {
                        Some(child) => (Some(child), PathStep::Field(name)),
                        None => (node.additional.as_deref(), PathStep::Entry(name)),
                    };
                    if let Some(child) = child.filter(|it| it.cel_presence != CelPresence::Absent) {
                        let old = stored_field(old, name);
                        way.with_step(step, |way| self.node(child, value, old, way));
                    }
                }
            }
            Value::Array(items) => {
                let Some(child) = node
                    .items
                    .as_deref()
                    .filter(|it| it.cel_presence != CelPresence::Absent)
                else {
                    return;
                };
                for (index, item) in items.iter().enumerate() {
                    // Items of sets and atomic lists have no stored version: their rules always run.
                    let (old, step) = (
                        find_stored_item(&node.list, item, old),
                        PathStep::Index(index),
                    );
                    way.with_step(step, |way| self.node(child, item, old, way));
                }
            }
            _ => {}
        }
    }

    fn compare(&mut self, expressions: &Expressions, value: &Value, way: &PathStack<'_>) {
        for expression in mismatched_rules(expressions, value, value) {
            let detail = format!(
                "the fast path evaluates {} to true, and CEL to false; this is a bug of lockkeeper, please report it",
                quoted(expression)
            );
            self.findings.push(Finding {
                rule: Cow::Borrowed(CEL_RULE_VIOLATION),
                field: way.keyed_path(),
                kind: ErrorKind::Invalid,
                value: None,
                detail: detail.into(),
            });
        }
    }

    fn evaluate(
        &mut self,
        expressions: &Expressions,
        value: &Value,
        old: Option<&Value>,
        way: &PathStack<'_>,
    ) {
        // Without `oldSelf` in any rule, the conversion of the stored value to CEL is wasted work.
        let old = old.filter(|_| expressions.has_transition_rule);
        let result = validate_compiled(&expressions.compiled, value, old);
        for problem in result
            .err()
            .into_iter()
            .flat_map(ValidationErrors::into_vec)
        {
            if self.findings.len() >= FINDINGS_PER_RULE_MAX {
                return;
            }
            // The path of kube-cel starts at this node, with a dot in front.
            let relative = problem.field_path.trim_start_matches('.');
            let path = relative.split('.').filter(|it| !it.is_empty());
            let field = path.fold(way.keyed_path(), FieldPath::named);
            self.findings.push(Finding {
                rule: Cow::Borrowed(CEL_RULE_VIOLATION),
                field,
                kind: error_kind(problem.reason.as_deref()),
                value: None,
                detail: problem.message.into(),
            });
        }
    }
}

/// The kind of error for the `reason` of a rule.
fn error_kind(reason: Option<&str>) -> ErrorKind {
    match reason {
        Some("FieldValueRequired") => ErrorKind::Required,
        Some("FieldValueForbidden") => ErrorKind::Forbidden,
        Some("FieldValueDuplicate") => ErrorKind::Duplicate,
        _ => ErrorKind::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::super::node::Node;
    use super::{fast_path_mismatches, mismatched_rules};
    use serde_json::json;

    #[test]
    fn fast_path_mismatch_names_its_expression() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"n": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.n > 1"}, {"rule": "self.n > 3"}, {"rule": "self.n == oldSelf.n"}]}}});
        let root = Node::new(&schema, &mut Vec::new()).unwrap();
        let expressions = root.properties["a"].expressions.as_ref().unwrap();
        let value = |n: i64| json!({"n": n});
        let differing =
            |n, fast_n| mismatched_rules(expressions, &value(n), &value(fast_n)).concat();
        assert_eq!(differing(2, 2), "");
        assert_eq!(differing(2, 4), "self.n > 3");
        assert_eq!(differing(0, 2), "self.n > 1");
        assert_eq!(differing(0, 5), "self.n > 1self.n > 3");
        for n in [0, 2, 4] {
            assert_eq!(fast_path_mismatches(&root, &json!({"a": {"n": n}})), []);
        }
    }
}
