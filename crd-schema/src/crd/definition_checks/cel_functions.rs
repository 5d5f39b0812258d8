//! The functions of the environment of Kubernetes 1.37 with their types.

use super::cel_types::Type;
use crate::crd::cel_macros::{MAP_INSERT, SORT_BY_KEYS};
use crate::crd::expression::is_named_format;

const IP: Type<'static> = Type::Library("net.IP");
const CIDR: Type<'static> = Type::Library("net.CIDR");
const QUANTITY: Type<'static> = Type::Library("kubernetes.Quantity");
const SEMVER: Type<'static> = Type::Library("kubernetes.Semver");
const URL: Type<'static> = Type::Library("kubernetes.URL");
const FORMAT: Type<'static> = Type::Library("kubernetes.NamedFormat");

/// Whether arguments have types.
fn are(args: &[Type<'_>], expected: &[Type<'_>]) -> bool {
    args.len() == expected.len() && args.iter().zip(expected).all(|(arg, it)| it.accepts(arg))
}

/// The first result of which the types accept the arguments.
fn select<'a>(args: &[Type<'a>], overloads: &[(&[Type<'a>], Type<'a>)]) -> Option<Type<'a>> {
    let found = overloads.iter().find(|it| are(args, it.0));
    found.map(|it| it.1.clone())
}

/// The type of a call; `None` if there is no such function, or the arguments do not fit.
pub(super) fn result<'a>(name: &str, is_method: bool, args: &[Type<'a>]) -> Option<Type<'a>> {
    if is_method {
        method(name, args)
    } else {
        global(name, args)
    }
}

fn global<'a>(name: &str, args: &[Type<'a>]) -> Option<Type<'a>> {
    use Type::{Bool, Bytes, Double, Duration, Int, Text, Time, Uint};
    if let Some(result) = special(name, args) {
        return Some(result);
    }
    let overloads: &[(&[Type<'a>], Type<'a>)] = match name {
        "int" => &[
            (&[Int], Int),
            (&[Uint], Int),
            (&[Double], Int),
            (&[Text], Int),
            (&[Time], Int),
            (&[Duration], Int),
        ],
        "uint" => &[
            (&[Uint], Uint),
            (&[Int], Uint),
            (&[Double], Uint),
            (&[Text], Uint),
        ],
        "double" => &[
            (&[Double], Double),
            (&[Int], Double),
            (&[Uint], Double),
            (&[Text], Double),
        ],
        "string" => &[
            (&[Text], Text),
            (&[Bool], Text),
            (&[Int], Text),
            (&[Uint], Text),
            (&[Double], Text),
            (&[Bytes], Text),
            (&[Time], Text),
            (&[Duration], Text),
            (&[IP], Text),
            (&[CIDR], Text),
        ],
        "bytes" => &[(&[Bytes], Bytes), (&[Text], Bytes)],
        "bool" => &[(&[Bool], Bool), (&[Text], Bool)],
        "duration" => &[(&[Duration], Duration), (&[Text], Duration)],
        "timestamp" => &[(&[Time], Time), (&[Text], Time), (&[Int], Time)],
        "url" => &[(&[Text], URL)],
        "isURL" | "isIP" | "isCIDR" | "isQuantity" | "ip.isCanonical" => &[(&[Text], Bool)],
        "ip" => &[(&[Text], IP)],
        "cidr" => &[(&[Text], CIDR)],
        "quantity" => &[(&[Text], QUANTITY)],
        "semver" => &[(&[Text], SEMVER), (&[Text, Bool], SEMVER)],
        "isSemver" => &[(&[Text], Bool), (&[Text, Bool], Bool)],
        "sign" => &[(&[QUANTITY], Int)],
        "jsonpatch.escapeKey" | "strings.quote" => &[(&[Text], Text)],
        "lists.range" => return select(args, &[(&[Int], Type::list(Int))]),
        "matches" => &[(&[Text, Text], Bool)],
        _ => return None,
    };
    select(args, overloads)
}

