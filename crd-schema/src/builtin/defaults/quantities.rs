//! Quantities of resource lists.

use lockkeeper_api::quantity::Quantity;
use serde_json::Value;

/// Rounds a quantity up to thousandths.
pub(super) fn round_up_to_milli(value: &mut Value) {
    /// Billionths in a thousandth.
    const NANO_PER_MILLI: i128 = 1_000_000;
    let Some(quantity) = value.as_str().and_then(|it| it.parse::<Quantity>().ok()) else {
        return;
    };
    if quantity.nano().checked_rem(NANO_PER_MILLI) == Some(0) {
        return;
    }
    if let Some(milli) = quantity.milli_ceil() {
        *value = Quantity::from_milli(milli).to_string().into();
    }
}
