//! Conversion between quantities and the core's amounts.

use crate::error::{ObjectError, ObjectProblem, Subject};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::quantity::Quantity;
use lockkeeper_preemption::Amount;

/// The amount of a resource: milli-CPU for cpu, else whole units, rounded up.
pub(crate) fn amount_from_quantity(
    subject: Subject<'_>,
    resource: &str,
    quantity: Quantity,
    field: impl Fn() -> FieldPath,
) -> Result<Amount, ObjectError> {
    if quantity.is_negative() {
        return Err(subject.error(&field(), ObjectProblem::Negative(quantity)));
    }
    match in_core_units(resource, quantity) {
        Some(number) => Ok(Amount::new(number)),
        None => Err(subject.error(&field(), ObjectProblem::TooLarge)),
    }
}

/// The number of core units in a quantity, rounded up; `None` if it exceeds 64 bits. The core counts cpu in
/// milli-CPU, and everything else in whole units (bytes, devices).
#[must_use]
pub fn in_core_units(resource: &str, quantity: Quantity) -> Option<i64> {
    if resource == "cpu" {
        quantity.milli_ceil()
    } else {
        quantity.whole_ceil()
    }
}

/// The quantity of an amount, with the usual suffixes of the resource.
#[must_use]
pub fn quantity(resource: &str, amount: Amount) -> Quantity {
    match resource {
        "cpu" => Quantity::from_milli(amount.get()),
        // Counted in bytes, and usually written with binary suffixes.
        "memory" | "ephemeral-storage" => Quantity::from_bytes(amount.get()),
        name if name.starts_with("hugepages-") => Quantity::from_bytes(amount.get()),
        _ => Quantity::from(amount.get()),
    }
}

/// The weight for fair sharing; 1 if absent.
pub(crate) fn weight_from_quantity(
    subject: Subject<'_>,
    weight: Option<Quantity>,
    field: impl Fn() -> FieldPath,
) -> Result<f64, ObjectError> {
    let Some(weight) = weight else {
        return Ok(1.0);
    };
    if weight.is_negative() {
        return Err(subject.error(&field(), ObjectProblem::Negative(weight)));
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "weights are compared as floats; 16 significant digits are enough"
    )]
    let nano = weight.nano() as f64;
    Ok(nano / 1e9)
}
