#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use std::hash::{DefaultHasher, Hash, Hasher};

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

/// The results of apimachinery v0.37.1 (Go 1.26) for one text. The file was printed by a Go program that calls
/// `ParseQuantity`, `CanonicalizeBytes`, `AsDec`, `MilliValue` and `Value`.
///
/// Left out are texts for which Go's result is an accident of 32-bit arithmetic (exponents that do not fit, as in
/// `1e4294967299`), or which keep it busy for minutes (`1e-2000000000`). The tests below have them.
#[derive(Deserialize)]
struct GoResult {
    input: String,
    /// Absent when the text was accepted.
    error: Option<String>,
    canonical: Option<String>,
    /// Absent when it does not fit 128 bits.
    nano: Option<String>,
    /// Absent when the exact value does not fit 64 bits.
    milli: Option<i64>,
    /// Absent when the exact value does not fit 64 bits.
    value: Option<i64>,
    format: Option<String>,
    /// Whether Go holds the value as a big decimal. It then rounds negative values towards zero,
    /// and from 64 bits on returns the lowest bits (`Value` of -9223372036854775807 is 1).
    #[serde(default)]
    dec: bool,
}

/// Texts with exponents beyond 64 bits, which Go rejects as invalid suffixes, and we reject as too large.
const EXPONENTS_BEYOND_64_BITS: [&str; 4] = [
    "1e9223372036854775808",
    "1e-9223372036854775809",
    "1e999999999999999999999",
    "0e999999999999999999999",
];

/// Where Go finds no suffix above E and prints none, which loses a factor of 1000 or more: the text,
/// what Go prints, and what we print.
const BEYOND_EXA: [(&str, &str, &str); 8] = [
    ("1000E", "1", "1000E"),
    ("-1000E", "-1", "-1000E"),
    ("10000E", "10", "10000E"),
    ("100000E", "100", "100000E"),
    ("1000000E", "1", "1000000E"),
    ("-2048000E", "-2048", "-2048000E"),
    ("1000000P", "1", "1000E"),
    ("1000000000000000000000", "1", "1000E"),
];

