#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::FastCel;
use kube_cel::{CompiledSchema, compile_schema, validate_compiled};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// Expressions, each with whether it is simple.
const EXPRESSIONS: [(&str, bool); 36] = [
    ("true", true),
    ("has(self.n)", true),
    ("!has(self.n) || self.n > 1", true),
    ("has(self.n) && self.n <= 1", true),
    ("has(self.n) ? self.n >= 0 : true", true),
    ("has(self.n) ? self.n < 2 : has(self.s)", true),
    ("self.n == 1", true),
    ("self.n != 1", true),
    ("self.n == 1 || self.s == 'a'", true),
    ("self.s == 'a' && self.n == 1", true),
    ("self.s < 'b'", true),
    ("self.s in ['a', 'b']", true),
    ("self.q in ['a', 'b'] || self.q == 1", true),
    ("!(self.s in ['a', self.e])", true),
    ("size(self.s) < 2", true),
    ("self.list.size() == self.n", true),
    ("size(self.list) <= size(self.map)", true),
    ("self.list.all(it, has(it.k))", true),
    ("self.list.all(it, it.k == 'a' || it.k == self.s)", true),
    ("self.list.exists(it, it.k == 'a')", true),
    ("self.list.exists(a, self.list.all(b, b.k == a.k))", true),
    ("self.list.all(it, it.inner.all(at, at == self.n))", true),
    ("self.map.all(key, key != 'a-b')", true),
    ("self.map.exists(key, key == 'a.b')", true),
    ("self.any.a == 1", true),
    ("has(self.any) && has(self.any.a)", true),
    ("self.any.all(key, key == 'a')", true),
    ("self.t == '2020-01-01T00:00:00Z'", true),
    ("has(self.list) == has(self.map)", true),
    ("self.s.matches('^a')", false),
    ("self.n + 1 == 2", false),
    ("self.list.exists_one(it, it.k == 'a')", false),
    ("self.snake__case == 'a'", false),
    ("self.map.all(key, self.map[key] == 'a')", false),
    (
        "[has(self.n), has(self.s)].filter(it, it).size() == 1",
        false,
    ),
    ("self.x < 2.5", false),
];

fn schema(rule: &str) -> CompiledSchema {
    let text = json!({"type": "string"});
    let items = json!({"type": "object", "properties": {
        "k": text, "inner": {"type": "array", "items": {"type": "integer"}},
    }});
    compile_schema(&json!({"type": "object",
        "properties": {
            "n": {"type": "integer"}, "s": text, "e": text, "x": {"type": "number"},
            "q": {"x-kubernetes-int-or-string": true},
            "t": {"type": "string", "format": "date-time"},
            "snake_case": text, "namespace": text,
            "map": {"type": "object", "additionalProperties": text},
            "list": {"type": "array", "items": items},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
        "x-kubernetes-validations": [{"rule": rule}],
    }))
}

/// The simple ones, read.
static SIMPLE: LazyLock<Vec<(&str, CompiledSchema, FastCel)>> = LazyLock::new(|| {
    let simple = EXPRESSIONS.iter().filter(|(_, is_simple)| *is_simple);
    let read = simple.map(|(rule, _)| {
        let schema = schema(rule);
        let quick = quick(&schema).unwrap();
        (*rule, schema, quick)
    });
    read.collect()
});

fn quick(schema: &CompiledSchema) -> Option<FastCel> {
    let rule = schema.validations[0].as_ref().unwrap();
    FastCel::from_expr(rule.program.expression())
}

fn text() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["", "a", "b", "ab", "ä", "2020-01-01T00:00:00Z"])
        .prop_map(Value::from)
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => (0..3_i64).prop_map(Value::from),
        1 => prop::sample::select(vec![json!(-1), json!(1.0), json!(1.5), json!(u64::MAX), json!(i64::MIN)]),
    ]
}

fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> impl Strategy<Value = Value> {
    let field = |(name, value): (&'static str, BoxedStrategy<Value>)| {
        prop::option::weighted(0.7, value).prop_map(move |it| it.map(|it| (name.to_owned(), it)))
    };
    let fields: Vec<_> = fields.into_iter().map(field).collect();
    fields.prop_map(|it| Value::Object(it.into_iter().flatten().collect::<Map<_, _>>()))
}

fn any() -> impl Strategy<Value = Value> {
    let inner = prop::collection::vec(number(), 0..3).prop_map(Value::from);
    let item = object(vec![("k", text().boxed()), ("inner", inner.boxed())]);
    let list = prop::collection::vec(item, 0..4).prop_map(Value::from);
    let keys = prop::sample::select(vec!["a", "b", "a-b", "a.b", "a_b", "in"]);
    let map = prop::collection::btree_map(keys.prop_map(str::to_owned), text(), 0..3);
    let map = map.prop_map(|it| Value::Object(it.into_iter().collect()));
    let loose = object(vec![
        ("a", number().boxed()),
        ("b-c", Just(Value::Null).boxed()),
    ]);
    let either = prop_oneof![text(), number()];
    object(vec![
        (
            "n",
            prop_oneof![6 => number(), 1 => Just(Value::Null), 1 => text()].boxed(),
        ),
        ("s", prop_oneof![6 => text(), 1 => number()].boxed()),
        ("e", text().boxed()),
        ("x", number().boxed()),
        ("q", either.boxed()),
        ("t", text().boxed()),
        ("snake_case", text().boxed()),
        ("namespace", text().boxed()),
        ("map", map.boxed()),
        ("list", list.boxed()),
        ("any", loose.boxed()),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The fast path is true only if CEL is.
    #[test]
    fn fast_path_true_implies_cel_true(object in any()) {
        for (rule, schema, quick) in SIMPLE.iter() {
            if quick.is_satisfied(&object, schema) {
                let answer = validate_compiled(schema, &object, None);
                prop_assert!(answer.is_ok(), "{rule} of {object}: {answer:?}");
            }
        }
    }
}

#[test]
fn fast_path_compiles_listed_expressions() {
    for (rule, is_simple) in EXPRESSIONS {
        let schema = schema(rule);
        assert!(schema.compilation_errors().is_empty(), "{rule}");
        assert_eq!(quick(&schema).is_some(), is_simple, "{rule}");
    }
}

/// Each simple expression is satisfied by at least one typical object.
#[test]
fn fast_path_satisfied_expression_is_true() {
    let item = json!({"k": "a", "inner": [1, 1]});
    let full = json!({
        "n": 1, "s": "a", "e": "b", "q": 1, "map": {"a.b": "c"}, "list": [item], "any": {"a": 1},
    });
    let other = json!({"n": 2, "s": "c", "e": "b", "map": {"b": "c"}, "list": [], "q": "a"});
    for (rule, schema, quick) in SIMPLE.iter() {
        let holds = [&full, &other]
            .iter()
            .any(|it| quick.is_satisfied(it, schema));
        // Order of strings, keys of values of unknown type, and strings with a format are left to CEL.
        let is_left = ["self.s < 'b'", "self.any.all", "self.t =="];
        let is_left = is_left.iter().any(|it| rule.starts_with(it));
        assert_eq!(holds, !is_left, "{rule}");
    }
}
