//! Evaluates the tree of an expression.

use super::costs::{self, LIST_COST, MAP_COST, MESSAGE_COST};
use super::equality;
use super::functions;
use super::literals::{self, TYPES};
use super::operators;
use super::scope::{Budget, Scope};
use super::times;
use super::value::{Failure, Outcome, Value, error, no_overload};
use crate::crd::cel_program::Program;
use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, StructExpr,
};
use std::rc::Rc;

/// The cost of reading a variable or a field.
const READ_COST: u64 = 1;

/// Evaluates an expression.
pub(in super::super) fn evaluate<'a>(
    program: &Program,
    scope: &mut Scope<'a>,
    budget: &mut Budget,
) -> Outcome<'a> {
    budget.begin();
    let value = Evaluator { scope, budget }.expression(program.tree());
    budget.end()?;
    value
}

/// Evaluates a part of an expression, without a limit of its own.
pub(super) fn evaluate_tree<'a>(
    tree: &IdedExpr,
    scope: &mut Scope<'a>,
    budget: &mut Budget,
) -> Outcome<'a> {
    Evaluator { scope, budget }.expression(tree)
}

struct Evaluator<'s, 'a> {
    scope: &'s mut Scope<'a>,
    budget: &'s mut Budget,
}

impl<'a> Evaluator<'_, 'a> {
    fn expression(&mut self, tree: &IdedExpr) -> Outcome<'a> {
        self.budget.step(1)?;
        match &tree.expr {
            Expr::Literal(literal) => Ok(self::literal(literal)),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(all) => self.comprehension(all),
            Expr::List(list) => {
                if !is_constant(tree) {
                    self.budget.charge(LIST_COST)?;
                }
                let mut items = Vec::with_capacity(list.elements.len());
                for (position, item) in list.elements.iter().enumerate() {
                    let item = self.expression(item)?;
                    if !list.optional_indices.contains(&position) {
                        items.push(item);
                    } else if let Value::Optional(item) = item {
                        items.extend(item.map(|it| it.as_ref().clone()));
                    } else {
                        return no_overload();
                    }
                }
                Ok(Value::list(items))
            }
            Expr::Map(map) => {
                if !is_constant(tree) {
                    self.budget.charge(MAP_COST)?;
                }
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return error("unsupported entry");
                    };
                    let key = self.expression(&entry.key)?;
                    let mut value = self.expression(&entry.value)?;
                    if entry.optional {
                        match value {
                            Value::Optional(Some(inner)) => value = inner.as_ref().clone(),
                            Value::Optional(None) => continue,
                            _ => return no_overload(),
                        }
                    }
                    entries.push((key, value));
                }
                Ok(Value::Map(Rc::new(entries)))
            }
            Expr::Struct(message) => self.message(message),
            Expr::Unspecified => error("unsupported expression"),
        }
    }

    /// A part of an object, or an operation of a JSON patch, with the fields that are set.
    fn object(&mut self, message: &StructExpr) -> Outcome<'a> {
        let mut fields = Vec::with_capacity(message.entries.len());
        for entry in &message.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                return error("unsupported entry");
            };
            let mut value = self.expression(&field.value)?;
            if field.optional {
                match value {
                    Value::Optional(Some(inner)) => value = inner.as_ref().clone(),
                    Value::Optional(None) => continue,
                    _ => return no_overload(),
                }
            }
            fields.push((Value::text(field.field.clone()), value));
        }
        Ok(Value::Map(Rc::new(fields)))
    }

    /// A value that is written with its fields.
    fn message(&mut self, message: &StructExpr) -> Outcome<'a> {
        self.budget.charge(MESSAGE_COST)?;
        if is_object_type(&message.type_name) {
            return self.object(message);
        }
        let (mut seconds, mut nanos) = (0, 0);
        for entry in &message.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                return error("unsupported entry");
            };
            match (field.field.as_str(), self.expression(&field.value)?) {
                ("seconds", Value::Int(number)) => seconds = number,
                ("nanos", Value::Int(number)) => nanos = number,
                _ => return no_overload(),
            }
        }
        times::message(&message.type_name, seconds, nanos)
    }

    fn name(&mut self, name: &str) -> Outcome<'a> {
        if let Some(value) = self.scope.get(name) {
            let value = value.clone();
            self.budget.charge(READ_COST)?;
            return value;
        }
        match TYPES.iter().find(|it| **it == name) {
            Some(name) => Ok(Value::Type(name)),
            None => error(format!("undeclared reference to '{name}'")),
        }
    }

    fn has_variable(&self, name: &str) -> bool {
        self.scope.get(name).is_some()
    }

    fn select(&mut self, select: &SelectExpr) -> Outcome<'a> {
        let path = qualified_name(&select.operand).map(|it| format!("{it}.{}", select.field));
        match path.as_deref() {
            Some("google.protobuf.Timestamp") => {
                return Ok(Value::Type("google.protobuf.Timestamp"));
            }
            Some("google.protobuf.Duration") => return Ok(Value::Type("google.protobuf.Duration")),
            Some("net.IP") if !self.has_variable("net") => return Ok(Value::Type("net.IP")),
            Some("net.CIDR") if !self.has_variable("net") => return Ok(Value::Type("net.CIDR")),
            _ => {}
        }
        let operand = self.operand(&select.operand)?;
        if !select.test {
            self.budget.charge(READ_COST)?;
        }
        let key = Value::text(select.field.clone());
        let found = match &operand {
            Value::Optional(inner) => {
                let found = inner
                    .as_ref()
                    .map(|it| equality::qualify(it, &key))
                    .transpose()?
                    .flatten();
                if select.test {
                    return Ok(Value::Bool(found.is_some()));
                }
                return Ok(Value::optional(found));
            }
            operand => equality::qualify(operand, &key)?,
        };
        match found {
            _ if select.test => Ok(Value::Bool(found.is_some())),
            Some(value) => Ok(value),
            None => error(format!("no such key: {}", select.field)),
        }
    }

    fn call(&mut self, call: &CallExpr) -> Outcome<'a> {
        let args = call.args.as_slice();
        match (call.func_name.as_str(), args) {
            (op::LOGICAL_AND, [left, right]) => self.logic(left, right, false),
            (op::LOGICAL_OR, [left, right]) => self.logic(left, right, true),
            (op::CONDITIONAL, [condition, yes, no]) => match self.expression(condition)? {
                Value::Bool(true) => self.part(yes),
                Value::Bool(false) => self.part(no),
                _ => no_overload(),
            },
            (op::NOT_STRICTLY_FALSE, [condition]) => {
                self.budget.charge(1)?;
                Ok(match self.expression(condition) {
                    Ok(Value::Bool(flag)) => Value::Bool(flag),
                    Err(Failure::CostExceeded) => return Err(Failure::CostExceeded),
                    _ => Value::Bool(true),
                })
            }
            (op::OPT_SELECT | op::OPT_INDEX, [operand, key]) => {
                let operand = self.expression(operand)?;
                let key = self.expression(key)?;
                self.budget.charge(READ_COST)?;
                operators::optional_index(&operand, &key)
            }
            (op::INDEX, [operand, key]) => {
                let container = self.operand(operand)?;
                let key = self.part(key)?;
                self.budget.charge(READ_COST)?;
                operators::apply(op::INDEX, &[container, key]).unwrap_or_else(no_overload)
            }
            // cel-go replaces the search in a list without items.
            (op::IN, [_, list]) if is_empty_list(list) => Ok(Value::Bool(false)),
            ("or" | "orValue", [other]) => match call.target.as_deref() {
                Some(target) => self.or(call.func_name == "or", target, other),
                None => self.strict_call(call),
            },
            _ => self.strict_call(call),
        }
    }

    /// `or` and `orValue`: the other value is evaluated only if it is needed.
    fn or(&mut self, is_or: bool, target: &IdedExpr, other: &IdedExpr) -> Outcome<'a> {
        match self.expression(target)? {
            Value::Optional(None) => self.expression(other),
            value @ Value::Optional(Some(_)) if is_or => Ok(value),
            Value::Optional(Some(value)) => Ok(value.as_ref().clone()),
            _ => no_overload(),
        }
    }

    /// An operand of which a field or an item is read. cel-go charges the read of a value that is computed.
    fn operand(&mut self, tree: &IdedExpr) -> Outcome<'a> {
        if !is_attribute(tree) {
            self.budget.charge(READ_COST)?;
        }
        self.expression(tree)
    }

    /// A branch of a condition, or a key. cel-go does not charge the read of a variable there.
    fn part(&mut self, tree: &IdedExpr) -> Outcome<'a> {
        let value = self.expression(tree);
        if is_attribute(tree) {
            self.budget.refund(READ_COST);
        }
        value
    }

    /// A function whose arguments are evaluated first.
    fn strict_call(&mut self, call: &CallExpr) -> Outcome<'a> {
        let mut args = Vec::with_capacity(call.args.len());
        let mut name = call.func_name.clone();
        let mut has_target = false;
        if let Some(target) = call.target.as_deref() {
            if let Some(namespace) = qualified_name(target).filter(|it| self.is_namespace(it)) {
                name = format!("{namespace}.{name}");
            } else {
                args.push(self.expression(target)?);
                has_target = true;
            }
        }
        for arg in &call.args {
            args.push(self.expression(arg)?);
        }
        self.budget.step(costs::copied(&name, &args))?;
        let value = match operators::apply(&name, &args) {
            Some(value) => value,
            None => functions::call(&name, has_target, &args),
        };
        if !is_precomputed(&name, call) {
            let cost = costs::call(&name, &args, value.as_ref().ok());
            self.budget.charge(cost)?;
        }
        value
    }

    /// Whether a name is a prefix of functions, not a variable.
    fn is_namespace(&self, name: &str) -> bool {
        matches!(
            name,
            "base64"
                | "cel"
                | "format"
                | "ip"
                | "jsonpatch"
                | "lists"
                | "math"
                | "optional"
                | "sets"
                | "strings"
        ) && !self.has_variable(name)
    }

    /// `&&` and `||`: an operand that decides the result hides the error of the other one.
    fn logic(&mut self, left: &IdedExpr, right: &IdedExpr, decisive: bool) -> Outcome<'a> {
        let left = self.expression(left);
        match left {
            Ok(Value::Bool(flag)) if flag == decisive => return left,
            Err(Failure::CostExceeded) => return left,
            _ => {}
        }
        match (left, self.expression(right)) {
            (_, Err(Failure::CostExceeded)) => Err(Failure::CostExceeded),
            (_, Ok(Value::Bool(flag))) if flag == decisive => Ok(Value::Bool(decisive)),
            (Ok(Value::Bool(_)), Ok(Value::Bool(_))) => Ok(Value::Bool(!decisive)),
            (_, Err(Failure::Unknown(reason))) => Err(Failure::Unknown(reason)),
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
            _ => no_overload(),
        }
    }

    fn comprehension(&mut self, all: &ComprehensionExpr) -> Outcome<'a> {
        let range = self.expression(&all.iter_range)?;
        let items = if all.iter_var2.is_some() {
            operators::pairs_of(&range)?
        } else {
            let items = operators::range_of(&range)?.into_iter();
            items.map(|it| (it, Ok(Value::Null))).collect()
        };
        let before = self.scope.count();
        let initial = self.expression(&all.accu_init);
        self.scope.set(&all.accu_var, initial);
        for (first, second) in items {
            self.scope.set(&all.iter_var, first);
            if let Some(name) = &all.iter_var2 {
                self.scope.set(name, second);
            }
            let condition = self.expression(&all.loop_cond);
            if let Ok(Value::Bool(false)) = condition {
                self.scope.truncate(before.saturating_add(1));
                break;
            }
            let step = self.expression(&all.loop_step);
            self.scope.truncate(before.saturating_add(1));
            if step == Err(Failure::CostExceeded) {
                self.scope.truncate(before);
                return step;
            }
            self.scope.replace(before, step);
        }
        let result = self.expression(&all.result);
        self.scope.truncate(before);
        result
    }
}

