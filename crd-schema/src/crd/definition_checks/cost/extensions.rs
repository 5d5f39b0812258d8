//! The costs of the extensions of cel-go for lists and sets (`ext/lists.go` version 3, `ext/sets.go`).

use super::argument::{Argument, CallCost};
use super::functions::{LIST_COST, TEXT_COST};
use super::size::{Size, multiplied};
use crate::crd::definition_checks::cel_overloads::Overload;

/// The cost of a call without its arguments; `None` if the extensions have no estimate.
pub(super) fn cost<'t, 's>(
    overload: Overload,
    target: Option<&Argument<'t, 's>>,
    args: &[Argument<'t, 's>],
) -> Option<CallCost> {
    match (overload, target, args) {
        (Overload::ListSlice, Some(target), [start, end]) => {
            let start = start.count_or(0);
            let end = end.count_or(target.size().max);
            Some(new_list(1.0, Size::fixed(end.wrapping_sub(start))))
        }
        (Overload::ListsRange, None, [count]) => {
            Some(new_list(1.0, Size::fixed(count.count_or(u64::MAX))))
        }
        (Overload::ListReverse, Some(target), []) => Some(new_list(1.0, target.size())),
        (Overload::ListFlatten, Some(target), args) => {
            let depth = args.first().map_or(1, |it| it.count_or(u64::MAX));
            Some(new_list(factor(depth), target.size()))
        }
        (Overload::ListDistinct, Some(target), []) => {
            Some(new_list(2.0, target.size().multiply(target.size())))
        }
        (Overload::ListSort { is_text }, Some(target), args) => {
            // `sortBy` compares a list of keys.
            let size = args.first().unwrap_or(target).size();
            let factor = if is_text { 2.0 + TEXT_COST } else { 2.0 };
            Some(new_list(factor, size.multiply(size)))
        }
        (Overload::Sets { passes }, _, [left, right]) => {
            let pairs = left.size().multiply(right.size());
            let cost = pairs.cost(if passes == 2 { 2.0 } else { 1.0 });
            Some(CallCost::new(cost.saturating_add(1)))
        }
        _ => None,
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "cel-go computes with the same loss"
)]
fn factor(depth: u64) -> f64 {
    depth as f64
}

/// A call that makes a list of a size.
fn new_list(factor: f64, size: Size) -> CallCost {
    let cost = multiplied(size.max, factor)
        .saturating_add(1)
        .saturating_add(LIST_COST);
    CallCost::with_size(cost, size)
}
