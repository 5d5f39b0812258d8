//! Checks the types of a CEL expression.

use super::cel_operators::operator;
use super::cel_overloads::{Overload, overloads};
use super::cel_types::{Type, is_type_name};
use super::{cel_format, cel_functions};
use crate::crd::expression::{TYPES, is_object_type, qualified_name};
use crate::crd::formats::time;
use crate::crd::go_regex;
use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, StructExpr,
};
use std::collections::BTreeMap;

/// Prefixes of functions.
const NAMESPACES: [&str; 7] = [
    "format",
    "ip",
    "jsonpatch",
    "lists",
    "optional",
    "sets",
    "strings",
];

/// Functions of lists with an overload for each type of items, the first of which is that of integers.
const ORDERED: [&str; 5] = ["isSorted", "max", "min", "sort", "sum"];

/// A resolved call.
#[derive(Debug)]
pub(super) struct Call {
    /// The name with its namespace.
    pub(super) name: String,
    pub(super) is_method: bool,
    pub(super) overloads: Vec<Overload>,
}

/// The types and calls of an expression.
#[derive(Debug)]
pub(super) struct Checked<'a> {
    /// The type of the result.
    pub(super) result: Type<'a>,
    kinds: BTreeMap<*const IdedExpr, Type<'a>>,
    calls: BTreeMap<*const IdedExpr, Call>,
}

impl<'a> Checked<'a> {
    /// The type of a part of the expression.
    pub(super) fn kind(&self, tree: &IdedExpr) -> &Type<'a> {
        let kind = self.kinds.get(&std::ptr::from_ref(tree));
        kind.unwrap_or(&Type::Dynamic)
    }

    /// The call that a part of the expression is.
    pub(super) fn call(&self, tree: &IdedExpr) -> Option<&Call> {
        self.calls.get(&std::ptr::from_ref(tree))
    }
}

/// Checks an expression without macros.
///
/// # Errors
///
/// The reason if the expression has no type.
pub(super) fn check<'a>(
    tree: &IdedExpr,
    variables: Vec<(String, Type<'a>)>,
) -> Result<Checked<'a>, String> {
    check_with(tree, variables, false, false)
}

/// Like [`check`], for the rule of a schema: it is known which values have no type, and they are not mixed with others in
/// lists and maps.
///
/// # Errors
///
/// The reason if the expression has no type.
pub(super) fn check_rule<'a>(
    tree: &IdedExpr,
    variables: Vec<(String, Type<'a>)>,
) -> Result<Checked<'a>, String> {
    check_with(tree, variables, false, true)
}

/// Like [`check`], for an expression that may construct objects and patches.
///
/// # Errors
///
/// The reason if the expression has no type.
pub(super) fn check_mutation<'a>(
    tree: &IdedExpr,
    variables: Vec<(String, Type<'a>)>,
) -> Result<Checked<'a>, String> {
    check_with(tree, variables, true, false)
}

fn check_with<'a>(
    tree: &IdedExpr,
    variables: Vec<(String, Type<'a>)>,
    has_patch_types: bool,
    knows_dynamic: bool,
) -> Result<Checked<'a>, String> {
    let mut checker = Checker {
        has_patch_types,
        allows_mixed: false,
        knows_dynamic,
        variables,
        kinds: BTreeMap::new(),
        calls: BTreeMap::new(),
    };
    let result = checker.kind(tree)?;
    Ok(Checked {
        result,
        kinds: checker.kinds,
        calls: checker.calls,
    })
}

/// The variables of an expression, the innermost last, and what is known about its parts.
struct Checker<'a> {
    /// Whether the expression may construct objects and patches.
    has_patch_types: bool,
    /// Whether the values of a list or a map may have different types.
    allows_mixed: bool,
    /// Whether all values that are not [`Type::Dynamic`] have their types.
    knows_dynamic: bool,
    variables: Vec<(String, Type<'a>)>,
    kinds: BTreeMap<*const IdedExpr, Type<'a>>,
    calls: BTreeMap<*const IdedExpr, Call>,
}

type Inferred<'a> = Result<Type<'a>, String>;

fn no_overload<'a>(name: &str) -> Inferred<'a> {
    Err(format!("found no matching overload for '{name}'"))
}

