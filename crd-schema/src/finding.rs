//! Findings: the path, the value, and the accepted values.

use lockkeeper_api::field_path::FieldPath;
use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// The kinds of field errors, those of apimachinery's `field.ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The value is not allowed.
    Invalid,
    /// A value is missing.
    Required,
    /// The field may not be set here, or the operation may not be done.
    Forbidden,
    /// The value is not one of a known set.
    NotSupported,
    /// The value is in the list more than once.
    Duplicate,
    /// The value refers to something that does not exist.
    NotFound,
    /// The value has too many characters.
    TooLong,
    /// The list has too many items.
    TooMany,
    /// The value has the wrong JSON type.
    TypeInvalid,
    /// The API server cannot validate the field.
    Internal,
}

impl ErrorKind {
    /// The machine-readable reason in a `Status` cause.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    /// Kubernetes' text for the kind.
    fn description(self) -> &'static str {
        match self {
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::Required => "Required value",
            Self::Forbidden => "Forbidden",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }
}

/// One violation of a rule by an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The id of the rule, such as `CQ007`; only that of a user's rule is owned.
    pub rule: Cow<'static, str>,
    /// The path.
    pub field: FieldPath,
    /// The kind of error.
    pub kind: ErrorKind,
    /// The value as printed. Errors of the kinds Required and Forbidden have none.
    pub value: Option<String>,
    /// The violation and the accepted values: lower-case, no full stop.
    pub detail: Cow<'static, str>,
}

impl Finding {
    /// The text without the path, for a `Status` cause. It ends in the id of the rule.
    #[must_use]
    pub fn message(&self) -> String {
        let value = self.value.as_deref().map_or(0, str::len);
        let length = self.detail.len().saturating_add(value);
        let mut out = String::with_capacity(length.saturating_add(MESSAGE_OVERHEAD_BYTES));
        // Writing to a string does not fail.
        let _ = self.write_message(&mut out);
        out
    }

    /// Appends the text with path and rule id, as [`Display`](fmt::Display) prints it, without its overhead.
    pub fn push_to(&self, out: &mut String) {
        self.field.push_to(out);
        out.push_str(": ");
        // Writing to a string does not fail.
        let _ = self.write_message(out);
    }

    /// Writes the [message](Self::message).
    ///
    /// # Errors
    ///
    /// Fails only if `out` does.
    pub fn write_message(&self, out: &mut impl fmt::Write) -> fmt::Result {
        self.write_body(out)?;
        [" [", &*self.rule, "]"]
            .into_iter()
            .try_for_each(|part| out.write_str(part))
    }

    /// The text without the rule's id.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.push_text_to(&mut out);
        out
    }

    /// Appends the [text](Self::text).
    pub fn push_text_to(&self, out: &mut String) {
        self.field.push_to(out);
        out.push_str(": ");
        // Writing to a string does not fail.
        let _ = self.write_body(out);
    }

    /// Writes kind, value and detail in Kubernetes' format.
    fn write_body(&self, out: &mut impl fmt::Write) -> fmt::Result {
        out.write_str(self.kind.description())?;
        for part in [self.value.as_deref(), Some(&*self.detail)]
            .into_iter()
            .flatten()
        {
            if !part.is_empty() {
                out.write_str(": ")?;
                out.write_str(part)?;
            }
        }
        Ok(())
    }

    /// The identity of a finding across versions of an object: path (list items by key), value and detail. Two
    /// findings of a rule with the same identity are the same for ratcheting.
    #[must_use]
    pub fn identity(&self) -> Identity {
        (
            self.field.identity(),
            self.value.clone(),
            self.detail.clone(),
        )
    }
}

/// See [`Finding::identity`].
pub type Identity = (String, Option<String>, Cow<'static, str>);

impl fmt::Display for Finding {
    /// `field: Invalid value: "5": accepted values [CQ007]`; without the field in the alternate
    /// form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            write!(f, "{}: ", self.field)?;
        }
        self.write_message(f)
    }
}

/// The bytes of a message besides value and detail, for the allocation.
const MESSAGE_OVERHEAD_BYTES: usize = 32;

/// The most characters of a value in a message.
const VALUE_LENGTH_MAX: usize = 64;

/// The bytes that quotes and the ellipsis add.
const QUOTING_BYTES: usize = 5;

/// A string as messages print it: quoted, escaped and cut at a bound.
#[must_use]
pub fn quoted(value: &str) -> String {
    // Cut at a character, not at a byte: a slice inside a code point would be empty.
    let end = value.char_indices().nth(VALUE_LENGTH_MAX);
    let prefix = end.map_or(value, |(end, _)| value.get(..end).unwrap_or_default());
    let mut out = String::with_capacity(prefix.len().saturating_add(QUOTING_BYTES));
    if needs_no_escape(prefix) {
        out.push('"');
        out.push_str(prefix);
        out.push('"');
    } else {
        // Writing to a string does not fail.
        let _ = write!(out, "{prefix:?}");
    }
    if end.is_some() {
        out.push('…');
    }
    out
}

