//! The types of operators.

use super::cel_types::Type;
use kube_cel::cel::common::ast::operators as op;

/// The name is that of no operator.
pub(super) struct NoOperator;

/// The type of an operator; `None` if the arguments do not fit.
///
/// # Errors
///
/// If the name is that of no operator.
pub(super) fn operator<'a>(name: &str, args: &[Type<'a>]) -> Result<Option<Type<'a>>, NoOperator> {
    use Type::{Bool, Bytes, Double, Duration, Dynamic, Int, Text, Time, Uint};
    Ok(match (name, args) {
        (op::LOGICAL_AND | op::LOGICAL_OR, [left, right]) => {
            (Bool.accepts(left) && Bool.accepts(right)).then_some(Bool)
        }
        (op::LOGICAL_NOT | op::NOT_STRICTLY_FALSE, [it]) => Bool.accepts(it).then_some(Bool),
        (op::CONDITIONAL, [condition, yes, no]) => {
            Bool.accepts(condition).then(|| yes.join(no)).flatten()
        }
        (op::EQUALS | op::NOT_EQUALS, [left, right]) => left.join(right).map(|_| Bool),
        (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, [left, right]) => {
            let is_ordered = |it: &Type<'a>| {
                it.is_number() || matches!(it, Bool | Text | Bytes | Time | Duration | Dynamic)
            };
            let are_numbers = left.is_number() && right.is_number();
            let fits =
                is_ordered(left) && is_ordered(right) && (are_numbers || left.accepts(right));
            fits.then_some(Bool)
        }
        (op::IN, [value, Type::List(item)]) => item.accepts(value).then_some(Bool),
        (op::IN, [value, Type::Map(key, _)]) => key.accepts(value).then_some(Bool),
        (op::IN, [_, Dynamic]) => Some(Bool),
        (op::INDEX, [container, key]) => index(container, key),
        (op::OPT_INDEX | op::OPT_SELECT, [container, key]) => {
            let inner = match container {
                Type::Optional(inner) => inner.as_ref(),
                other => other,
            };
            index(inner, key).map(Type::optional)
        }
        (op::NEGATE, [it]) => matches!(it, Int | Double | Dynamic).then(|| it.clone()),
        (op::ADD, [Time, Duration] | [Duration, Time]) | (op::SUBSTRACT, [Time, Duration]) => {
            Some(Time)
        }
        (op::ADD, [left, right]) => {
            let has_sum = |it: &Type<'a>| {
                it.is_number() || matches!(it, Text | Bytes | Duration | Type::List(_) | Dynamic)
            };
            left.join(right).filter(has_sum)
        }
        (op::SUBSTRACT, [Time, Time]) => Some(Duration),
        (op::SUBSTRACT, [left, right]) => left
            .join(right)
            .filter(|it| it.is_number() || matches!(it, Duration | Dynamic)),
        (op::MULTIPLY | op::DIVIDE, [left, right]) => left
            .join(right)
            .filter(|it| it.is_number() || matches!(it, Dynamic)),
        (op::MODULO, [left, right]) => left
            .join(right)
            .filter(|it| matches!(it, Int | Uint | Dynamic)),
        _ => return Err(NoOperator),
    })
}

fn index<'a>(container: &Type<'a>, key: &Type<'a>) -> Option<Type<'a>> {
    match container {
        Type::List(item) => Type::Int.accepts(key).then(|| item.as_ref().clone()),
        Type::Map(expected, value) => expected.accepts(key).then(|| value.as_ref().clone()),
        Type::Optional(inner) => index(inner, key).map(Type::optional),
        Type::Dynamic => Some(Type::Dynamic),
        _ => None,
    }
}
