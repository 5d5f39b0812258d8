//! Amounts of resources.

use lockkeeper_api::quantity::Quantity;
use serde_json::Value;

/// One whole unit.
const NANO: i128 = 1_000_000_000;

/// A quantity. `None` for a value that is none, which decoding rejects.
pub(super) fn parse(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// A quantity in nano units, and zero for an absent one.
pub(super) fn nano(value: &Value) -> i128 {
    parse(value).map_or(0, Quantity::nano)
}

/// Whether a quantity is whole.
pub(super) fn is_whole(nano: i128) -> bool {
    nano.checked_rem(NANO) == Some(0)
}

/// Whether an amount of huge pages is a multiple of their size, which the name of the resource has.
pub(super) fn is_divisible(name: &str, amount: i128) -> bool {
    let size = name.strip_prefix("hugepages-");
    let Some(size) = size.and_then(|it| it.parse::<Quantity>().ok()) else {
        return false;
    };
    let size = size.nano();
    size > 0 && is_whole(size) && amount.checked_rem(size) == Some(0)
}