/// Whether `Debug` of a text is the text in quotes. False for texts that are not ASCII: some of them need escapes.
fn needs_no_escape(text: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    text.bytes().all(is_plain)
}

/// A list of names as messages print it: cut at a bound.
#[must_use]
pub fn join_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = String::new();
    for (position, name) in names.into_iter().enumerate() {
        if position > 0 {
            out.push_str(", ");
        }
        if position == NAMES_MAX {
            out.push('…');
            break;
        }
        out.extend(name.chars().take(VALUE_LENGTH_MAX));
    }
    out
}

/// The most names of a list in a message.
const NAMES_MAX: usize = 16;

/// The most findings of one rule in one object. Bounds time and memory for an object with a million violations; rules
/// stop at this number.
pub const FINDINGS_PER_RULE_MAX: usize = 10_000;

/// Collects the findings of one rule.
#[derive(Debug)]
pub struct Findings {
    rule: &'static str,
    items: Vec<Finding>,
}

impl Findings {
    /// An empty collection for the rule with this id.
    #[must_use]
    pub fn new(rule: &'static str) -> Self {
        Self {
            rule,
            items: Vec::new(),
        }
    }

    /// The findings in the order they were reported.
    #[must_use]
    pub fn into_items(self) -> Vec<Finding> {
        self.items
    }

    /// Whether [`FINDINGS_PER_RULE_MAX`] is reached and the rule may stop.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.items.len() >= FINDINGS_PER_RULE_MAX
    }

    /// The value is not allowed. `value` is printed in quotes.
    pub fn invalid(
        &mut self,
        field: FieldPath,
        value: impl fmt::Display,
        detail: impl Into<Cow<'static, str>>,
    ) {
        let mut text = String::with_capacity(VALUE_LENGTH_MAX);
        // Writing to a string does not fail.
        let _ = write!(text, "\"{value}");
        let plain = text.get(1..).unwrap_or_default();
        if plain.len() <= VALUE_LENGTH_MAX && needs_no_escape(plain) {
            text.push('"');
        } else {
            text = quoted(plain);
        }
        self.push(field, ErrorKind::Invalid, Some(text), detail);
    }

    /// A value is missing.
    pub fn required(&mut self, field: FieldPath, detail: impl Into<Cow<'static, str>>) {
        self.push(field, ErrorKind::Required, None, detail);
    }

    /// The field may not be set here, or the operation may not be done.
    pub fn forbidden(&mut self, field: FieldPath, detail: impl Into<Cow<'static, str>>) {
        self.push(field, ErrorKind::Forbidden, None, detail);
    }

    /// The value is in the list more than once.
    pub fn duplicate(
        &mut self,
        field: FieldPath,
        value: &str,
        detail: impl Into<Cow<'static, str>>,
    ) {
        self.push(field, ErrorKind::Duplicate, Some(quoted(value)), detail);
    }

    /// The value is not one of a known set; `accepted` is that set, which may be empty.
    pub fn not_supported(&mut self, field: FieldPath, value: &str, accepted: &[&str]) {
        let detail = if accepted.is_empty() {
            "no value is supported here; remove it".to_owned()
        } else {
            format!("supported values: {}", join_names(accepted.iter().copied()))
        };
        self.push(field, ErrorKind::NotSupported, Some(quoted(value)), detail);
    }

    /// The value has too many characters.
    pub fn too_long(&mut self, field: FieldPath, detail: impl Into<Cow<'static, str>>) {
        self.push(field, ErrorKind::TooLong, None, detail);
    }

    /// The list has too many items.
    pub fn too_many(&mut self, field: FieldPath, count: usize, max: usize) {
        let detail = format!("must have at most {max} items");
        self.push(field, ErrorKind::TooMany, Some(count.to_string()), detail);
    }

    /// The value refers to something that does not exist.
    pub fn not_found(
        &mut self,
        field: FieldPath,
        value: &str,
        detail: impl Into<Cow<'static, str>>,
    ) {
        self.push(field, ErrorKind::NotFound, Some(quoted(value)), detail);
    }

    fn push(
        &mut self,
        field: FieldPath,
        kind: ErrorKind,
        value: Option<String>,
        detail: impl Into<Cow<'static, str>>,
    ) {
        if !self.is_full() {
            self.items.push(Finding {
                rule: Cow::Borrowed(self.rule),
                field,
                kind,
                value,
                detail: detail.into(),
            });
        }
    }
}
