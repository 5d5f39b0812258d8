//! Expressions whose values do not depend on variables.

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr};

/// Whether an expression is a literal, a list or map of literals, or a call that `is_constant_call` accepts.
pub(super) fn is_constant(tree: &IdedExpr, is_constant_call: fn(&CallExpr) -> bool) -> bool {
    let is_constant = |it: &IdedExpr| is_constant(it, is_constant_call);
    match &tree.expr {
        Expr::Literal(_) => true,
        Expr::List(list) => list.elements.iter().all(is_constant),
        Expr::Map(map) => map.entries.iter().all(|it| match &it.expr {
            EntryExpr::MapEntry(entry) => is_constant(&entry.key) && is_constant(&entry.value),
            EntryExpr::StructField(_) => false,
        }),
        Expr::Call(call) => is_constant_call(call),
        _ => false,
    }
}
