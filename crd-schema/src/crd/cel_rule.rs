//! A CEL rule of a schema (`x-kubernetes-validations`), compiled.

use super::cel_program::Program;
use super::values::{flag_at, text_at};
use serde_json::Value;

/// A rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) text: String,
    /// Why the rule does not compile.
    pub(super) program: Result<Program, String>,
    pub(super) message: String,
    pub(super) message_expression: Option<Program>,
    pub(super) reason: Option<String>,
    /// The names of the fields below the value that findings name.
    pub(super) field_path: Vec<PathPart>,
    pub(super) has_optional_old_self: bool,
}

/// A step of `fieldPath`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathPart(pub(super) String);

impl Rule {
    /// Compiles a rule.
    pub(super) fn new(rule: &Value) -> Self {
        let text = text_at(rule, "rule").unwrap_or_default();
        let expression = text_at(rule, "messageExpression").filter(|it| !it.is_empty());
        Self {
            text: text.to_owned(),
            program: Program::new(text),
            message: text_at(rule, "message")
                .unwrap_or_default()
                .trim()
                .to_owned(),
            message_expression: expression.and_then(|it| Program::new(it).ok()),
            reason: text_at(rule, "reason").map(str::to_owned),
            field_path: path_parts(text_at(rule, "fieldPath").unwrap_or_default()),
            has_optional_old_self: flag_at(rule, "optionalOldSelf"),
        }
    }

    /// The message, or the text of the rule without one.
    pub(super) fn name(&self) -> &str {
        if self.message.is_empty() {
            self.text.trim()
        } else {
            &self.message
        }
    }

    /// The message without `messageExpression`.
    pub(super) fn default_message(&self) -> String {
        if self.message.is_empty() {
            format!("failed rule: {}", self.text.trim())
        } else {
            self.message.clone()
        }
    }
}

/// The steps of a path such as `.spec['a.b']`.
fn path_parts(path: &str) -> Vec<PathPart> {
    let mut out = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("['") {
            let mut name = String::new();
            let mut signs = quoted.char_indices();
            let mut end = quoted.len();
            while let Some((at, sign)) = signs.next() {
                match sign {
                    '\\' => name.extend(signs.next().map(|it| it.1)),
                    '\'' => {
                        end = at.saturating_add(2);
                        break;
                    }
                    other => name.push(other),
                }
            }
            // Only rules of invalid definitions have such paths; they name no field.
            if quoted.get(end.saturating_sub(1)..end) != Some("]") {
                return Vec::new();
            }
            out.push(PathPart(name));
            rest = quoted.get(end..).unwrap_or_default();
        } else {
            let Some(body) = rest.strip_prefix('.') else {
                return Vec::new();
            };
            let end = body.find(['.', '[']).unwrap_or(body.len());
            let (name, tail) = body.split_at(end);
            if name.is_empty() {
                return Vec::new();
            }
            out.push(PathPart(name.to_owned()));
            rest = tail;
        }
    }
    out
}