/// Whether a name is that of a type of mutations.
pub(in super::super) fn is_object_type(name: &str) -> bool {
    matches!(name, "Object" | "JSONPatch") || name.starts_with("Object.")
}

/// Whether cel-go evaluates an expression once: a literal, a conversion of a constant, or a list or map of them.
fn is_constant(tree: &IdedExpr) -> bool {
    literals::is_constant(tree, |call| match call.args.as_slice() {
        [_, list] if call.func_name == op::IN => is_empty_list(list),
        _ => is_precomputed(&call.func_name, call),
    })
}

/// Whether an expression is a variable, or a field or an item of one.
fn is_attribute(tree: &IdedExpr) -> bool {
    match &tree.expr {
        Expr::Ident(name) => !TYPES.contains(&name.as_str()),
        Expr::Select(select) => !select.test && is_attribute(&select.operand),
        Expr::Call(call) if call.func_name == op::INDEX => {
            call.args.first().is_some_and(is_attribute)
        }
        _ => false,
    }
}

/// Whether cel-go computes a call once: conversions of constants, and searches in lists of constants.
fn is_precomputed(name: &str, call: &CallExpr) -> bool {
    if call.target.is_some() {
        return false;
    }
    match (name, call.args.as_slice()) {
        (op::IN, [_, list]) => match &list.expr {
            Expr::List(list) => list.elements.iter().all(is_member),
            _ => false,
        },
        (
            "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp"
            | "type" | "uint",
            [arg],
        ) => is_constant(arg),
        _ => false,
    }
}

