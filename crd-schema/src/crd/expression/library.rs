//! Functions of the Kubernetes library for quantities, addresses, URLs, versions and named formats: those of the crate
//! `kube-cel`.

use super::quantities;
use super::value::{Failure, Outcome, Value, error, no_overload};
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
    if let ("semver" | "isSemver", [Value::Text(text), Value::Bool(true)]) = (name, args)
        && has_surplus_part(text)
    {
        return match name {
            "semver" => error("Invalid character(s) found in patch number"),
            _ => Ok(Value::Bool(false)),
        };
    }
    if let ("isInteger" | "asInteger", [Value::Quantity(_, text)]) = (name, args) {
        let integer = quantities::as_integer(text);
        return match integer {
            _ if name == "isInteger" => Ok(Value::Bool(integer.is_some())),
            Some(integer) => Ok(Value::Int(integer)),
            None => error("cannot convert value to integer"),
        };
    }
    let value = foreign_call(name, has_target, args)?;
    Ok(match (name, value, args) {
        ("quantity", Value::Foreign(quantity), [Value::Text(text)]) => {
            Value::Quantity(quantity, Rc::from(text.as_ref()))
        }
        (_, value, _) => value,
    })
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

/// Whether a version has more than three numbers. `kube-cel` ignores the others.
fn has_surplus_part(version: &str) -> bool {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    core.split('.').count() > 3
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
        Value::Foreign(value) | Value::Quantity(value, _) => value.clone(),
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
