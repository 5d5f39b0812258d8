//! Expressions whose values do not depend on variables.

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr};

/// The names of types that are values.
pub(in super::super) const TYPES: [&str; 11] = [
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "optional_type",
    "type",
];

/// Whether an expression is a literal, a type, a list or map of constants, or a call that `is_constant_call` accepts.
pub(super) fn is_constant(tree: &IdedExpr, is_constant_call: fn(&CallExpr) -> bool) -> bool {
    let is_constant = |it: &IdedExpr| is_constant(it, is_constant_call);
    match &tree.expr {
        Expr::Literal(_) => true,
        Expr::Ident(name) => TYPES.contains(&name.as_str()),
        Expr::List(list) => list.elements.iter().all(is_constant),
        Expr::Map(map) => map.entries.iter().all(|it| match &it.expr {
            EntryExpr::MapEntry(entry) => is_constant(&entry.key) && is_constant(&entry.value),
            EntryExpr::StructField(_) => false,
        }),
        Expr::Call(call) => is_constant_call(call),
        _ => false,
    }
}
