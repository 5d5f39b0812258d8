//! Parses the page of a user rule.

use super::front_matter::{FailurePolicy, FrontMatter, KindYaml, ValidationYaml};
use super::limits::{KINDS_MAX, PAGE_MAX_BYTES, VALIDATIONS_MAX};
use super::path;
use crate::finding::ErrorKind;
use crate::rule_info::{Operation, RuleInfo};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_crd_schema::cel::{Expression, ParseError};
use serde_saphyr::{Location, Spanned};
use std::collections::BTreeSet;
use std::fmt;

/// The line before and after the front matter.
const FENCE: &str = "---";

/// The longest message of a rule, in characters.
pub(super) const MESSAGE_LENGTH_MAX: usize = 512;

/// A user rule with compiled expressions.
#[derive(Debug)]
pub struct UserRule {
    /// The code, three to eight letters and three digits.
    pub id: String,
    /// The name of the defect in kebab-case.
    pub name: String,
    /// The kinds of the rule.
    pub kinds: Vec<Kind>,
    /// The operations that run the rule.
    pub operations: BTreeSet<Operation>,
    /// The default action.
    pub action: Action,
    /// The page without its front matter.
    pub doc: String,
    pub(super) failure_policy: FailurePolicy,
    pub(super) conditions: Vec<Expression>,
    pub(super) validations: Vec<Validation>,
    /// The line of the page on which [`Self::doc`] begins, from 1.
    pub(super) doc_line: usize,
}

/// The group, version and kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindName<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The API version.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
}

impl<'a> KindName<'a> {
    /// The kind of an object with this apiVersion and kind.
    #[must_use]
    pub fn from_api_version(api_version: &'a str, kind: &'a str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group,
            version,
            kind,
        }
    }
}

/// A kind in the front matter of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version; `*` for any.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural in API paths, if the page sets it.
    pub plural: Option<String>,
}

impl Kind {
    /// Whether a kind matches.
    #[must_use]
    pub fn matches(&self, other: KindName<'_>) -> bool {
        let is_version = self.version == ANY || self.version == other.version;
        self.kind == other.kind && self.group == other.group && is_version
    }

    /// The apiVersion; `*` is any version.
    #[must_use]
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// Any version of a group.
pub(crate) const ANY: &str = "*";

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version(), self.kind)
    }
}

/// One validation of a rule.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) expression: Expression,
    pub(super) message: Option<String>,
    pub(super) message_expression: Option<Expression>,
    pub(super) field: FieldPath,
    pub(super) kind: ErrorKind,
}

/// A page that is not a valid rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageError {
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1, in characters.
    pub column: u64,
    /// The error.
    pub problem: Problem,
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.problem)
    }
}

impl std::error::Error for PageError {}

/// An error in a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The page is larger than the limit.
    TooLarge,
    /// The page has no front matter.
    NoFrontMatter,
    /// The front matter is not valid.
    FrontMatter(String),
    /// The id is not valid for a user rule.
    Id {
        /// The id.
        id: String,
        /// The reason.
        reason: String,
    },
    /// The name is invalid or taken.
    Name {
        /// The name.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A list is empty or too long.
    Count {
        /// The list.
        key: &'static str,
        /// The most items.
        max: usize,
    },
    /// A kind is invalid.
    Kind(String),
    /// An expression does not compile.
    InvalidExpression {
        /// The id of the rule.
        rule: String,
        /// Line and column within the expression, if they are known.
        place: Option<(isize, isize)>,
        /// The error.
        reason: String,
    },
    /// A message is empty, too long or has several lines.
    Message,
    /// A field path is invalid.
    Path(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(f, "the page has more than {PAGE_MAX_BYTES} bytes"),
            Self::NoFrontMatter => write!(
                f,
                "a page begins with the rule as YAML between two lines of {FENCE}"
            ),
            Self::FrontMatter(why) | Self::Kind(why) | Self::Path(why) => f.write_str(why),
            Self::Id { id, reason: why } => write!(f, "the id {id:?}: {why}"),
            Self::Name { name, reason: why } => write!(f, "the name {name:?}: {why}"),
            Self::Count { key, max } => write!(f, "{key} has from 1 to {max} items"),
            Self::InvalidExpression {
                rule,
                place,
                reason,
            } => match place {
                Some((line, column)) => write!(
                    f,
                    "the expression of {rule}, at its {line}:{column}: {reason}"
                ),
                None => write!(f, "the expression of {rule}: {reason}"),
            },
            Self::Message => write!(
                f,
                "a message is one line of 1 to {MESSAGE_LENGTH_MAX} characters"
            ),
        }
    }
}