/// Whether an expression is a list without items.
fn is_empty_list(tree: &IdedExpr) -> bool {
    matches!(&tree.expr, Expr::List(list) if list.elements.is_empty())
}

/// Whether an expression is a constant that cel-go finds by its hash: a number, a text or a boolean.
fn is_member(tree: &IdedExpr) -> bool {
    match &tree.expr {
        Expr::Literal(literal) => !matches!(literal, LiteralValue::Bytes(_) | LiteralValue::Null),
        Expr::Call(call) => {
            let name = call.func_name.as_str();
            match call.args.as_slice() {
                [arg] if name == "dyn" => is_member(arg),
                _ => {
                    matches!(name, "bool" | "double" | "int" | "string" | "uint")
                        && is_constant(tree)
                }
            }
        }
        _ => false,
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        matches!(equality::equals(self, other), Ok(true))
    }
}

/// A name with dots, such as `google.protobuf`.
pub(in super::super) fn qualified_name(tree: &IdedExpr) -> Option<String> {
    match &tree.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => Some(format!(
            "{}.{}",
            qualified_name(&select.operand)?,
            select.field
        )),
        _ => None,
    }
}

fn literal<'a>(literal: &LiteralValue) -> Value<'a> {
    match literal {
        LiteralValue::Boolean(value) => Value::Bool(*value.inner()),
        LiteralValue::Bytes(value) => Value::Bytes(Rc::new(value.inner().to_vec())),
        LiteralValue::Double(value) => Value::Double(*value.inner()),
        LiteralValue::Int(value) => Value::Int(*value.inner()),
        LiteralValue::Null => Value::Null,
        LiteralValue::String(value) => Value::text(value.inner().to_owned()),
        LiteralValue::UInt(value) => Value::Uint(*value.inner()),
    }
}
