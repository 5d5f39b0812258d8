//! Quotients for people.

/// The quotient with three decimals; 0 for a divisor of zero or less.
#[allow(
    clippy::cast_precision_loss,
    reason = "the quotient is rounded to three decimals"
)]
pub(super) fn ratio(value: i128, of: i128) -> f64 {
    if of <= 0 {
        return 0.0;
    }
    let exact = value as f64 / of as f64;
    (exact * 1_000.0).round() / 1_000.0
}