impl UserRule {
    /// Parses a page. Its name must differ from those of the built-in rules.
    ///
    /// # Errors
    ///
    /// The first error of the page.
    pub fn parse(page: &str, built_in: &[RuleInfo]) -> Result<Self, PageError> {
        let top = |problem| PageError {
            line: 1,
            column: 1,
            problem,
        };
        if page.len() > PAGE_MAX_BYTES {
            return Err(top(Problem::TooLarge));
        }
        let (front, doc, doc_line) =
            split_front_matter(page).ok_or_else(|| top(Problem::NoFrontMatter))?;
        let front: FrontMatter = serde_saphyr::from_str(front).map_err(|error| {
            let text = error.without_snippet().to_string();
            let first = text.lines().next().unwrap_or_default();
            // The parser counts lines from the front matter; `PageError` has those of the page.
            let end = first.rfind(" at line ").unwrap_or(first.len());
            let message = first.get(..end).unwrap_or(first).to_owned();
            let place = error.location().unwrap_or(Location::UNKNOWN);
            error_at(&place, Problem::FrontMatter(message))
        })?;
        check_id(&front.id)?;
        check_name(&front.name, built_in)?;
        Ok(Self {
            kinds: check_count("kinds", &front.kinds, KINDS_MAX)?
                .iter()
                .map(|location| {
                    kind(location)
                        .map_err(|why| error_at(&front.kinds.referenced, Problem::Kind(why)))
                })
                .collect::<Result<_, _>>()?,
            operations: check_count("operations", &front.operations, OPERATIONS_MAX)?
                .iter()
                .map(|it| (*it).into())
                .collect(),
            action: front.action,
            failure_policy: front.failure_policy,
            conditions: match &front.match_conditions {
                None => Vec::new(),
                Some(given) => check_count("matchConditions", given, VALIDATIONS_MAX)?
                    .iter()
                    .map(|it| expression(&front.id.value, &it.expression))
                    .collect::<Result<_, _>>()?,
            },
            validations: check_count("validations", &front.validations, VALIDATIONS_MAX)?
                .iter()
                .map(|it| validation(&front.id.value, it))
                .collect::<Result<_, _>>()?,
            doc: doc.to_owned(),
            doc_line,
            id: front.id.value,
            name: front.name.value,
        })
    }

    /// Whether the rule applies to a kind.
    #[must_use]
    pub fn applies_to(&self, kind: KindName<'_>) -> bool {
        self.kinds.iter().any(|it| it.matches(kind))
    }
}

/// The number of operations that exist.
const OPERATIONS_MAX: usize = 3;

/// The front matter, the text after it, and the first line of that text.
fn split_front_matter(page: &str) -> Option<(&str, &str, usize)> {
    // Some editors begin a file with a byte order mark.
    let page = page.strip_prefix('\u{feff}').unwrap_or(page);
    let after = page.strip_prefix(FENCE)?;
    let after = after
        .strip_prefix('\r')
        .unwrap_or(after)
        .strip_prefix('\n')?;
    let mut front = 0_usize;
    for (number, line) in (2_usize..).zip(after.split_inclusive('\n')) {
        let end = front.saturating_add(line.len());
        if line.trim_end() == FENCE {
            return Some((
                after.get(..front)?,
                after.get(end..)?,
                number.saturating_add(1),
            ));
        }
        front = end;
    }
    None
}

/// An error at a location of the front matter, which begins on the second line.
fn error_at(place: &Location, problem: Problem) -> PageError {
    PageError {
        line: place.line().saturating_add(1),
        column: place.column().max(1),
        problem,
    }
}

fn check_count<'a, T>(
    key: &'static str,
    list: &'a Spanned<Vec<T>>,
    max: usize,
) -> Result<&'a [T], PageError> {
    if list.value.is_empty() || list.value.len() > max {
        return Err(error_at(&list.referenced, Problem::Count { key, max }));
    }
    Ok(&list.value)
}