/// Functions with results that depend on their arguments.
fn special<'a>(name: &str, args: &[Type<'a>]) -> Option<Type<'a>> {
    use Type::{Bool, Dynamic, Text};
    match (name, args) {
        ("dyn", [_]) => Some(Dynamic),
        ("type", [_]) => Some(Type::Kind),
        (MAP_INSERT, [Type::Map(key, value), new_key, new_value]) => {
            Some(Type::map(key.join(new_key)?, value.join(new_value)?))
        }
        (MAP_INSERT, [map @ Type::Map(..), entries]) => map.join(entries),
        ("size", [it]) => size(it),
        ("optional.none", []) => Some(Type::optional(Dynamic)),
        ("optional.of" | "optional.ofNonZeroValue", [it]) => Some(Type::optional(it.clone())),
        ("optional.unwrap", [Type::List(item)]) => present_items(item),
        ("optional.unwrap", [Dynamic]) => Some(Type::list(Dynamic)),
        (
            "sets.contains" | "sets.intersects" | "sets.equivalent",
            [Type::List(left), Type::List(right)],
        ) => left.accepts(right).then_some(Bool),
        ("format.named", [Text]) => Some(Type::optional(FORMAT)),
        _ => {
            let format = name.strip_prefix("format.")?;
            (args.is_empty() && is_named_format(format)).then_some(FORMAT)
        }
    }
}

/// The list of the values of optional items.
fn present_items<'a>(item: &Type<'a>) -> Option<Type<'a>> {
    match item {
        Type::Optional(inner) => Some(Type::list(inner.as_ref().clone())),
        Type::Dynamic => Some(Type::list(Type::Dynamic)),
        _ => None,
    }
}

fn size<'a>(value: &Type<'a>) -> Option<Type<'a>> {
    let has_size = matches!(
        value,
        Type::Text | Type::Bytes | Type::List(_) | Type::Map(..) | Type::Dynamic
    );
    has_size.then_some(Type::Int)
}

fn method<'a>(name: &str, args: &[Type<'a>]) -> Option<Type<'a>> {
    let (target, rest) = args.split_first()?;
    match target {
        Type::Dynamic => dynamic_method(name, rest),
        _ if name == "size" && rest.is_empty() => size(target),
        Type::List(item) => list_method(name, item, rest),
        Type::Text => text_method(name, rest),
        Type::Time | Type::Duration => time_method(name, matches!(target, Type::Time), rest),
        Type::Optional(inner) => optional_method(name, inner, rest),
        Type::Library(library) => library_method(name, library, rest),
        _ => None,
    }
}

/// Whether lists of values of a type have an order.
fn is_comparable(item: &Type<'_>) -> bool {
    use Type::{Bool, Bytes, Double, Duration, Dynamic, Int, Text, Time, Uint};
    matches!(
        item,
        Bool | Bytes | Double | Duration | Dynamic | Int | Text | Time | Uint
    )
}

/// A method of a value without a type: of any type that has such a method.
fn dynamic_method<'a>(name: &str, rest: &[Type<'a>]) -> Option<Type<'a>> {
    let targets = [
        Type::list(Type::Dynamic),
        Type::Text,
        Type::Time,
        Type::Duration,
        Type::optional(Type::Dynamic),
        URL,
        IP,
        CIDR,
        QUANTITY,
        SEMVER,
        FORMAT,
    ];
    let mut found: Option<Type<'a>> = None;
    for target in targets {
        let mut args = vec![target];
        args.extend(rest.iter().cloned());
        let Some(result) = method(name, &args) else {
            continue;
        };
        let is_other =
            |it: &Type<'a>| std::mem::discriminant(it) != std::mem::discriminant(&result);
        if found.as_ref().is_some_and(is_other) {
            return Some(Type::Dynamic);
        }
        found = Some(result);
    }
    found
}