fn quantity(text: &str) -> Quantity {
    text.parse()
        .unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn error(text: &str) -> QuantityError {
    match text.parse::<Quantity>() {
        Ok(quantity) => panic!("{text:?} is {quantity}"),
        Err(error) => error,
    }
}

fn check_refused(input: &str, go_error: &str) {
    let expected = match go_error {
        "format" => QuantityError::Malformed,
        "numeric" => QuantityError::NoDigits,
        "suffix" if EXPONENTS_BEYOND_64_BITS.contains(&input) => QuantityError::OutOfRange,
        "suffix" => QuantityError::UnknownSuffix,
        other => panic!("unknown error {other}"),
    };
    assert_eq!(error(input), expected, "{input:?}");
}

fn check_accepted(go: &GoResult) {
    let input = &go.input;
    let Some(nano) = &go.nano else {
        assert_eq!(error(input), QuantityError::OutOfRange, "{input:?}");
        return;
    };
    let ours = quantity(input);
    assert_eq!(ours.nano().to_string(), *nano, "{input:?}");

    let format = match ours.format {
        Format::DecimalSi => "DecimalSI",
        Format::BinarySi => "BinarySI",
        Format::DecimalExponent => "DecimalExponent",
    };
    assert_eq!(Some(format), go.format.as_deref(), "{input:?}");

    let canonical = go.canonical.as_deref().unwrap();
    match BEYOND_EXA.iter().find(|(text, ..)| text == input) {
        Some((_, theirs, our)) => assert_eq!((canonical, &*ours.to_string()), (*theirs, *our)),
        None => assert_eq!(ours.to_string(), canonical, "{input:?}"),
    }

    if !(go.dec && ours.is_negative()) {
        assert_eq!(ours.milli_ceil(), go.milli, "{input:?} in milli");
        assert_eq!(ours.whole_ceil(), go.value, "{input:?} in whole units");
    }
}

#[test]
fn quantity_parsing_agrees_with_kubernetes() {
    let lines = include_str!("../../tests/data/quantities.jsonl").lines();
    let table: Vec<GoResult> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(table.len() > 500);
    for go in &table {
        match &go.error {
            Some(go_error) => check_refused(&go.input, go_error),
            None => check_accepted(go),
        }
    }
    let exceptions = BEYOND_EXA.iter().map(|(text, ..)| text);
    for text in exceptions.chain(&EXPONENTS_BEYOND_64_BITS) {
        assert!(table.iter().any(|go| go.input == **text), "{text} is gone");
    }
}

#[test]
fn quantity_size_is_small() {
    assert!(size_of::<Quantity>() <= 32);
}

#[test]
fn exponents_beyond_32_bits_are_rejected() {
    for text in [
        "1e4294967299",  // 1000 in Kubernetes.
        "1e-4294967296", // 1 in Kubernetes.
        "0e2147483648",
        "1e-2147483648",
        "0.1e-2147483647", // Wraps around in Kubernetes.
    ] {
        assert_eq!(error(text), QuantityError::OutOfRange, "{text}");
    }
}

#[test]
fn long_texts_and_large_exponents_parse_quickly() {
    // A step that is quadratic in the length, or linear in the exponent, would not end here.
    let digits = "9".repeat(1_000_000);
    let zeroes = "0".repeat(1_000_000);
    assert_eq!(error(&digits), QuantityError::OutOfRange);
    assert_eq!(error(&format!("1{zeroes}")), QuantityError::OutOfRange);
    assert_eq!(error(&format!("1e{digits}")), QuantityError::OutOfRange);
    assert_eq!(error(&format!("1e-{digits}")), QuantityError::OutOfRange);
    assert_eq!(
        error(&format!("1{}", "E".repeat(1_000_000))),
        QuantityError::UnknownSuffix
    );
    assert_eq!(error(&" ".repeat(1_000_000)), QuantityError::Malformed);
    assert_eq!(
        quantity(&format!("{digits}Ki")).to_string(),
        "9223372036854775807"
    );
    assert_eq!(quantity(&format!("{zeroes}4")).to_string(), "4");
    assert_eq!(quantity(&format!("4.{zeroes}")).to_string(), "4");
    assert_eq!(quantity(&format!("4.{zeroes}1")).to_string(), "4000000001n");
    assert_eq!(
        quantity(&format!("4.{zeroes}1Ki")).to_string(),
        "4096000000001n"
    );
    assert_eq!(quantity(&format!("0.{digits}Ei")).to_string(), "1Ei");
    assert_eq!(quantity(&format!("0.{zeroes}4e1000001")).to_string(), "4");
    assert_eq!(quantity("1e-2000000000").to_string(), "1e-9");
    assert_eq!(error("1e2000000000"), QuantityError::OutOfRange);
}

#[test]
fn negative_values_round_away_from_zero() {
    for (text, milli, whole) in [
        ("-0.1n", Some(-1), Some(-1)),
        ("-1.0001Ki", Some(-1_024_103), Some(-1025)),
        (
            "-9223372036854775808m",
            Some(i64::MIN),
            Some(-9_223_372_036_854_776),
        ),
        ("-9223372036854775809m", None, Some(-9_223_372_036_854_776)),
        ("-9223372036854775808", None, Some(i64::MIN)),
        ("-9223372036854775809", None, None),
    ] {
        assert_eq!(quantity(text).milli_ceil(), milli, "{text}");
        assert_eq!(quantity(text).whole_ceil(), whole, "{text}");
    }
}

#[test]
fn equality_order_and_hash_are_by_value() {
    fn hash(quantity: Quantity) -> u64 {
        let mut hasher = DefaultHasher::new();
        quantity.hash(&mut hasher);
        hasher.finish()
    }
    for (a, b) in [
        ("4", "4000m"),
        ("1Gi", "1073741824"),
        ("1e3", "1k"),
        ("-0", "0Ki"),
    ] {
        assert_eq!(quantity(a), quantity(b));
        assert_eq!(hash(quantity(a)), hash(quantity(b)));
    }
    assert!(quantity("1G") < quantity("1Gi"));
    assert!(quantity("-1Gi") < quantity("-1"));
    assert!(quantity("-0").is_zero() && !quantity("-0").is_negative());
    assert_eq!(quantity("0"), Quantity::ZERO);
}

#[test]
fn error_messages_name_accepted_forms() {
    for (suffix, _) in DECIMAL_SI.iter().chain(&BINARY_SI) {
        let message = QuantityError::UnknownSuffix.to_string();
        assert!(message.contains(&format!("{suffix},")), "{suffix}");
    }
    assert!(QuantityError::OutOfRange.to_string().contains("1.7e29"));
    quantity("1.7e29");
    assert_eq!(error("1.8e29"), QuantityError::OutOfRange);
}

#[track_caller]
fn check_json(json: &str, expected: Result<&str, &str>) {
    let ours = serde_json::from_str::<Quantity>(json).map_err(|error| error.to_string());
    match (ours, expected) {
        (Ok(ours), Ok(canonical)) => {
            assert_eq!(serde_json::to_value(ours).unwrap(), json!(canonical));
            // By way of a value, which borrows nothing.
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::from_value::<Quantity>(value).unwrap(), ours);
        }
        (Err(ours), Err(message)) => assert!(ours.contains(message), "{json}: {ours}"),
        (ours, expected) => panic!("{json}: {ours:?}, expected {expected:?}"),
    }
}