impl<'a> Checker<'a> {
    /// The type of an expression.
    fn kind(&mut self, tree: &IdedExpr) -> Inferred<'a> {
        let kind = self.inferred(tree)?;
        self.kinds.insert(tree, kind.clone());
        Ok(kind)
    }

    fn inferred(&mut self, tree: &IdedExpr) -> Inferred<'a> {
        match &tree.expr {
            Expr::Literal(literal) => self::literal(literal),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => {
                if qualified_name(tree).is_some_and(|it| is_type_name(&it)) {
                    return Ok(Type::Kind);
                }
                let field = self.kind(&select.operand)?.field(&select.field)?;
                Ok(if select.test { Type::Bool } else { field })
            }
            Expr::Call(call) => self.call(tree, call),
            Expr::Comprehension(all) => self.comprehension(all),
            Expr::List(list) => {
                let mut item = None;
                for (position, element) in list.elements.iter().enumerate() {
                    let mut kind = self.kind(element)?;
                    if list.optional_indices.contains(&position) {
                        let Type::Optional(inner) = kind else {
                            return Err("expected an optional item".to_owned());
                        };
                        // The value of `optional.none()` may have any type.
                        if matches!(*inner, Type::Dynamic) {
                            continue;
                        }
                        kind = *inner;
                    }
                    let problem = "the items of the list have different types";
                    item = Some(self.joined(item, kind, problem)?);
                }
                Ok(Type::list(item.unwrap_or(Type::Dynamic)))
            }
            Expr::Map(map) => {
                let (mut key, mut value) = (None, None);
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return Err("unsupported entry".to_owned());
                    };
                    let mut kind = self.kind(&entry.value)?;
                    if let (true, Type::Optional(inner)) = (entry.optional, &kind) {
                        kind = inner.as_ref().clone();
                    }
                    let key_kind = self.kind(&entry.key)?;
                    let problem = "the keys of the map have different types";
                    key = Some(self.joined(key, key_kind, problem)?);
                    let problem = "the values of the map have different types";
                    // The value of `optional.none()` may have any type.
                    if !(entry.optional && matches!(kind, Type::Dynamic)) {
                        value = Some(self.joined(value, kind, problem)?);
                    }
                }
                let known = |it: Option<Type<'a>>| it.unwrap_or(Type::Dynamic);
                Ok(Type::map(known(key), known(value)))
            }
            Expr::Struct(message) => self.message(message),
            Expr::Unspecified => Err("unsupported expression".to_owned()),
        }
    }

    /// A part of an object, or an operation of a JSON patch.
    fn object(&mut self, message: &StructExpr) -> Inferred<'a> {
        for entry in &message.entries {
            if let EntryExpr::StructField(field) = &entry.expr {
                self.kind(&field.value)?;
            }
        }
        Ok(match message.type_name.as_str() {
            "Object" => Type::Library("Object"),
            "JSONPatch" => Type::Library("JSONPatch"),
            _ => Type::Dynamic,
        })
    }

    /// A value that is written with its fields.
    fn message(&mut self, message: &StructExpr) -> Inferred<'a> {
        if is_object_type(&message.type_name) && self.has_patch_types {
            return self.object(message);
        }
        let kind = match message.type_name.as_str() {
            "google.protobuf.Timestamp" => Type::Time,
            "google.protobuf.Duration" => Type::Duration,
            name => return Err(format!("undeclared reference to '{name}'")),
        };
        for entry in &message.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                return Err("unsupported entry".to_owned());
            };
            if !matches!(field.field.as_str(), "seconds" | "nanos") {
                return Err(format!("undefined field '{}'", field.field));
            }
            if !Type::Int.accepts(&self.kind(&field.value)?) {
                return Err("expected type of field to be 'int'".to_owned());
            }
        }
        Ok(kind)
    }

    fn name(&self, name: &str) -> Inferred<'a> {
        let variable = self.variables.iter().rev().find(|it| it.0 == name);
        match variable {
            Some((_, kind)) => Ok(kind.clone()),
            None if TYPES.contains(&name) => Ok(Type::Kind),
            None => Err(format!("undeclared reference to '{name}'")),
        }
    }

    /// The type of an optional field; `None` if the call selects none.
    fn optional_field(&mut self, tree: &IdedExpr, call: &CallExpr) -> Option<Inferred<'a>> {
        let (op::OPT_SELECT, [operand, name]) = (call.func_name.as_str(), call.args.as_slice())
        else {
            return None;
        };
        let Expr::Literal(LiteralValue::String(field)) = &name.expr else {
            return None;
        };
        let resolved = Call {
            name: call.func_name.clone(),
            is_method: false,
            overloads: vec![Overload::Other],
        };
        self.calls.insert(tree, resolved);
        let operand = self
            .kind(operand)
            .and_then(|it| self.kind(name).map(|_| it));
        Some(operand.and_then(|operand| {
            let inner = match operand {
                Type::Optional(inner) => *inner,
                other => other,
            };
            Ok(Type::optional(inner.field(field.inner())?))
        }))
    }

    fn call(&mut self, tree: &IdedExpr, call: &CallExpr) -> Inferred<'a> {
        if let Some(kind) = self.optional_field(tree, call) {
            return kind;
        }
        let mut name = call.func_name.clone();
        let mut args = Vec::new();
        let mut is_method = false;
        if let Some(target) = call.target.as_deref() {
            let namespace = match &target.expr {
                Expr::Ident(name)
                    if NAMESPACES.contains(&name.as_str()) && self.name(name).is_err() =>
                {
                    Some(name)
                }
                _ => None,
            };
            if let Some(namespace) = namespace {
                name = format!("{namespace}.{name}");
            } else {
                args.push(self.kind(target)?);
                is_method = true;
            }
        }
        // The arguments of a format may have different types, also in lists and maps.
        let is_format = name == "format" && is_method;
        let was_mixed = self.allows_mixed;
        self.allows_mixed |= is_format;
        let kinds: Result<Vec<Type<'a>>, String> =
            call.args.iter().map(|it| self.kind(it)).collect();
        self.allows_mixed = was_mixed;
        args.extend(kinds?);
        check_literal(&name, call)?;
        if name == "jsonpatch.escapeKey" && !self.has_patch_types {
            return Err("undeclared reference to 'jsonpatch'".to_owned());
        }
        if is_method
            && ORDERED.contains(&name.as_str())
            && call.target.as_deref().is_some_and(is_empty_list)
        {
            args = vec![Type::list(Type::Int)];
        }
        let result = match operator(&name, &args) {
            Ok(kind) => kind,
            Err(_) => cel_functions::result(&name, is_method, &args),
        };
        let result = result.map_or_else(|| no_overload(&name), Ok);
        if is_format && result.is_ok() {
            let kind = |it: &IdedExpr| {
                let kind = self.kinds.get(&std::ptr::from_ref(it));
                kind.unwrap_or(&Type::Dynamic)
            };
            cel_format::check(call, &kind)?;
        }
        let resolved = Call {
            overloads: overloads(&name, is_method, &args),
            name,
            is_method,
        };
        self.calls.insert(tree, resolved);
        result
    }

    /// The type of the values of a list or a map with one more.
    fn joined(&self, first: Option<Type<'a>>, next: Type<'a>, problem: &str) -> Inferred<'a> {
        let Some(first) = first else {
            return Ok(next);
        };
        let is_either = |kind: fn(&Type<'a>) -> bool| kind(&first) != kind(&next);
        let is_mixed = is_either(|it| matches!(it, Type::Null))
            || (self.knows_dynamic && is_either(|it| matches!(it, Type::Dynamic)));
        match first.join(&next) {
            Some(kind) if !is_mixed => Ok(kind),
            _ if self.allows_mixed => Ok(Type::Dynamic),
            _ => Err(problem.to_owned()),
        }
    }

    fn with(&mut self, variables: Vec<(String, Type<'a>)>, body: &IdedExpr) -> Inferred<'a> {
        let count = self.variables.len();
        self.variables.extend(variables);
        let result = self.kind(body);
        self.variables.truncate(count);
        result
    }

    fn comprehension(&mut self, all: &ComprehensionExpr) -> Inferred<'a> {
        let (key, value) = match self.kind(&all.iter_range)? {
            Type::List(item) => (Type::Int, *item),
            Type::Map(key, value) if all.iter_var2.is_none() => (*value, *key),
            Type::Map(key, value) => (*key, *value),
            Type::Dynamic => (Type::Dynamic, Type::Dynamic),
            _ => return Err(not_a_range()),
        };
        let initial = self.kind(&all.accu_init)?;
        let count = self.variables.len();
        self.variables.push((all.accu_var.clone(), initial.clone()));
        match &all.iter_var2 {
            Some(second) => {
                self.variables.push((all.iter_var.clone(), key));
                self.variables.push((second.clone(), value));
            }
            None => self.variables.push((all.iter_var.clone(), value)),
        }
        let step = self
            .kind(&all.loop_cond)
            .and_then(|_| self.kind(&all.loop_step));
        self.variables.truncate(count);
        let total = initial.join(&step?).ok_or("the loop has no type")?;
        self.with(vec![(all.accu_var.clone(), total)], &all.result)
    }
}

