//! Sums and multiples of amounts.

use crate::import_error::{ImportError, ImportProblem};
use lockkeeper_api::quantity::Quantity;
use lockkeeper_scenario::AmountText;

/// The amount of `times` units in the unit of the core. `field` names it in an error.
pub(crate) fn multiplied(
    amount: AmountText,
    times: i64,
    resource: &str,
    line: u64,
) -> Result<AmountText, ImportError> {
    let each = amount.in_core_units(resource);
    let total = each.and_then(|it| it.checked_mul(times));
    total.map(AmountText::Number).ok_or_else(|| {
        ImportError::at(
            line,
            ImportProblem::TooLarge {
                field: resource.to_owned(),
            },
        )
    })
}

/// Parses a quantity that is not negative.
pub(crate) fn quantity(text: &str, field: &str, line: u64) -> Result<AmountText, ImportError> {
    let error = |expected| ImportError::value(line, field, text, expected);
    let quantity: Quantity = text.parse().map_err(|_| {
        error("no amount; write a quantity as Kubernetes does, such as 2, 500m or 4Gi")
    })?;
    if quantity.is_negative() {
        return Err(error("negative; an amount must be zero or more"));
    }
    Ok(AmountText::Quantity(quantity))
}
