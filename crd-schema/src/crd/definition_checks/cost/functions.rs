//! The costs of the standard functions of cel-go (`checker/cost.go`).

use super::argument::{Argument, CallCost, Entry};
use super::size::{Size, multiplied};
use crate::crd::definition_checks::cel_overloads::Overload;

/// The cost of a character that is read.
pub(super) const TEXT_COST: f64 = 0.1;

/// The cost of a character of a pattern.
pub(super) const REGEX_COST: f64 = 0.25;

/// The cost of a new list.
pub(super) const LIST_COST: u64 = 10;

/// The cost of a new map.
pub(super) const MAP_COST: u64 = 30;

/// The cost of a new message.
pub(super) const MESSAGE_COST: u64 = 40;

/// The sum of the costs of arguments.
pub(super) fn sum(args: &[Argument<'_, '_>]) -> u64 {
    args.iter().map(|it| it.cost).fold(0, u64::saturating_add)
}

/// The cost of a search with a pattern.
pub(super) fn pattern_cost(text: &Argument<'_, '_>, pattern: &Argument<'_, '_>) -> u64 {
    // One more character, because a search in an empty text has a cost.
    let text = text.size().add(Size::fixed(1)).cost(TEXT_COST);
    text.saturating_mul(pattern.size().cost(REGEX_COST))
}

/// The cost of a call with its arguments, without its target.
pub(super) fn cost<'t, 's>(
    overload: Overload,
    target: Option<&Argument<'t, 's>>,
    args: &[Argument<'t, 's>],
) -> CallCost {
    let constant = |cost: u64| CallCost::new(cost.saturating_add(sum(args)));
    match (overload, target, args) {
        (Overload::FormatText, Some(target), _) => constant(target.size().cost(TEXT_COST)),
        (Overload::TextToBytes, _, [text]) => {
            let size = text.size();
            CallCost {
                size: Some(Size {
                    min: size.min,
                    max: size.max.wrapping_mul(4),
                }),
                ..constant(size.cost(TEXT_COST))
            }
        }
        (Overload::BytesToText, _, [bytes]) => {
            let size = bytes.size();
            CallCost {
                size: Some(Size {
                    min: size.min.checked_div(4).unwrap_or(0),
                    max: size.max,
                }),
                ..constant(size.cost(TEXT_COST))
            }
        }
        (Overload::QuoteText, _, [text]) => {
            let size = text.size();
            CallCost {
                size: Some(Size {
                    min: size.min.wrapping_add(2),
                    max: size.max.wrapping_mul(2).wrapping_add(2),
                }),
                ..constant(size.cost(TEXT_COST))
            }
        }
        (Overload::PrefixOrSuffix, _, [part]) => constant(part.size().cost(TEXT_COST)),
        (Overload::InList, _, [_, list]) => constant(list.size().cost(1.0)),
        (Overload::Matches, Some(text), [pattern]) | (Overload::Matches, None, [text, pattern]) => {
            constant(pattern_cost(text, pattern))
        }
        (Overload::ContainsText, Some(target), [part]) => {
            let text = target.size().cost(TEXT_COST);
            constant(text.saturating_mul(part.size().cost(TEXT_COST)))
        }
        (Overload::Logic, ..) => CallCost::new(sum(args)),
        (Overload::Conditional, _, [condition, yes, no]) => CallCost {
            cost: condition.cost.saturating_add(yes.cost.max(no.cost)),
            size: Some(yes.size().union(no.size())),
            entry: Entry::union(yes.entry, no.entry),
        },
        (Overload::AddTexts | Overload::AddLists, _, [left, right]) => {
            let size = left.size().add(right.size());
            let cost = match overload {
                Overload::AddLists => 1,
                _ => size.cost(TEXT_COST),
            };
            CallCost {
                size: Some(size),
                entry: Entry::union(left.entry, right.entry),
                ..constant(cost)
            }
        }
        (Overload::Compare, _, [left, right]) => {
            let size = left.size().max.min(right.size().max);
            constant(multiplied(size, TEXT_COST))
        }
        _ => constant(1),
    }
}
