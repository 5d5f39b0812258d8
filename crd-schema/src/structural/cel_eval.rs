//! What the expressions in a schema say of an object.

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

/// The expressions that say no.
pub(super) fn expressions(root: &Node, object: &Value, old: Option<&Value>) -> Vec<Finding> {
    let mut asked = CelEvaluator {
        findings: Vec::new(),
        is_comparing: false,
    };
    asked.node(root, object, old, &mut PathStack::default());
    asked.findings
}

/// The expressions that the quick way and kube-cel answer differently, of an object that is made.
pub(super) fn fast_path_mismatches(root: &Node, object: &Value) -> Vec<Finding> {
    let mut asked = CelEvaluator {
        findings: Vec::new(),
        is_comparing: true,
    };
    asked.node(root, object, None, &mut PathStack::default());
    asked.findings
}

/// Whether all expressions of a place say yes to a value that is made. `false` says nothing: kube-cel is asked then,
/// which has the messages. It copies every value below a place once for each place above it, and what an expression
/// looks at each time: that makes asking it first too slow for files.
fn all_satisfied_fast(expressions: &Expressions, value: &Value) -> bool {
    let quick = expressions.fast.iter();
    let mut quick = quick.map(|all| {
        all.iter()
            .all(|it| it.is_satisfied(value, &expressions.compiled))
    });
    quick.next() == Some(true)
}

/// The expressions of a place that the quick way, which sees `seen`, says yes to, and kube-cel does not.
fn mismatched_rules<'e>(expressions: &'e Expressions, value: &Value, seen: &Value) -> Vec<&'e str> {
    let schema = &expressions.compiled;
    let answer = validate_compiled(schema, value, None);
    let refused = answer.err().map_or(Vec::new(), ValidationErrors::into_vec);
    let all = schema.validations.iter().flatten();
    let differing = all.filter(|it| {
        let is_refused = refused.iter().any(|problem| problem.rule == it.rule.rule);
        let quick = FastCel::from_expr(it.program.expression());
        is_refused && quick.is_some_and(|quick| quick.is_satisfied(seen, schema))
    });
    differing.map(|it| it.rule.rule.as_str()).collect()
}

struct CelEvaluator {
    findings: Vec<Finding>,
    /// Whether both ways are asked, and only what they disagree about is told.
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
        if old == Some(value) || node.cel_presence == CelPresence::Absent {
            return;
        }
        if let Some(expressions) = &node.expressions {
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
                "the quick way says that it meets {}, and CEL does not; this is a mistake of lockkeeper, report it",
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
        let old = old.filter(|_| expressions.has_transition_rule);
        let answer = validate_compiled(&expressions.compiled, value, old);
        for problem in answer
            .err()
            .into_iter()
            .flat_map(ValidationErrors::into_vec)
        {
            if self.findings.len() >= FINDINGS_PER_RULE_MAX {
                return;
            }
            let below = problem.field_path.trim_start_matches('.');
            let path = below.split('.').filter(|it| !it.is_empty());
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

/// The kind of error that an expression asks for.
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
            |given, seen| mismatched_rules(expressions, &value(given), &value(seen)).concat();
        assert_eq!(differing(2, 2), "");
        assert_eq!(differing(2, 4), "self.n > 3");
        assert_eq!(differing(0, 2), "self.n > 1");
        assert_eq!(differing(0, 5), "self.n > 1self.n > 3");
        for n in [0, 2, 4] {
            assert_eq!(fast_path_mismatches(&root, &json!({"a": {"n": n}})), []);
        }
    }
}
