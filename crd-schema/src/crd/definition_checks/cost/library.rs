//! The costs of functions as the Kubernetes library estimates them (`k8s.io/apiserver/pkg/cel/library/cost.go`).

use super::argument::{Argument, CallCost};
use super::functions::{REGEX_COST, TEXT_COST, pattern_cost};
use super::size::{Size, divided, multiplied};
use crate::crd::definition_checks::cel_overloads::Overload;
use crate::crd::definition_checks::cel_types::Type;
use kube_cel::cel::common::ast::operators as op;

/// The longest text of a named format, in bytes.
const FORMAT_MAX_BYTES: u64 = 64;

/// The longest pattern of a named format, in bytes.
const FORMAT_PATTERN_MAX_BYTES: f64 = 128.0;

/// The bytes of the longest address.
const ADDRESS: Size = Size { min: 4, max: 16 };

/// The cost of a call without its arguments; `None` if the library has no estimate.
pub(super) fn cost(
    name: &str,
    overload: Overload,
    target: Option<&Argument<'_, '_>>,
    args: &[Argument<'_, '_>],
) -> Option<CallCost> {
    let constant = Some(CallCost::new(1));
    match (name, target, args) {
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
            Some(traversal(target))
        }
        ("url", _, [text]) => {
            let size = text.size();
            Some(CallCost::with_size(size.cost(TEXT_COST), size))
        }
        ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
            let size = target.size();
            Some(CallCost::with_size(size.cost(TEXT_COST), size))
        }
        ("replace", Some(target), [old, new, ..]) => Some(replace(target, old, new)),
        ("split", Some(target), _) => {
            let size = target.size();
            let limit = args.get(1).and_then(Argument::integer);
            let items = limit.map_or(size.max, i64::cast_unsigned);
            Some(CallCost::with_size(
                size.cost(2.0 * TEXT_COST),
                Size::up_to(items),
            ))
        }
        ("join", Some(target), _) => Some(join(target, args.first())),
        ("find" | "findAll", Some(target), [pattern, ..]) => Some(CallCost::with_size(
            pattern_cost(target, pattern),
            Size::up_to(target.size().max),
        )),
        ("ip", ..) if overload == Overload::AddressOfNetwork => constant,
        (
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver",
            _,
            [text, ..],
        ) => Some(CallCost::new(text.size().cost(TEXT_COST))),
        ("ip.isCanonical", _, [text, ..]) => Some(CallCost::new(text.size().cost(2.0 * TEXT_COST))),
        ("containsIP", _, [other, ..]) => {
            let compared = ADDRESS.add(ADDRESS).cost(TEXT_COST);
            Some(CallCost::new(
                compared.saturating_add(parsed(overload, other)),
            ))
        }
        ("containsCIDR", _, [other, ..]) => {
            let compared = ADDRESS.add(ADDRESS).cost(TEXT_COST);
            let masked = ADDRESS.cost(TEXT_COST).saturating_add(1);
            let cost = compared.saturating_add(masked);
            Some(CallCost::new(cost.saturating_add(parsed(overload, other))))
        }
        ("validate", _, [text, ..]) => {
            let factor = FORMAT_PATTERN_MAX_BYTES * REGEX_COST;
            Some(CallCost::new(multiplied(
                text.size().cost(TEXT_COST),
                factor,
            )))
        }
        (name, ..) if ACCESSORS.contains(&name) => constant,
        (op::EQUALS, _, [left, right]) => equality(left, right),
        _ => None,
    }
}

/// Functions with a constant cost.
const ACCESSORS: [&str; 27] = [
    "masked",
    "prefixLength",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "format.named",
    "sign",
    "asInteger",
    "isInteger",
    "asApproximateFloat",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "add",
    "sub",
    "major",
    "minor",
    "patch",
    "getScheme",
    "getHostname",
    "getHost",
    "getPort",
    "getEscapedPath",
    "getQuery",
];

/// The cost of a text that is parsed before it is compared.
fn parsed(overload: Overload, text: &Argument<'_, '_>) -> u64 {
    match overload {
        Overload::ParsedNetwork => text.size().cost(TEXT_COST),
        _ => 0,
    }
}

/// The cost of reading all items of a list, or a text.
fn traversal(target: &Argument<'_, '_>) -> CallCost {
    let size = target.size();
    let Some((kind, item)) = target.items() else {
        return CallCost::new(size.cost(TEXT_COST));
    };
    let is_text = matches!(kind, Type::Text | Type::Bytes);
    let per_item = if is_text { item.cost(TEXT_COST) } else { 0 };
    CallCost::new(size.max.saturating_mul(per_item.saturating_add(1)))
}

/// The size of a text after a replacement lies between the shortest and the longest one that is possible.
fn replace(target: &Argument<'_, '_>, old: &Argument<'_, '_>, new: &Argument<'_, '_>) -> CallCost {
    let (size, old, new) = (target.size(), old.size(), new.size());
    let (most, kept_most) = if old.min == 0 {
        // An empty text stands around each character.
        (size.max.saturating_add(1), size.max)
    } else if new.max <= old.min {
        (0, size.max)
    } else {
        (divided(size.max, old.min), 0)
    };
    let (fewest, kept_least) = if old.max == 0 {
        (size.min.saturating_add(1), size.min)
    } else if old.max <= new.min {
        (0, size.min)
    } else {
        (divided(size.min, old.max), 0)
    };
    let count = Size {
        min: fewest,
        max: most,
    };
    let kept = Size {
        min: kept_least,
        max: kept_most,
    };
    CallCost::with_size(size.cost(2.0 * TEXT_COST), count.multiply(new).add(kept))
}

fn join(target: &Argument<'_, '_>, separator: Option<&Argument<'_, '_>>) -> CallCost {
    let items = target.size();
    let mut size = target
        .items()
        .map_or(Size::fixed(0), |(_, item)| items.multiply(item));
    if let Some(separator) = separator {
        let count = Size {
            min: items.min.saturating_sub(1),
            max: items.max.saturating_sub(1),
        };
        size = size.add(separator.size().multiply(count));
    }
    CallCost::with_size(size.cost(TEXT_COST), size)
}

/// Values of the library that are compared; `None` for others.
fn equality(left: &Argument<'_, '_>, right: &Argument<'_, '_>) -> Option<CallCost> {
    let (Type::Library(name), Type::Library(other)) = (&left.kind, &right.kind) else {
        return None;
    };
    if name != other {
        return None;
    }
    match *name {
        "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => {
            Some(CallCost::new(1))
        }
        "kubernetes.NamedFormat" => Some(CallCost::new(multiplied(FORMAT_MAX_BYTES, TEXT_COST))),
        // cel-go uses the size of the right side for both.
        "kubernetes.URL" => {
            let size = right.size.map_or(1, |it| it.max);
            Some(CallCost::new(multiplied(size, TEXT_COST)))
        }
        _ => None,
    }
}
