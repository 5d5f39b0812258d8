#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use super::*;

fn compile_error(holds: &'static str, detail: Option<&'static str>) -> ExpressionError {
    let expression = CelRule {
        path: "spec",
        expression: holds.into(),
        message: "must be so",
        message_expression: detail.map(Into::into),
        field_path: "".into(),
        unchanged: "self == oldSelf".into(),
        kind: ErrorKind::Invalid,
    };
    let rules = rules_for_kind(lockkeeper_api::GROUP, "ClusterQueue");
    let rule = rules.first().unwrap();
    RuleExpression { rule, expression }.compile().unwrap_err()
}

#[test]
fn uncompilable_expression_error_names_path() {
    let cases = [
        ("self.a ==", None),
        ("has(self.a) &&\n  self.a.all(it, it > 1", None),
        ("true", Some("'a ' + ")),
    ];
    let messages: Vec<String> = cases
        .map(|(holds, detail)| compile_error(holds, detail).to_string())
        .into();
    insta::assert_snapshot!(messages.join("\n\n"));
}
