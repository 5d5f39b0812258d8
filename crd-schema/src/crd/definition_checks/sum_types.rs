//! The types of sums in the rules of a schema.

use super::cel_check;
use super::cel_types::Type;
use crate::crd::cel_program::Program;
use crate::crd::cel_rule::Rule;
use crate::crd::cel_sums::{SUM, SUM_DOUBLES, SUM_DURATIONS, SUM_UINTS};
use crate::crd::node::Node;

/// Records the types of sums, so that the sum of no items has the right type. Rules with wrong types stay as they are.
pub(in super::super) fn record_sum_types(node: &mut Node, is_resource: bool) {
    if !node.has_rules_below {
        return;
    }
    let names: Vec<[Vec<&'static str>; 2]> = node
        .rules
        .iter()
        .map(|rule| {
            let program = rule.program.as_ref().ok();
            [program, rule.message_expression.as_ref()]
                .map(|it| it.map_or_else(Vec::new, |it| names_of_sums(it, rule, node, is_resource)))
        })
        .collect();
    for (rule, [in_rule, in_message]) in node.rules.iter_mut().zip(names) {
        if let Ok(program) = &mut rule.program {
            program.name_sums(&in_rule);
        }
        if let Some(program) = &mut rule.message_expression {
            program.name_sums(&in_message);
        }
    }
    for node in node.below_mut() {
        let is_resource = node.is_embedded;
        record_sum_types(node, is_resource);
    }
}

/// The names of the sums of an expression; none if it has none, or if its types are wrong.
fn names_of_sums(
    program: &Program,
    rule: &Rule,
    node: &Node,
    is_resource: bool,
) -> Vec<&'static str> {
    let lists = program.summed();
    let kind = Type::of_schema(node, is_resource).filter(|_| !lists.is_empty());
    let Some(kind) = kind else {
        return Vec::new();
    };
    let old_kind = if rule.has_optional_old_self {
        Type::optional(kind.clone())
    } else {
        kind.clone()
    };
    let variables = vec![("self".to_owned(), kind), ("oldSelf".to_owned(), old_kind)];
    let Ok(checked) = cel_check::check_rule(program.tree(), variables) else {
        return Vec::new();
    };
    let name = |kind: &Type<'_>| match kind {
        Type::List(item) => match item.as_ref() {
            Type::Double => SUM_DOUBLES,
            Type::Duration => SUM_DURATIONS,
            Type::Uint => SUM_UINTS,
            _ => SUM,
        },
        _ => SUM,
    };
    lists.into_iter().map(|it| name(checked.kind(it))).collect()
}
