//! The overloads of functions as far as their costs differ.

use super::cel_types::Type;
use kube_cel::cel::common::ast::operators as op;

/// An overload, or all overloads with the same cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overload {
    /// The cost does not depend on the arguments, or only on the name of the function.
    Other,
    AddLists,
    /// Sums of texts or bytes.
    AddTexts,
    /// The address of a network.
    AddressOfNetwork,
    BytesToText,
    /// Comparisons of texts and bytes, and equality.
    Compare,
    Conditional,
    ContainsText,
    FormatText,
    InList,
    IndexList,
    IndexMap,
    ListDistinct,
    ListFlatten,
    ListReverse,
    ListSlice,
    ListSort {
        is_text: bool,
    },
    ListsRange,
    /// `&&` and `||`.
    Logic,
    Matches,
    /// An address or a network that is written as a text.
    ParsedNetwork,
    /// `startsWith` and `endsWith`.
    PrefixOrSuffix,
    QuoteText,
    /// Functions of sets that compare all items once or twice.
    Sets {
        passes: u8,
    },
    TextToBytes,
}

/// The overloads that accept the arguments, in the order of cel-go. The first argument of a method is its target.
pub(super) fn overloads(name: &str, is_method: bool, args: &[Type<'_>]) -> Vec<Overload> {
    use Overload as It;
    vec![match (name, args) {
        (op::LOGICAL_AND | op::LOGICAL_OR, _) => It::Logic,
        (op::CONDITIONAL, _) => It::Conditional,
        (op::EQUALS | op::NOT_EQUALS, _) => It::Compare,
        (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, [left, right]) => {
            return comparison(left, right);
        }
        (op::ADD, [left, right]) => return sum(left, right),
        (op::INDEX, [container, key]) => return index(container, key),
        (op::IN, [_, Type::List(_)]) => It::InList,
        (op::IN, [_, Type::Dynamic]) => return vec![It::InList, It::Other],
        ("string", [Type::Bytes]) => It::BytesToText,
        ("string", [Type::Dynamic]) => return vec![It::Other, It::BytesToText],
        ("bytes", [Type::Text]) => It::TextToBytes,
        ("bytes", [Type::Dynamic]) => return vec![It::Other, It::TextToBytes],
        ("strings.quote", _) => It::QuoteText,
        ("startsWith" | "endsWith", _) => It::PrefixOrSuffix,
        ("matches", _) => It::Matches,
        ("contains", _) if is_method => It::ContainsText,
        ("format", _) if is_method => It::FormatText,
        ("slice", _) if is_method => It::ListSlice,
        ("flatten", _) if is_method => It::ListFlatten,
        ("reverse", _) if is_method => It::ListReverse,
        ("distinct", _) if is_method => It::ListDistinct,
        ("sort", [list]) => It::ListSort {
            is_text: has_text_items(list),
        },
        ("@sortByAssociatedKeys", [_, keys]) => It::ListSort {
            is_text: has_text_items(keys),
        },
        ("lists.range", _) => It::ListsRange,
        ("sets.contains" | "sets.intersects", _) => It::Sets { passes: 1 },
        ("sets.equivalent", _) => It::Sets { passes: 2 },
        ("ip", [target]) if is_method && !matches!(target, Type::Text) => It::AddressOfNetwork,
        ("containsIP" | "containsCIDR", [_, Type::Text | Type::Dynamic]) => It::ParsedNetwork,
        _ => It::Other,
    }]
}

fn has_text_items(list: &Type<'_>) -> bool {
    match list {
        Type::List(item) => Type::Text.accepts(item) || Type::Bytes.accepts(item),
        _ => true,
    }
}

fn comparison(left: &Type<'_>, right: &Type<'_>) -> Vec<Overload> {
    let both = |kind: &Type<'_>| kind.accepts(left) && kind.accepts(right);
    let mut found = Vec::new();
    if both(&Type::Text) || both(&Type::Bytes) {
        found.push(Overload::Compare);
    }
    if !matches!(left, Type::Text | Type::Bytes) && !matches!(right, Type::Text | Type::Bytes) {
        found.push(Overload::Other);
    }
    found
}

fn sum(left: &Type<'_>, right: &Type<'_>) -> Vec<Overload> {
    let is_either = |fits: fn(&Type<'_>) -> bool| fits(left) || fits(right);
    if is_either(|it| matches!(it, Type::List(_))) {
        vec![Overload::AddLists]
    } else if is_either(|it| matches!(it, Type::Text | Type::Bytes)) {
        vec![Overload::AddTexts]
    } else if is_either(|it| !matches!(it, Type::Dynamic)) {
        vec![Overload::Other]
    } else {
        vec![Overload::AddTexts, Overload::Other, Overload::AddLists]
    }
}

fn index(container: &Type<'_>, key: &Type<'_>) -> Vec<Overload> {
    match container {
        Type::List(_) => vec![Overload::IndexList],
        Type::Map(..) => vec![Overload::IndexMap],
        Type::Dynamic if Type::Int.accepts(key) => {
            vec![Overload::IndexList, Overload::IndexMap, Overload::Other]
        }
        Type::Dynamic => vec![Overload::IndexMap, Overload::Other],
        _ => vec![Overload::Other],
    }
}
