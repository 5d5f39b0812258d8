//! What the expressions in a schema say of an object.

use super::EXPRESSION;
use super::check::{before, field};
use super::node::{Asks, Expressions, Node};
use super::walk::{Step, Way};
use crate::finding::{ErrorKind, FINDINGS_PER_RULE_MAX, Finding, quoted};
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Value as CelValue};
use kube_cel::{
    CompilationResult, CompiledSchema, KubeCelExt, SchemaFormat, ValidationErrors,
    validate_compiled,
};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// The deepest value that is translated by ourselves.
const DEPTH_MAX: usize = 64;

/// What Kubernetes' CEL calls by another name, or may.
pub(crate) const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

thread_local! {
    /// Every function that expressions may call. Making it costs more than asking an object.
    static FUNCTIONS: Context<'static> = Context::default().with_all();
}

/// The expressions that say no.
pub(super) fn expressions(root: &Node, object: &Value, old: Option<&Value>) -> Vec<Finding> {
    FUNCTIONS.with(|functions| {
        let mut asked = Asked {
            functions,
            found: Vec::new(),
            is_verifying: false,
        };
        asked.node(root, (object, None), old, &mut Way::default());
        asked.found
    })
}

/// The expressions that the fast way and kube-cel answer differently, of an object that is made.
pub(super) fn disagreements(root: &Node, object: &Value) -> Vec<Finding> {
    FUNCTIONS.with(|functions| {
        let mut asked = Asked {
            functions,
            found: Vec::new(),
            is_verifying: true,
        };
        asked.node(root, (object, None), None, &mut Way::default());
        asked.found
    })
}

/// Whether all expressions of a place say yes to a value that is made. `false` says nothing: kube-cel is asked then,
/// which has the messages. It translates every value below a place once for each place above it; this is what makes
/// asking it first too slow for files.
fn all_agree(functions: &Context<'_>, expressions: &Expressions, value: &CelValue) -> bool {
    let context = with_self(functions, value);
    expressions.compiled.validations.iter().all(|it| match it {
        Ok(it) => fast(&context, it) == Some(true),
        Err(_) => false,
    })
}

fn with_self<'a>(functions: &'a Context<'_>, value: &CelValue) -> Context<'a> {
    let mut context = functions.new_inner_scope();
    context.add_variable_from_value("self", value.clone());
    context
}

/// What an expression says of a value that is made; `None` if kube-cel has to be asked.
fn fast(context: &Context<'_>, expression: &CompilationResult) -> Option<bool> {
    if expression.is_transition_rule {
        // There is nothing to compare with.
        return (expression.rule.optional_old_self != Some(true)).then_some(true);
    }
    match expression.program.execute(context) {
        Ok(CelValue::Bool(answer)) => Some(answer),
        _ => None,
    }
}

/// The expressions of a place that are answered differently by the fast way, which sees `seen`, and by kube-cel.
fn differing<'e>(
    functions: &Context<'_>,
    expressions: &'e Expressions,
    value: &Value,
    seen: &CelValue,
) -> Vec<&'e str> {
    let context = with_self(functions, seen);
    let answer = validate_compiled(&expressions.compiled, value, None);
    let refused = answer.err().map_or(Vec::new(), ValidationErrors::into_vec);
    let all = expressions.compiled.validations.iter().flatten();
    let differing = all.filter(|it| {
        let is_refused = refused.iter().any(|problem| problem.rule == it.rule.rule);
        fast(&context, it).is_some_and(|is_met| is_met == is_refused)
    });
    differing.map(|it| it.rule.rule.as_str()).collect()
}

/// A value as expressions see it; `None` where that takes more than copying it: names that have to be escaped, and
/// strings that stand for something else.
fn translated(value: &Value, schema: Option<&CompiledSchema>, depth: usize) -> Option<CelValue> {
    if depth > DEPTH_MAX || schema.is_some_and(|it| it.embedded_resource) {
        return None;
    }
    let below = depth.saturating_add(1);
    Some(match value {
        Value::Null => CelValue::Null,
        Value::Bool(it) => CelValue::Bool(*it),
        Value::Number(it) => match (it.as_i64(), it.as_u64(), it.as_f64()) {
            (Some(it), ..) => CelValue::Int(it),
            (None, Some(it), _) => CelValue::UInt(it),
            (None, None, it) => CelValue::Float(it?),
        },
        Value::String(it) => match schema.map(|it| &it.format) {
            None | Some(SchemaFormat::None | SchemaFormat::IntOrString) => {
                CelValue::String(Arc::new(it.clone()))
            }
            Some(_) => return None,
        },
        Value::Array(items) => {
            let schema = schema.and_then(|it| it.items.as_deref());
            let items = items.iter().map(|it| translated(it, schema, below));
            CelValue::List(Arc::new(items.collect::<Option<_>>()?))
        }
        Value::Object(fields) => {
            let is_map = schema.is_some_and(|it| it.is_map);
            let fields = fields.iter().map(|(name, value)| {
                let is_plain = is_map
                    || !(name.contains(['_', '.', '-', '/']) || RESERVED.contains(&name.as_str()));
                let other = schema.and_then(|it| it.additional_properties.as_deref());
                let schema = schema.and_then(|it| it.properties.get(name)).or(other);
                let value = translated(value, schema, below).filter(|_| is_plain)?;
                Some((Key::String(Arc::new(name.clone())), value))
            });
            CelValue::Map(Map {
                map: Arc::new(fields.collect::<Option<_>>()?),
            })
        }
    })
}

