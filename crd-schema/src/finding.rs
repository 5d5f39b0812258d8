//! What a rule found: where, what was seen, and what would be accepted.

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
    /// The value stands in a list twice.
    Duplicate,
    /// The value refers to something that does not exist.
    NotFound,
    /// The value has too many characters.
    TooLong,
    /// The list has too many items.
    TooMany,
    /// The value has the wrong JSON type.
    TypeInvalid,
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
        }
    }

    /// The words that Kubernetes prints for it.
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
        }
    }
}

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The id of the rule, such as `CQ007`; only that of a user's rule is owned.
    pub rule: Cow<'static, str>,
    /// Where it is.
    pub field: FieldPath,
    /// What kind of error it is.
    pub kind: ErrorKind,
    /// The value seen, as it is to be printed. Errors of the kinds Required and Forbidden have none.
    pub value: Option<String>,
    /// What is wrong and what would be accepted: lower-case, no full stop.
    pub detail: Cow<'static, str>,
}

impl Finding {
    /// The text without the field: what a `Status` cause carries. It ends in the rule's id.
    #[must_use]
    pub fn message(&self) -> String {
        let value = self.value.as_deref().map_or(0, str::len);
        let length = self.detail.len().saturating_add(value);
        let mut out = String::with_capacity(length.saturating_add(MESSAGE_OVERHEAD_BYTES));
        // Writing to a string does not fail.
        let _ = write!(out, "{self:#}");
        out
    }

    /// The text without the rule's id.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = write!(out, "{}: ", self.field).and_then(|()| self.write_body(&mut out));
        out
    }

    /// Writes what is wrong, in Kubernetes' words.
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

    /// What makes two findings of a rule the same one when an object was updated: the place (list
    /// items by their key), the value seen and what was said of it.
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
    /// `field: Invalid value: "5": what is accepted [CQ007]`; without the field in the alternate
    /// form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            write!(f, "{}: ", self.field)?;
        }
        self.write_body(f)?;
        f.write_str(" [")?;
        f.write_str(&self.rule)?;
        f.write_str("]")
    }
}

/// Room for what a message has around the value and the detail, in bytes.
const MESSAGE_OVERHEAD_BYTES: usize = 32;

/// The most characters of a value that a message repeats.
const VALUE_LENGTH_MAX: usize = 64;

/// The bytes that quoting adds, with the sign of a cut.
const QUOTING_BYTES: usize = 5;

/// A string as it is printed in a message: quoted, escaped and cut at a bound.
#[must_use]
pub fn quoted(value: &str) -> String {
    let end = value.char_indices().nth(VALUE_LENGTH_MAX);
    let kept = end.map_or(value, |(end, _)| value.get(..end).unwrap_or_default());
    let mut out = String::with_capacity(kept.len().saturating_add(QUOTING_BYTES));
    // Writing to a string does not fail.
    let _ = write!(out, "{kept:?}");
    if end.is_some() {
        out.push('…');
    }
    out
}

/// A list of names as it is printed in a message: cut at a bound.
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

/// The most names in a list that a message repeats.
const NAMES_MAX: usize = 16;

/// The most findings that one rule keeps of one object: whoever sends an object with a million faults
/// gets an answer in time and little memory. Those past it are not looked for.
pub const FINDINGS_PER_RULE_MAX: usize = 10_000;

/// Where a rule puts what it finds.
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

    /// Everything found, in the order in which it was found.
    #[must_use]
    pub fn into_items(self) -> Vec<Finding> {
        self.items
    }

    /// Whether the rule need not look further: [`FINDINGS_PER_RULE_MAX`] is reached.
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
        let _ = write!(text, "{value}");
        let value = quoted(&text);
        self.push(field, ErrorKind::Invalid, Some(value), detail);
    }

    /// A value is missing.
    pub fn required(&mut self, field: FieldPath, detail: impl Into<Cow<'static, str>>) {
        self.push(field, ErrorKind::Required, None, detail);
    }

    /// The field may not be set here, or the operation may not be done.
    pub fn forbidden(&mut self, field: FieldPath, detail: impl Into<Cow<'static, str>>) {
        self.push(field, ErrorKind::Forbidden, None, detail);
    }

    /// The value stands in a list twice.
    pub fn duplicate(
        &mut self,
        field: FieldPath,
        value: &str,
        detail: impl Into<Cow<'static, str>>,
    ) {
        self.push(field, ErrorKind::Duplicate, Some(quoted(value)), detail);
    }

    /// The value is not one of a known set; `accepted` is that set.
    pub fn not_supported(&mut self, field: FieldPath, value: &str, accepted: &[&str]) {
        let detail = format!("supported values: {}", join_names(accepted.iter().copied()));
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
