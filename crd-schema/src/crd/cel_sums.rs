//! Sums of lists: the sum of no items depends on the type of the items, which only a type checker knows.

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{EntryExpr, Expr};

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

fn parts(tree: &IdedExpr) -> Vec<&IdedExpr> {
    match &tree.expr {
        Expr::Call(call) => call
            .target
            .as_deref()
            .into_iter()
            .chain(&call.args)
            .collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => {
            let entries = map.entries.iter().filter_map(|it| match &it.expr {
                EntryExpr::MapEntry(entry) => Some([&entry.key, &entry.value]),
                EntryExpr::StructField(_) => None,
            });
            entries.flatten().collect()
        }
        Expr::Struct(message) => {
            let fields = message.entries.iter().filter_map(|it| match &it.expr {
                EntryExpr::StructField(field) => Some(&field.value),
                EntryExpr::MapEntry(_) => None,
            });
            fields.collect()
        }
        Expr::Comprehension(all) => vec![
            &all.iter_range,
            &all.accu_init,
            &all.loop_cond,
            &all.loop_step,
            &all.result,
        ],
        _ => Vec::new(),
    }
}

fn parts_mut(tree: &mut IdedExpr) -> Vec<&mut IdedExpr> {
    match &mut tree.expr {
        Expr::Call(call) => {
            let target = call.target.as_deref_mut();
            target.into_iter().chain(&mut call.args).collect()
        }
        Expr::Select(select) => vec![&mut select.operand],
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Map(map) => {
            let entries = map.entries.iter_mut().filter_map(|it| match &mut it.expr {
                EntryExpr::MapEntry(entry) => Some([&mut entry.key, &mut entry.value]),
                EntryExpr::StructField(_) => None,
            });
            entries.flatten().collect()
        }
        Expr::Struct(message) => {
            let fields = message
                .entries
                .iter_mut()
                .filter_map(|it| match &mut it.expr {
                    EntryExpr::StructField(field) => Some(&mut field.value),
                    EntryExpr::MapEntry(_) => None,
                });
            fields.collect()
        }
        Expr::Comprehension(all) => vec![
            &mut all.iter_range,
            &mut all.accu_init,
            &mut all.loop_cond,
            &mut all.loop_step,
            &mut all.result,
        ],
        _ => Vec::new(),
    }
}
