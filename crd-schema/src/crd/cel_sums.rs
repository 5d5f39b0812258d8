//! Sums of lists: the sum of no items depends on the type of the items, which only a type checker knows.

use super::cel_tree::{parts, parts_mut};
use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::Expr;

/// The method that adds the items of a list, of which the sum of no items is the integer 0.
pub(super) const SUM: &str = "sum";

/// Like [`SUM`], with a sum of no items of another type.
pub(super) const SUM_DOUBLES: &str = "@sumDoubles";
pub(super) const SUM_DURATIONS: &str = "@sumDurations";
pub(super) const SUM_UINTS: &str = "@sumUints";

/// The lists that an expression adds, in the order of [`rename`].
pub(super) fn summed(tree: &IdedExpr) -> Vec<&IdedExpr> {
    let mut out = Vec::new();
    if let Expr::Call(call) = &tree.expr
        && call.func_name == SUM
        && let Some(target) = call.target.as_deref()
    {
        out.push(target);
    }
    for part in parts(tree) {
        out.extend(summed(part));
    }
    out
}

/// Gives the sums of an expression their names.
pub(super) fn rename(tree: &mut IdedExpr, names: &mut dyn Iterator<Item = &'static str>) {
    if let Expr::Call(call) = &mut tree.expr
        && call.func_name == SUM
        && call.target.is_some()
        && let Some(name) = names.next()
    {
        name.clone_into(&mut call.func_name);
    }
    for part in parts_mut(tree) {
        rename(part, names);
    }
}
