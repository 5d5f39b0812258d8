//! Texts and numbers near the limits of formats, patterns and types.

use lockkeeper_testkit::Rng;

/// Texts of most formats, and texts with special characters.
const TEXTS: [&str; 58] = [
    "",
    "a",
    "b",
    "abc",
    "foo",
    "foobar",
    "Bar",
    "a-b",
    "a.b",
    "a,b,c",
    " a ",
    "äö",
    "日本語",
    "😀",
    "0",
    "7",
    "10",
    "-3",
    "1.5",
    "1e3",
    "100Mi",
    "1Gi",
    "500m",
    "1k",
    "10.0.0.1",
    "10.0.0.0/8",
    "::1",
    "::ffff:10.0.0.1",
    "fd00::/8",
    "https://example.com:8080/a%20b?c=d&c=e",
    "example.com",
    "/path?q=1",
    "jane@example.com",
    "5s",
    "1h30m",
    "1d",
    "-2ms",
    "2026-01-02",
    "2026-01-02T03:04:05Z",
    "2026-01-02T03:04:05.678+01:00",
    "2026-13-02T03:04:05Z",
    "1.2.3",
    "v1.2",
    "1.0.0-rc.1+b",
    "true",
    "null",
    "AA==",
    "aGVsbG8=",
    "#ff00aa",
    "rgb(1,2,3)",
    "550e8400-e29b-41d4-a716-446655440000",
    "aa:bb:cc:dd:ee:ff",
    "978-3-16-148410-0",
    "4111111111111111",
    "123-45-6789",
    "507f1f77bcf86cd799439011",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "line\nbreak \"quoted\" \\ 'x'",
];

/// Formats that the API server checks, some that it does not, and texts for each.
const FORMATS: [(&str, &[&str]); 27] = [
    ("date", &["2026-01-02"]),
    (
        "date-time",
        &["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678+01:00"],
    ),
    ("datetime", &["2026-01-02T03:04:05Z"]),
    ("duration", &["5s", "1h30m", "-2ms", "1d"]),
    ("byte", &["AA==", "aGVsbG8="]),
    ("uuid", &["550e8400-e29b-41d4-a716-446655440000"]),
    ("uuid4", &["550e8400-e29b-41d4-a716-446655440000"]),
    ("ipv4", &["10.0.0.1"]),
    ("ipv6", &["::1", "::ffff:10.0.0.1"]),
    ("ip", &["10.0.0.1", "::1"]),
    ("cidr", &["10.0.0.0/8", "fd00::/8"]),
    ("mac", &["aa:bb:cc:dd:ee:ff"]),
    ("email", &["jane@example.com"]),
    ("uri", &["https://example.com:8080/a%20b?c=d&c=e"]),
    ("hostname", &["example.com"]),
    ("isbn", &["978-3-16-148410-0"]),
    ("isbn13", &["978-3-16-148410-0"]),
    ("creditcard", &["4111111111111111"]),
    ("ssn", &["123-45-6789"]),
    ("hexcolor", &["#ff00aa"]),
    ("rgbcolor", &["rgb(1,2,3)"]),
    ("bsonobjectid", &["507f1f77bcf86cd799439011"]),
    ("password", &["abc"]),
    ("k8s-short-name", &["a-b", "abc"]),
    ("k8s-long-name", &["a.b", "example.com"]),
    ("quantity", &["1Gi"]),
    ("unknown", &["abc"]),
];

/// Patterns and texts that match them.
const PATTERNS: [(&str, &[&str]); 11] = [
    ("^[a-z]+$", &["a", "abc", "foo"]),
    ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", &["a-b", "7", "foobar"]),
    ("^\\d+$", &["0", "10"]),
    ("a|b", &["abc", "foobar", "a,b,c"]),
    ("^(foo|bar)", &["foo", "foobar"]),
    (".*", &["", "日本語"]),
    ("^$", &[""]),
    ("\\p{L}", &["äö", "a"]),
    ("(?i)^BAR$", &["Bar"]),
    ("^.{2,4}$", &["10", "abc", "äö"]),
    ("[[:alpha:]]\\.", &["a.b", "example.com"]),
];

/// A text.
pub fn text(rng: &mut Rng) -> &'static str {
    TEXTS[rng.below(TEXTS.len())]
}

/// A format and texts that have it.
pub fn format(rng: &mut Rng) -> &'static str {
    rng.pick(&FORMATS).0
}

/// A pattern.
pub fn pattern(rng: &mut Rng) -> &'static str {
    rng.pick(&PATTERNS).0
}

/// A text with a format or a pattern; most of the time any text if neither is known.
pub fn text_like(format: Option<&str>, pattern: Option<&str>, rng: &mut Rng) -> &'static str {
    let find = |all: &[(&str, &'static [&'static str])], name: &str| {
        all.iter().find(|it| it.0 == name).map(|it| it.1)
    };
    let examples = format.and_then(|it| find(&FORMATS, it));
    let examples = examples.or_else(|| find(&PATTERNS, pattern?));
    match examples {
        Some(examples) if !rng.one_in(12) => examples[rng.below(examples.len())],
        _ => text(rng),
    }
}

/// An integer, often at a limit.
pub fn integer(rng: &mut Rng) -> i64 {
    const LIMITS: [i64; 9] = [
        i32::MAX as i64,
        i32::MAX as i64 + 1,
        i32::MIN as i64,
        1 << 53,
        (1 << 53) + 1,
        i64::MAX,
        i64::MIN,
        -1,
        100,
    ];
    if rng.one_in(8) {
        *rng.pick(&LIMITS)
    } else {
        rng.range(-2, 12)
    }
}

/// A number with or without a fraction.
pub fn number(rng: &mut Rng) -> f64 {
    *rng.pick(&[
        0.0, 1.0, -1.0, 0.5, 1.5, 2.25, -3.75, 10.0, 0.1, 1e9, 1e21, 1e-7, 1e300, 123.456,
    ])
}
