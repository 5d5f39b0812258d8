//! Numbers with check digits.

/// The lengths and prefixes of card numbers: (prefixes, lengths).
const CARDS: [(&[&str], &[usize]); 6] = [
    (&["4"], &[13, 16]),
    (&["51", "52", "53", "54", "55"], &[16]),
    (&["6011", "65"], &[16]),
    (&["34", "37"], &[15]),
    (
        &["300", "301", "302", "303", "304", "305", "36", "38"],
        &[14],
    ),
    (&["2131", "1800"], &[15]),
];

pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let is_card = |(prefixes, lengths): &(&[&str], &[usize])| {
        lengths.contains(&digits.len()) && prefixes.iter().any(|it| digits.starts_with(it))
    };
    let is_long_jcb = digits.starts_with("35") && digits.len() == 16;
    if !is_long_jcb && !CARDS.iter().any(is_card) {
        return false;
    }
    let values = digits.chars().rev().filter_map(|it| it.to_digit(10));
    let sum: u32 = values
        .enumerate()
        .map(
            |(position, digit)| match (position % 2, digit.saturating_mul(2)) {
                (0, _) => digit,
                (_, doubled) if doubled > 9 => doubled.saturating_sub(9),
                (_, doubled) => doubled,
            },
        )
        .sum();
    sum.is_multiple_of(10)
}

/// The text without whitespace and dashes.
fn compact(text: &str) -> String {
    text.chars()
        .filter(|it| !matches!(it, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '-'))
        .collect()
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let text = compact(text);
    let mut sum: u32 = 0;
    for (position, sign) in (1_u32..).zip(text.chars()) {
        let value = match sign {
            'X' if position == 10 => 10,
            digit if digit.is_ascii_digit() => digit.to_digit(10).unwrap_or_default(),
            _ => return false,
        };
        sum = sum.saturating_add(position.saturating_mul(value));
    }
    text.len() == 10 && sum.is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let text = compact(text);
    if text.len() != 13 || !text.bytes().all(|it| it.is_ascii_digit()) {
        return false;
    }
    let digits = text.chars().filter_map(|it| it.to_digit(10)).enumerate();
    let sum: u32 = digits
        .map(|(position, digit)| {
            if position % 2 == 0 {
                digit
            } else {
                digit.saturating_mul(3)
            }
        })
        .sum();
    sum.is_multiple_of(10)
}