/// Whether an id is one of a user rule: three to eight letters and three digits. The ids of built-in rules have two
/// letters, so the two never collide.
#[must_use]
pub fn is_user_id(id: &str) -> bool {
    let letters = id.trim_end_matches(|it: char| it.is_ascii_digit());
    let digits = id.len().saturating_sub(letters.len());
    let is_long = (LETTERS_MIN..=LETTERS_MAX).contains(&letters.len());
    is_long && digits == DIGITS && letters.bytes().all(|it| it.is_ascii_uppercase())
}

const LETTERS_MIN: usize = 3;
const LETTERS_MAX: usize = 8;
const DIGITS: usize = 3;

fn check_id(id: &Spanned<String>) -> Result<(), PageError> {
    if is_user_id(&id.value) {
        return Ok(());
    }
    let letters = id.value.trim_end_matches(|it: char| it.is_ascii_digit());
    // Such an id looks like one of a built-in rule, so the message names the difference.
    let is_own = letters.len() < LETTERS_MIN && letters.bytes().all(|it| it.is_ascii_uppercase());
    let why = if is_own {
        "ids with two letters are lockkeeper's own; take three to eight, such as TEAM001".to_owned()
    } else {
        "it is three to eight capital letters and three digits, such as TEAM001".to_owned()
    };
    let id_text = id.value.clone();
    Err(error_at(
        &id.referenced,
        Problem::Id {
            id: id_text,
            reason: why,
        },
    ))
}

fn check_name(name: &Spanned<String>, built_in: &[RuleInfo]) -> Result<(), PageError> {
    let text = &name.value;
    let is_kebab = text
        .bytes()
        .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-');
    let why = if text.is_empty() || text.len() > NAME_LENGTH_MAX || !is_kebab {
        format!(
            "it is 1 to {NAME_LENGTH_MAX} lower-case letters, digits and '-', such as queue-without-team"
        )
    } else if let Some(rule) = built_in.iter().find(|it| it.name == text) {
        format!("{} of lockkeeper has it; take another", rule.id)
    } else {
        return Ok(());
    };
    let name_text = text.clone();
    Err(error_at(
        &name.referenced,
        Problem::Name {
            name: name_text,
            reason: why,
        },
    ))
}

/// The longest name, in characters.
const NAME_LENGTH_MAX: usize = 63;

fn kind(yaml: &KindYaml) -> Result<Kind, String> {
    if yaml.kind.is_empty() || yaml.kind == ANY {
        return Err("a kind must be named; there is no wildcard".to_owned());
    }
    if yaml.version.is_empty() || yaml.version.contains('/') || yaml.group == ANY {
        return Err(format!(
            "{} must say its group and its version, such as {{group: batch, version: v1, kind: Job}}; the \
             version may be '*'",
            yaml.kind
        ));
    }
    Ok(Kind {
        group: yaml.group.clone(),
        version: yaml.version.clone(),
        kind: yaml.kind.clone(),
        plural: yaml.plural.clone(),
    })
}

fn expression(rule: &str, text: &Spanned<String>) -> Result<Expression, PageError> {
    Expression::new(&text.value).map_err(|ParseError { place, reason }| {
        let problem = Problem::InvalidExpression {
            rule: rule.to_owned(),
            place,
            reason,
        };
        error_at(&text.referenced, problem)
    })
}

fn validation(rule: &str, yaml: &ValidationYaml) -> Result<Validation, PageError> {
    if let Some(message) = &yaml.message
        && !is_message(&message.value)
    {
        return Err(error_at(&message.referenced, Problem::Message));
    }
    let field = match &yaml.field_path {
        None => FieldPath::default(),
        Some(text) => {
            let path = path::parse(&text.value);
            path.map_err(|why| error_at(&text.referenced, Problem::Path(why)))?
        }
    };
    let message_expression = yaml.message_expression.as_ref();
    let message_expression = message_expression.map(|it| expression(rule, it));
    Ok(Validation {
        expression: expression(rule, &yaml.expression)?,
        message: yaml.message.as_ref().map(|it| it.value.clone()),
        message_expression: message_expression.transpose()?,
        field,
        kind: yaml.reason.into(),
    })
}

/// Whether a message is one non-empty line within the limit.
pub(super) fn is_message(text: &str) -> bool {
    let is_short = text.chars().nth(MESSAGE_LENGTH_MAX).is_none();
    is_short && !text.trim().is_empty() && !text.contains(char::is_control)
}