fn list_method<'a>(name: &str, item: &Type<'a>, rest: &[Type<'a>]) -> Option<Type<'a>> {
    use Type::{Bool, Double, Duration, Dynamic, Int, Text, Uint};
    let is_sum = matches!(item, Int | Uint | Double | Duration | Dynamic);
    let is_ordered = is_comparable(item);
    let list = || Type::list(item.clone());
    match (name, rest) {
        ("isSorted", []) => is_ordered.then_some(Bool),
        ("sum", []) => is_sum.then(|| item.clone()),
        ("min" | "max", []) => is_ordered.then(|| item.clone()),
        ("indexOf" | "lastIndexOf", [value]) => item.accepts(value).then_some(Int),
        ("slice", rest) => are(rest, &[Int, Int]).then(list),
        ("sort", []) => is_ordered.then(list),
        (SORT_BY_KEYS, [Type::List(key)]) => is_comparable(key).then(list),
        ("distinct" | "reverse", []) => Some(list()),
        ("first" | "last", []) => Some(Type::optional(item.clone())),
        ("unwrapOpt", []) => present_items(item),
        ("flatten", []) => match item {
            Type::List(_) => Some(item.clone()),
            Dynamic => Some(Type::list(Dynamic)),
            _ => None,
        },
        ("flatten", [Int]) => Some(Type::list(Dynamic)),
        ("join", rest) => {
            let has_separator = rest.is_empty() || are(rest, &[Text]);
            (Text.accepts(item) && has_separator).then_some(Text)
        }
        _ => None,
    }
}

fn text_method<'a>(name: &str, rest: &[Type<'a>]) -> Option<Type<'a>> {
    use Type::{Bool, Int, Text};
    let texts = || Type::list(Text);
    let fits = |alternatives: &[&[Type<'a>]]| alternatives.iter().any(|it| are(rest, it));
    match name {
        "startsWith" | "endsWith" | "contains" | "matches" => fits(&[&[Text]]).then_some(Bool),
        "charAt" => fits(&[&[Int]]).then_some(Text),
        "indexOf" | "lastIndexOf" => fits(&[&[Text], &[Text, Int]]).then_some(Int),
        "lowerAscii" | "upperAscii" | "trim" => fits(&[&[]]).then_some(Text),
        "replace" => fits(&[&[Text, Text], &[Text, Text, Int]]).then_some(Text),
        "split" | "findAll" => fits(&[&[Text], &[Text, Int]]).then(texts),
        "substring" => fits(&[&[Int], &[Int, Int]]).then_some(Text),
        "find" => fits(&[&[Text]]).then_some(Text),
        "format" => matches!(rest, [Type::List(_) | Type::Dynamic]).then_some(Text),
        _ => None,
    }
}

fn time_method<'a>(name: &str, is_time: bool, rest: &[Type<'a>]) -> Option<Type<'a>> {
    let has_zone = rest.is_empty() || (is_time && are(rest, &[Type::Text]));
    let is_known = match name {
        "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds" => true,
        "getFullYear" | "getMonth" | "getDayOfYear" | "getDayOfMonth" | "getDate"
        | "getDayOfWeek" => is_time,
        _ => false,
    };
    (is_known && has_zone).then_some(Type::Int)
}

fn optional_method<'a>(name: &str, inner: &Type<'a>, rest: &[Type<'a>]) -> Option<Type<'a>> {
    match (name, rest) {
        ("hasValue", []) => Some(Type::Bool),
        ("value", []) => Some(inner.clone()),
        ("orValue", [default]) => inner.join(default),
        ("or", [Type::Optional(other)]) => inner.join(other).map(Type::optional),
        _ => None,
    }
}

fn library_method<'a>(name: &str, library: &str, rest: &[Type<'a>]) -> Option<Type<'a>> {
    use Type::{Bool, Double, Int, Text};
    match (library, name, rest) {
        (
            "kubernetes.URL",
            "getScheme" | "getHost" | "getHostname" | "getPort" | "getEscapedPath",
            [],
        ) => Some(Text),
        ("kubernetes.URL", "getQuery", []) => Some(Type::map(Text, Type::list(Text))),
        ("net.IP", "family", [])
        | ("net.CIDR", "prefixLength", [])
        | ("kubernetes.Quantity", "asInteger", [])
        | ("kubernetes.Semver", "major" | "minor" | "patch", []) => Some(Int),
        (
            "net.IP",
            "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast",
            [],
        )
        | ("kubernetes.Quantity", "isInteger", []) => Some(Bool),
        ("net.CIDR", "ip", []) => Some(IP),
        ("net.CIDR", "masked", []) => Some(CIDR),
        ("net.CIDR", "containsIP", rest) => {
            (are(rest, &[IP]) || are(rest, &[Text])).then_some(Bool)
        }
        ("net.CIDR", "containsCIDR", rest) => {
            (are(rest, &[CIDR]) || are(rest, &[Text])).then_some(Bool)
        }
        (
            "kubernetes.Quantity" | "kubernetes.Semver",
            "isLessThan" | "isGreaterThan",
            [Type::Library(other)],
        ) => (*other == library).then_some(Bool),
        ("kubernetes.Quantity" | "kubernetes.Semver", "compareTo", [Type::Library(other)]) => {
            (*other == library).then_some(Int)
        }
        ("kubernetes.Quantity", "asApproximateFloat", []) => Some(Double),
        ("kubernetes.Quantity", "add" | "sub", rest) => {
            (are(rest, &[QUANTITY]) || are(rest, &[Int])).then_some(QUANTITY)
        }
        ("kubernetes.NamedFormat", "validate", rest) => {
            are(rest, &[Text]).then(|| Type::optional(Type::list(Text)))
        }
        _ => None,
    }
}