/// Whether an expression is a list without items, of which the type of the items is not known. The checker of cel-go
/// takes the type of the first overload that accepts the list.
fn is_empty_list(tree: &IdedExpr) -> bool {
    match &tree.expr {
        Expr::List(list) => list.elements.is_empty(),
        Expr::Call(call) => match (call.func_name.as_str(), call.target.as_deref()) {
            ("distinct" | "reverse" | "slice", Some(target)) => is_empty_list(target),
            (op::ADD, None) => call.args.iter().all(is_empty_list),
            _ => false,
        },
        _ => false,
    }
}

fn not_a_range() -> String {
    "the expression cannot be the range of a comprehension (must be list, map, or dynamic)"
        .to_owned()
}

fn literal<'a>(literal: &LiteralValue) -> Inferred<'a> {
    Ok(match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(number) if !number.inner().is_finite() => {
            return Err("invalid double literal".to_owned());
        }
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::Text,
        LiteralValue::UInt(_) => Type::Uint,
    })
}

/// Checks literals of durations, times and patterns.
fn check_literal(name: &str, call: &CallExpr) -> Result<(), String> {
    let Some(Expr::Literal(LiteralValue::String(text))) = call.args.last().map(|it| &it.expr)
    else {
        return Ok(());
    };
    let text: &str = text.inner();
    let is_valid = match name {
        "duration" => time::parse_duration(text).is_some(),
        "timestamp" => time::parse_rfc3339(text).is_some(),
        "matches" => go_regex::is_valid(text),
        _ => true,
    };
    if is_valid {
        Ok(())
    } else {
        Err(format!("invalid {name} argument"))
    }
}