#[test]
fn quantity_reads_json_strings_and_numbers() {
    check_json(r#""1024Ki""#, Ok("1Mi"));
    check_json(r#"" 1 ""#, Ok("1"));
    check_json("\"\u{a0}1\u{2003}\"", Ok("1"));
    check_json(r#""\u0031""#, Ok("1")); // Kubernetes does not decode escapes, and rejects it.
    check_json("4", Ok("4"));
    check_json("-4000", Ok("-4k"));
    check_json("18446744073709551615", Ok("18446744073709551615"));
    check_json("18446744073709551616", Ok("18446744073709552k")); // A float for serde_json.
    check_json("0.1", Ok("100m"));
    check_json("-1.5", Ok("-1500m"));
    check_json("-0.0", Ok("0"));
    check_json("1e3", Ok("1k"));
    check_json("0.000001", Ok("1u"));
    check_json("0.0000001", Ok("100e-9"));
    check_json("1e20", Ok("100E"));
    check_json("1e21", Ok("1e21"));
    check_json("0.30000000000000004", Ok("300000001n"));
    check_json("5e-324", Ok("1e-9"));

    check_json(r#""""#, Err("not a quantity"));
    check_json(r#""\n1""#, Err("not a quantity"));
    check_json(r#""1mi""#, Err("unknown suffix"));
    check_json("1e300", Err("out of range"));
    check_json(r#""1e300""#, Err("out of range"));
    check_json("null", Err("invalid type: null, expected a quantity"));
    check_json(
        "true",
        Err("invalid type: boolean `true`, expected a quantity"),
    );
    check_json("[1]", Err("invalid type: sequence, expected a quantity"));
    check_json(r#"{"a": 1}"#, Err("invalid type: map, expected a quantity"));
    assert!(
        serde_json::from_str::<Option<Quantity>>("null")
            .unwrap()
            .is_none()
    );
}

#[test]
fn schema_matches_kubernetes() {
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Quota {
        /// The amount.
        nominal: Quantity,
    }
    let schema = serde_json::to_value(schemars::schema_for!(Quota)).unwrap();
    assert_eq!(
        schema["properties"]["nominal"],
        json!({
            "description": "The amount.",
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
            "x-kubernetes-int-or-string": true,
        })
    );
    assert!(schema.get("$defs").is_none());
}

/// Any quantity that parsing can give, of any magnitude.
fn any_quantity() -> impl Strategy<Value = Quantity> {
    let format = prop_oneof![
        Just(Format::DecimalSi),
        Just(Format::BinarySi),
        Just(Format::DecimalExponent),
    ];
    let unit = prop_oneof![
        Just(1),
        Just(1000),
        Just(1024),
        Just(NANO_PER_WHOLE),
        Just(1024_i128.pow(6))
    ];
    (any::<i128>(), 0_u32..127, unit, format).prop_map(|(bits, shift, unit, format)| {
        let nano = (bits >> shift).saturating_mul(unit);
        let max = i128::try_from(parse::BINARY_NANO_MAX).unwrap();
        let nano = if format == Format::BinarySi {
            nano.clamp(-max, max)
        } else {
            nano
        };
        Quantity { nano, format }
    })
}

proptest! {
    #[test]
    fn printed_quantity_round_trips(quantity in any_quantity()) {
        let printed = quantity.to_string();
        let parsed: Quantity = printed.parse().unwrap();
        prop_assert_eq!(parsed.nano(), quantity.nano(), "{}", printed);
        let printed_again = parsed.to_string();
        // A binary amount without a binary suffix is read as a decimal one, as in Kubernetes:
        // 2000 bytes are printed as "2000", which is read and printed as "2k".
        if parsed.format == quantity.format {
            prop_assert_eq!(&printed_again, &printed);
        }
        let parsed_again: Quantity = printed_again.parse().unwrap();
        prop_assert_eq!(parsed_again.nano(), quantity.nano());
        prop_assert_eq!(parsed_again.to_string(), printed_again);
    }

    #[test]
    fn order_matches_nano(a in any_quantity(), b in any_quantity()) {
        prop_assert_eq!(a.cmp(&b), a.nano().cmp(&b.nano()));
        prop_assert_eq!(a == b, a.nano() == b.nano());
    }

    #[test]
    fn parsing_never_panics(
        any_text in ".*",
        near in "[+-]?[0-9.]{0,60}[eEinumkKMGTP]{0,3}[+-]?[0-9]{0,12}",
    ) {
        for text in [any_text, near] {
            if let Ok(quantity) = text.parse::<Quantity>() {
                prop_assert_eq!(quantity.to_string().parse::<Quantity>(), Ok(quantity));
            }
        }
    }

    #[test]
    fn fractions_of_binary_units_are_rounded_up_exactly(
        // With 3 digits the product is a whole number of nano units. The tail adds less than one.
        thousandths in 0_u64..8_000, bits in 1_usize..=6, tail in "(0{30,100}1)?",
    ) {
        let (suffix, power) = BINARY_SI[bits];
        let text = format!("{}.{:03}{tail}{suffix}", thousandths / 1000, thousandths % 1000);
        let exact = u128::from(thousandths) * 2_u128.pow(power.unsigned_abs()) * 1_000_000;
        let expected = exact + u128::from(tail.ends_with('1'));
        let capped = expected.min(parse::BINARY_NANO_MAX);
        prop_assert_eq!(quantity(&text).nano(), i128::try_from(capped).unwrap(), "{}", text);
    }
}

#[test]
fn quantities_from_milli_bytes_and_whole() {
    let printed = [
        (Quantity::from_milli(1500), "1500m"),
        (Quantity::from_milli(2000), "2"),
        (Quantity::from_milli(i64::MIN), "-9223372036854775808m"),
        (Quantity::from_bytes(4 << 30), "4Gi"),
        (Quantity::from_bytes(1000), "1k"),
        (Quantity::from_bytes(2000), "2000"),
        (Quantity::from(3000), "3k"),
        (Quantity::from(i64::MAX), "9223372036854775807"),
    ];
    for (quantity, text) in printed {
        assert_eq!(quantity.to_string(), text);
        assert_eq!(text.parse(), Ok(quantity));
    }
    assert_eq!(Quantity::from_milli(i64::MAX).milli_ceil(), Some(i64::MAX));
    assert_eq!(Quantity::from(i64::MIN).whole_ceil(), Some(i64::MIN));
}

#[test]
fn checked_sum_is_exact_or_none() {
    let quantity = |text: &str| text.parse::<Quantity>().unwrap();
    let sum = |a, b| quantity(a).checked_add(quantity(b));
    assert_eq!(sum("1Gi", "1Mi").unwrap().to_string(), "1025Mi");
    assert_eq!(sum("0", "1Gi").unwrap().to_string(), "1Gi");
    assert_eq!(sum("0.1m", "1").unwrap().nano(), 1_000_100_000);
    assert_eq!(sum("100000000000E", "100000000000E"), None);
}

proptest! {
    #[test]
    fn parse_usual_equals_parse_any(digits in "[0-9]{0,20}", suffix in "(|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e3| |x)") {
        let text = format!("{digits}{suffix}");
        if let Some(usual) = parse::parse_usual(&text) {
            let any = parse::parse_any(&text).unwrap();
            prop_assert_eq!((usual.nano, usual.format), (any.nano, any.format), "{}", text);
        }
    }
}

#[test]
fn parse_usual_reads_digits_with_common_suffix() {
    for text in ["0", "4", "500m", "16Gi", "999999999999999999", "8388607Ti"] {
        assert!(parse::parse_usual(text).is_some(), "{text}");
    }
    for text in [
        "",
        "m",
        "-1",
        "+1",
        "1.5",
        "1e3",
        " 1",
        "1000000000000000000",
        "8388608Ti",
    ] {
        assert!(parse::parse_usual(text).is_none(), "{text}");
    }
}
