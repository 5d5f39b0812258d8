//! Amounts and shares as text.

/// The suffixes of bytes, each 1024 times the one before.
const BINARY_SUFFIXES: &[&str] = &["", " Ki", " Mi", " Gi", " Ti", " Pi", " Ei"];

/// Returns whether a resource is counted in bytes.
pub(crate) fn is_in_bytes(resource: &str) -> bool {
    matches!(resource, "memory" | "ephemeral-storage") || resource.starts_with("hugepages-")
}

/// Returns an amount in the unit of the core, such as `1.5` for 1500 milli-CPU, and `12 Gi` for bytes.
pub(crate) fn amount_text(resource: &str, amount: i64) -> String {
    if resource == "cpu" {
        return thousandths_text(amount);
    }
    if is_in_bytes(resource) {
        return bytes_text(amount);
    }
    number_text(amount)
}

/// Returns the mean of an amount with one decimal, such as `84.9`. The sum is the amount times seconds.
pub(crate) fn mean_text(resource: &str, sum: i128, seconds: i64) -> String {
    let seconds = i128::from(seconds.max(1));
    let mean = |factor: i128| {
        let mean = sum.saturating_mul(factor).checked_div(seconds);
        i64::try_from(mean.unwrap_or_default()).unwrap_or(i64::MAX)
    };
    if is_in_bytes(resource) {
        return bytes_text(mean(1));
    }
    if resource == "cpu" {
        let tenths = mean(1).checked_div(100).unwrap_or_default();
        return thousandths_text(tenths.saturating_mul(100));
    }
    thousandths_text(mean(10).saturating_mul(100))
}

/// Returns a number with separators of thousands.
pub(crate) fn number_text(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    if number < 0 {
        text.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        let rest = digits.len().saturating_sub(at);
        if at > 0 && rest.is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn thousandths_text(amount: i64) -> String {
    let whole = number_text(amount.checked_div(1_000).unwrap_or_default());
    let part = amount.checked_rem(1_000).unwrap_or_default().unsigned_abs();
    if part == 0 {
        return whole;
    }
    let part = format!("{part:03}");
    format!("{whole}.{}", part.trim_end_matches('0'))
}

/// Bytes with the largest suffix, with one decimal if they are no multiple of it.
fn bytes_text(amount: i64) -> String {
    let mut unit = 1_i64;
    let mut suffix = "";
    for name in BINARY_SUFFIXES {
        suffix = name;
        match unit.checked_mul(1_024).filter(|it| *it <= amount) {
            Some(larger) => unit = larger,
            None => break,
        }
    }
    let tenths = i128::from(amount).saturating_mul(10);
    let tenths = tenths.checked_div(i128::from(unit)).unwrap_or_default();
    let (whole, part) = (tenths.div_euclid(10), tenths.rem_euclid(10));
    if part == 0 {
        return format!("{whole}{suffix}");
    }
    format!("{whole}.{part}{suffix}")
}

/// Returns a part of a whole in per cent with one decimal; `–` if the whole is zero.
pub(crate) fn percent_text(part: i128, whole: i128) -> String {
    if whole <= 0 {
        return "–".to_owned();
    }
    let tenths = part.saturating_mul(1_000).checked_div(whole);
    let tenths = tenths.unwrap_or_default();
    format!("{}.{} %", tenths.div_euclid(10), tenths.rem_euclid(10))
}

/// Returns a name of at most `limit` characters; a longer one ends in `…`.
pub(crate) fn short_name(name: &str, limit: usize) -> String {
    if name.chars().count() <= limit {
        return name.to_owned();
    }
    let kept = name.chars().take(limit.saturating_sub(1));
    kept.chain(std::iter::once('…')).collect()
}

#[cfg(test)]
mod tests {
    use super::{amount_text, mean_text, percent_text, short_name};

    #[test]
    fn amounts_have_the_unit_of_their_resource() {
        for (resource, amount, expected) in [
            ("cpu", 1_500, "1.5"),
            ("cpu", 2_000_000, "2,000"),
            ("cpu", 1, "0.001"),
            ("memory", 1 << 34, "16 Gi"),
            ("memory", 1_536, "1.5 Ki"),
            ("memory", 0, "0"),
            ("memory", i64::MAX, "7.9 Ei"),
            ("nvidia.com/gpu", 1_234_567, "1,234,567"),
            ("pods", -12, "-12"),
        ] {
            assert_eq!(amount_text(resource, amount), expected, "{resource}");
        }
    }

    #[test]
    fn means_have_one_decimal() {
        assert_eq!(mean_text("cpu", 1_234_567, 10), "123.4");
        assert_eq!(mean_text("nvidia.com/gpu", 849, 10), "84.9");
        assert_eq!(mean_text("memory", 1 << 31, 2), "1 Gi");
        assert_eq!(mean_text("pods", i128::MAX, 0), "9,223,372,036,854,775.807");
    }

    #[test]
    fn percent_text_of_no_quota_is_a_dash() {
        assert_eq!(percent_text(1, 3), "33.3 %");
        assert_eq!(percent_text(1, 0), "–");
    }

    #[test]
    fn short_name_counts_characters() {
        assert_eq!(short_name("äöü", 3), "äöü");
        assert_eq!(short_name("äöüß", 3), "äö…");
    }
}
