//! Conversions of constants and constant patterns, which cel-go evaluates when it plans the evaluation of an expression.

use super::evaluate::evaluate_tree;
use super::literals::is_constant;
use super::scope::{Budget, Scope};
use super::value::Failure;
use crate::crd::cel_tree::parts;
use crate::crd::go_regex;
use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, Expr, LiteralValue};

/// The functions that cel-go computes (`IsTypeConversionFunction` of its package `overloads`).
const CONVERSIONS: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "string",
    "timestamp",
    "type",
    "uint",
];

/// The error of the first conversion of a constant that has no value (`maybeOptimizeConstUnary` of cel-go), or of the
/// first constant pattern that is invalid (`FindRegexOptimization` of the library of Kubernetes). The cost is linear in
/// the size of the expression.
pub(in super::super) fn constant_error(tree: &IdedExpr) -> Option<String> {
    let error = parts(tree).into_iter().find_map(constant_error);
    if error.is_some() {
        return error;
    }
    let Expr::Call(call) = &tree.expr else {
        return None;
    };
    if is_invalid_pattern(call) {
        return Some("error parsing regexp".to_owned());
    }
    if !is_constant_conversion(call) {
        return None;
    }
    match evaluate_tree(tree, &mut Scope::new(), &mut Budget::default()) {
        Err(Failure::Error(reason)) => Some(reason),
        _ => None,
    }
}

fn is_constant_conversion(call: &CallExpr) -> bool {
    let is_conversion = call.target.is_none() && CONVERSIONS.contains(&call.func_name.as_str());
    is_conversion
        && matches!(call.args.as_slice(), [arg] if is_constant(arg, is_constant_conversion))
}

fn is_invalid_pattern(call: &CallExpr) -> bool {
    let is_search = call.target.is_some() && matches!(call.func_name.as_str(), "find" | "findAll");
    let pattern = call.args.first().filter(|_| is_search);
    matches!(pattern.map(|it| &it.expr), Some(Expr::Literal(LiteralValue::String(text))) if !go_regex::is_valid(text.inner()))
}

#[cfg(test)]
mod tests {
    use super::constant_error;
    use crate::crd::cel_program::Program;

    #[test]
    fn constant_conversions_without_value_are_errors() {
        for (text, has_error) in [
            ("int('12') == 1", false),
            ("int('a') == 1", true),
            ("false && int('a') == 1", true),
            ("[1].all(v, v == int('a'))", true),
            ("double(string('1.5')) > 1.0", false),
            ("double(string('a')) > 1.0", true),
            ("int('a' + 'b') == 1", false),
            ("uint(-1) == 1u", true),
            ("int(1e300) == 1", true),
            ("{'a': int('b')}.size() == 1", true),
            ("'a'.find('[') == ''", true),
            ("'a'.findAll('a', 2) == []", false),
        ] {
            let program = Program::new(text).unwrap();
            assert_eq!(
                constant_error(program.tree()).is_some(),
                has_error,
                "{text}"
            );
        }
    }
}
