//! Functions of the Kubernetes library for quantities, versions and addresses. Those for addresses are of the crate
//! `kube-cel`.

use super::value::{Failure, Outcome, Value, error, no_overload};
use super::{quantities, versions};
use crate::crd::formats::net::parse_ip;
use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::{CallExpr, Expr};
use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{Context, ExecutionError, IdedExpr, ResolveResult, Value as Foreign};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

/// Functions of `kube-cel` that the environment of Kubernetes does not have.
const ABSENT: [&str; 4] = ["base64.encode", "base64.decode", "isIPv4", "isIPv6"];

/// Calls a function of the library.
pub(super) fn call<'a>(name: &str, has_target: bool, args: &[Value<'a>]) -> Outcome<'a> {
    if let ("jsonpatch.escapeKey", [Value::Text(key)]) = (name, args) {
        return Ok(Value::text(key.replace('~', "~0").replace('/', "~1")));
    }
    if ABSENT.contains(&name) || name.starts_with("math.") {
        return error(format!("undeclared reference to '{name}'"));
    }
    let own = quantities::call(name, args).or_else(|| versions::call(name, args));
    if let Some(value) = own {
        return value;
    }
    let network = match (name, args) {
        ("cidr" | "isCIDR", [Value::Text(text)]) | ("containsCIDR", [_, Value::Text(text)]) => {
            Some(text)
        }
        _ => None,
    };
    if network.is_some_and(|it| !is_network(it)) {
        return match name {
            "isCIDR" => Ok(Value::Bool(false)),
            _ => error("network address parse error during conversion from string"),
        };
    }
    foreign_call(name, has_target, args)
}

/// The bytes of the prefix of a network; 1 for another value.
pub(super) fn network_bytes(network: &Value<'_>) -> u64 {
    let length = foreign_call("prefixLength", true, std::slice::from_ref(network));
    match length {
        Ok(Value::Int(bits)) => u64::try_from(bits).map_or(1, |it| it.div_ceil(8)),
        _ => 1,
    }
}

/// Whether Go parses a network (`netip.ParsePrefix`): the length has no sign and no leading zeros.
fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.rsplit_once('/') else {
        return false;
    };
    let is_number = !length.is_empty() && length.bytes().all(|it| it.is_ascii_digit());
    is_number && (length == "0" || !length.starts_with('0')) && parse_ip(address).is_some()
}

/// Calls a function of `kube-cel`.
fn foreign_call<'a>(name: &str, has_target: bool, args: &[Value<'a>]) -> Outcome<'a> {
    let mut context = Context::default().with_all();
    let mut names = Vec::with_capacity(args.len());
    for (position, arg) in args.iter().enumerate() {
        let name = format!("argument{position}");
        context.add_variable_from_value(name.clone(), to_foreign(arg)?);
        names.push(IdedExpr {
            id: 0,
            expr: Expr::Ident(name),
        });
    }
    let target = has_target.then(|| Box::new(names.remove(0)));
    let call = IdedExpr {
        id: 0,
        expr: Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target,
            args: names,
        }),
    };
    // A function of another crate must not end the process.
    let result: Result<ResolveResult, _> =
        catch_unwind(AssertUnwindSafe(|| Foreign::resolve(&call, &context)));
    match result {
        Ok(Ok(value)) => from_foreign(value),
        Ok(Err(ExecutionError::FunctionError { message, .. })) => error(message),
        Ok(Err(problem)) => error(problem.to_string()),
        Err(_) => no_overload(),
    }
}

fn to_foreign(value: &Value<'_>) -> Result<Foreign, Failure> {
    Ok(match value {
        Value::Null => Foreign::Null,
        Value::Bool(it) => Foreign::Bool(*it),
        Value::Int(it) => Foreign::Int(*it),
        Value::Uint(it) => Foreign::UInt(*it),
        Value::Double(it) => Foreign::Float(*it),
        Value::Text(text) => Foreign::String(Arc::new(text.to_string())),
        Value::Bytes(bytes) => Foreign::Bytes(Arc::new(bytes.to_vec())),
        Value::List(_) | Value::Unordered(..) | Value::JsonList(..) => {
            let items: Result<Vec<Foreign>, Failure> =
                value.valid_items()?.iter().map(to_foreign).collect();
            Foreign::List(Arc::new(items?))
        }
        Value::Foreign(value) => value.clone(),
        // The other argument is too large for the type.
        Value::Quantity(amount) => {
            let text = Value::text(amount.text());
            to_foreign(&foreign_call("quantity", false, &[text])?)?
        }
        _ => return no_overload(),
    })
}

fn from_foreign<'a>(value: Foreign) -> Outcome<'a> {
    Ok(match value {
        Foreign::Null => Value::Null,
        Foreign::Bool(it) => Value::Bool(it),
        Foreign::Int(it) => Value::Int(it),
        Foreign::UInt(it) => Value::Uint(it),
        Foreign::Float(it) => Value::Double(it),
        Foreign::String(text) => Value::text(text.to_string()),
        Foreign::Bytes(bytes) => Value::Bytes(Rc::new(bytes.to_vec())),
        Foreign::List(items) => {
            let items: Result<Vec<Value<'a>>, Failure> =
                items.iter().cloned().map(from_foreign).collect();
            Value::list(items?)
        }
        Foreign::Opaque(opaque) => {
            if let Some(optional) = opaque.downcast_ref::<OptionalValue>() {
                let inner = optional.value().cloned();
                Value::optional(inner.map(from_foreign).transpose()?)
            } else {
                Value::Foreign(Foreign::Opaque(opaque))
            }
        }
        _ => return no_overload(),
    })
}
