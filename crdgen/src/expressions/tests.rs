#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use super::*;

fn broken(holds: &'static str, detail: Option<&'static str>) -> ExpressionError {
    let expression: &'static Expression = Box::leak(Box::new(Expression {
        at: "spec",
        holds,
        message: "must be so",
        detail,
        field: "",
        kept: "self == oldSelf",
        kind: ErrorKind::Invalid,
    }));
    let rules = rules_of(lockkeeper_api::GROUP, "ClusterQueue");
    let rule = rules.first().unwrap();
    Ruled { rule, expression }.compile().unwrap_err()
}

#[test]
fn an_expression_that_does_not_compile_is_named_with_its_place() {
    let cases = [
        ("self.a ==", None),
        ("has(self.a) &&\n  self.a.all(it, it > 1", None),
        ("true", Some("'a ' + ")),
    ];
    let said: Vec<String> = cases
        .map(|(holds, detail)| broken(holds, detail).to_string())
        .into();
    insta::assert_snapshot!(said.join("\n\n"));
}