/// The value below one that was translated.
fn below(value: Option<&CelValue>, step: &Step<'_>) -> Option<CelValue> {
    match (value?, step) {
        (CelValue::Map(map), Step::Field(name) | Step::Entry(name)) => map
            .map
            .get(&Key::String(Arc::new((*name).to_owned())))
            .cloned(),
        (CelValue::List(items), Step::Index(at)) => items.get(*at).cloned(),
        _ => None,
    }
}

struct Asked<'f> {
    functions: &'f Context<'static>,
    found: Vec<Finding>,
    /// Whether both ways are asked, and only what they disagree about is told.
    is_verifying: bool,
}

impl Asked<'_> {
    /// `value` is the value, and what expressions see of it if that is known already.
    fn node<'a>(
        &mut self,
        node: &'a Node,
        (value, seen): (&'a Value, Option<CelValue>),
        old: Option<&Value>,
        way: &mut Way<'a>,
    ) {
        if old == Some(value) || node.asks == Asks::Nothing {
            return;
        }
        let mut seen = seen;
        if let Some(expressions) = &node.expressions {
            if old.is_none() && seen.is_none() {
                seen = translated(value, Some(&expressions.compiled), 0);
            }
            let agree = |it| old.is_none() && all_agree(self.functions, expressions, it);
            if self.is_verifying {
                self.verify(expressions, value, seen.as_ref(), way);
            } else if !seen.as_ref().is_some_and(agree) {
                self.ask(expressions, value, old, way);
            }
        }
        let seen = seen.as_ref();
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let (child, step) = match node.properties.get(name) {
                        Some(child) => (Some(child), Step::Field(name)),
                        None => (node.additional.as_deref(), Step::Entry(name)),
                    };
                    if let Some(child) = child.filter(|it| it.asks != Asks::Nothing) {
                        let (old, seen) = (field(old, name), below(seen, &step));
                        way.down(step, |way| self.node(child, (value, seen), old, way));
                    }
                }
            }
            Value::Array(items) => {
                for (child, (index, item)) in node.items.iter().flat_map(|child| {
                    let items = items.iter().enumerate();
                    items.map(move |item| (child, item))
                }) {
                    let (old, step) = (before(&node.list, item, old), Step::Index(index));
                    let seen = below(seen, &step);
                    way.down(step, |way| self.node(child, (item, seen), old, way));
                }
            }
            _ => {}
        }
    }

    fn verify(
        &mut self,
        expressions: &Expressions,
        value: &Value,
        seen: Option<&CelValue>,
        way: &Way<'_>,
    ) {
        let Some(seen) = seen else {
            // kube-cel is all that is ever asked here.
            return;
        };
        for expression in differing(self.functions, expressions, value, seen) {
            let detail = format!(
                "the fast way and CEL do not agree whether it meets {}; this is a mistake of lockkeeper, report it",
                quoted(expression)
            );
            self.found.push(Finding {
                rule: Cow::Borrowed(EXPRESSION),
                field: way.keyed_path(),
                kind: ErrorKind::Invalid,
                value: None,
                detail: detail.into(),
            });
        }
    }

    fn ask(
        &mut self,
        expressions: &Expressions,
        value: &Value,
        old: Option<&Value>,
        way: &Way<'_>,
    ) {
        let old = old.filter(|_| expressions.is_about_change);
        let answer = validate_compiled(&expressions.compiled, value, old);
        for problem in answer
            .err()
            .into_iter()
            .flat_map(ValidationErrors::into_vec)
        {
            if self.found.len() >= FINDINGS_PER_RULE_MAX {
                return;
            }
            let below = problem.field_path.trim_start_matches('.');
            let path = below.split('.').filter(|it| !it.is_empty());
            let field = path.fold(way.keyed_path(), FieldPath::named);
            self.found.push(Finding {
                rule: Cow::Borrowed(EXPRESSION),
                field,
                kind: reason(problem.reason.as_deref()),
                value: None,
                detail: problem.message.into(),
            });
        }
    }
}

