//! Quantities: the functions of `k8s.io/apiserver/pkg/cel/library/quantity.go`.

use super::amounts::Amount;
use super::value::{Outcome, Value, error};
use lockkeeper_api::quantity::QuantityError;
use std::cmp::Ordering;
use std::rc::Rc;

/// Calls a function; `None` if the name is none, or an argument is too large for the type.
pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
    Some(match (name, args) {
        ("isQuantity", [Value::Text(text)]) => {
            let parsed = Amount::parse(text);
            let is_valid = matches!(parsed, Ok(_) | Err(QuantityError::OutOfRange));
            Ok(Value::Bool(is_valid))
        }
        ("quantity", [Value::Text(text)]) => match Amount::parse(text) {
            Ok(amount) => Ok(Value::Quantity(Rc::new(amount))),
            Err(QuantityError::OutOfRange) => return None,
            Err(problem) => error(problem.to_string()),
        },
        ("sign", [Value::Quantity(amount)]) => Ok(Value::Int(amount.sign())),
        ("isInteger", [Value::Quantity(amount)]) => Ok(Value::Bool(amount.as_integer().is_some())),
        // A quantity that is too large for the type is no 64-bit integer.
        ("isInteger", [Value::Foreign(_)]) => Ok(Value::Bool(false)),
        ("asInteger", [Value::Foreign(_)]) => error("cannot convert value to integer"),
        ("asInteger", [Value::Quantity(amount)]) => match amount.as_integer() {
            Some(integer) => Ok(Value::Int(integer)),
            None => error("cannot convert value to integer"),
        },
        ("asApproximateFloat", [Value::Quantity(amount)]) => Ok(Value::Double(amount.as_float())),
        ("compareTo", [Value::Quantity(left), Value::Quantity(right)]) => {
            Ok(Value::Int(match left.compare(right) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            }))
        }
        ("isLessThan", [Value::Quantity(left), Value::Quantity(right)]) => {
            Ok(Value::Bool(left.compare(right).is_lt()))
        }
        ("isGreaterThan", [Value::Quantity(left), Value::Quantity(right)]) => {
            Ok(Value::Bool(left.compare(right).is_gt()))
        }
        ("add" | "sub", [Value::Quantity(left), right]) => {
            let right = match right {
                Value::Quantity(right) => right.as_ref().clone(),
                Value::Int(number) => Amount::of_integer(*number),
                _ => return None,
            };
            let sum = left.sum(&right, name == "sub")?;
            Ok(Value::Quantity(Rc::new(sum)))
        }
        _ => return None,
    })
}