/// The kind of error that an expression asks for.
fn reason(reason: Option<&str>) -> ErrorKind {
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
    use super::{FUNCTIONS, all_agree, differing, disagreements, translated};
    use kube_cel::validate_compiled;
    use serde_json::json;

    #[test]
    fn what_is_asked_fast_agrees_with_kube_cel() {
        let schema = json!({"type": "object",
            "properties": {
                "n": {"type": "integer"}, "s": {"type": "string"}, "x": {"type": "number"},
                "q": {"x-kubernetes-int-or-string": true},
                "t": {"type": "string", "format": "date-time"},
                "snake_case": {"type": "string"}, "namespace": {"type": "string"},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "list": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
            "x-kubernetes-validations": [
                {"rule": "!has(self.n) || self.n > 1"},
                {"rule": "!has(self.x) || self.x < 2.5"},
                {"rule": "!has(self.s) || self.s.matches('^a') && self.s.size() < 4"},
                {"rule": "!has(self.q) || quantity(string(self.q)).isGreaterThan(quantity('1'))"},
                {"rule": "!has(self.t) || self.t > timestamp('2020-01-01T00:00:00Z')"},
                {"rule": "!has(self.snake_case) || self.snake__case == 'a'"},
                {"rule": "!has(self.__namespace__) || self.__namespace__ == 'a'"},
                {"rule": "!has(self.map) || self.map.all(k, k != 'a-b' && self.map[k] != 'no')"},
                {"rule": "!has(self.list) || self.list.exists_one(it, it.k == 'a')"},
                {"rule": "!has(self.any) || !has(self.any.a) || self.any.a == 1"},
                {"rule": "self.n == oldSelf.n"},
            ],
        });
        let node = Node::new(&schema, &mut Vec::new()).unwrap();
        let expressions = node.expressions.unwrap();
        let (mut fast, mut refused) = (0, 0);
        for object in [
            json!({}),
            json!({"n": 1}),
            json!({"n": 2}),
            json!({"n": 18_446_744_073_709_551_615_u64}),
            json!({"x": 2.5}),
            json!({"x": 2.25}),
            json!({"x": 2}),
            json!({"s": "abc"}),
            json!({"s": "abcd"}),
            json!({"s": "b"}),
            json!({"q": 2}),
            json!({"q": "500m"}),
            json!({"q": "1500m"}),
            json!({"q": "wrong"}),
            json!({"t": "2021-01-01T00:00:00Z"}),
            json!({"t": "2019-01-01T00:00:00Z"}),
            json!({"snake_case": "a"}),
            json!({"snake_case": "b"}),
            json!({"namespace": "a"}),
            json!({"namespace": "b"}),
            json!({"map": {"a-b": "c"}}),
            json!({"map": {"c-d": "no"}}),
            json!({"map": {"c.d": "e"}}),
            json!({"list": [{"k": "a"}, {"k": "b"}]}),
            json!({"list": [{"k": "a"}, {"k": "a"}]}),
            json!({"list": []}),
            json!({"any": {"a": 1}}),
            json!({"any": {"a": 2}}),
            json!({"any": {"b-c": null}}),
            json!({"n": null}),
        ] {
            let seen = translated(&object, Some(&expressions.compiled), 0);
            let agree =
                seen.is_some_and(|it| FUNCTIONS.with(|all| all_agree(all, &expressions, &it)));
            let answer = validate_compiled(&expressions.compiled, &object, None);
            // What cannot be translated is asked the long way.
            assert!(!agree || answer.is_ok(), "{object}");
            fast += usize::from(agree);
            refused += usize::from(answer.is_err());
        }
        assert!(fast >= 8 && refused >= 12, "{fast} {refused}");
    }

    #[test]
    fn a_disagreement_names_its_expression() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"n": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.n > 1"}, {"rule": "self.n > 3"}, {"rule": "self.n == oldSelf.n"}]}}});
        let root = Node::new(&schema, &mut Vec::new()).unwrap();
        let expressions = root.properties["a"].expressions.as_ref().unwrap();
        let value = |n: i64| json!({"n": n});
        let differing = |given: i64, seen: i64| {
            let seen = translated(&value(seen), None, 0).unwrap();
            FUNCTIONS.with(|all| differing(all, expressions, &value(given), &seen).concat())
        };
        assert_eq!(differing(2, 2), "");
        assert_eq!(differing(2, 0), "self.n > 1");
        assert_eq!(differing(2, 4), "self.n > 3");
        assert_eq!(differing(0, 5), "self.n > 1self.n > 3");
        for n in [0, 2, 4] {
            assert_eq!(disagreements(&root, &json!({"a": {"n": n}})), []);
        }
    }
}
