//! Folds a new CEL rule for values that were accepted before: fields and enum values that are new in the same change
//! are absent from them.

use super::rule_tokens::{Token, tokenize};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrBool,
};

/// The fields that the API server adds to the schemas of objects.
const IMPLIED: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The deepest nesting of an expression that is folded.
const DEPTH_MAX: usize = 32;

/// Whether the rule is true for every value of the old schema. `false` if that is unknown: only the forms that schemas
/// use for new fields are recognized.
pub(super) fn accepts_former_values(
    rule: &str,
    old: &JSONSchemaProps,
    new: &JSONSchemaProps,
) -> bool {
    let folding = Folding { old, new };
    tokenize(rule).is_some_and(|tokens| folding.fold(&tokens, DEPTH_MAX) == Some(true))
}

/// The schemas of `self`.
struct Folding<'a> {
    old: &'a JSONSchemaProps,
    new: &'a JSONSchemaProps,
}

impl Folding<'_> {
    /// The value of an expression; `None` if it is unknown or an error is possible.
    fn fold(&self, tokens: &[Token<'_>], depth: usize) -> Option<bool> {
        let below = depth.checked_sub(1)?;
        let fold = |part: &[Token<'_>]| self.fold(part, below);
        if let Some(inner) = parenthesized(tokens) {
            return fold(inner);
        }
        if let Some((condition, yes, no)) = conditional(tokens) {
            return fold(if fold(condition)? { yes } else { no });
        }
        // In CEL the other operand of `||` and `&&` may be an error if one decides.
        let alternatives = split(tokens, "||");
        if alternatives.len() > 1 {
            let folded: Vec<_> = alternatives.into_iter().map(fold).collect();
            return decide(&folded, true);
        }
        let conditions = split(tokens, "&&");
        if conditions.len() > 1 {
            let folded: Vec<_> = conditions.into_iter().map(fold).collect();
            return decide(&folded, false);
        }
        for (operator, is_negated) in [("==", false), ("!=", true), ("in", false)] {
            if let [left, right] = split(tokens, operator).as_slice() {
                let is_equal = self.compare(left, operator, right)?;
                return Some(is_equal != is_negated);
            }
        }
        match tokens {
            [Token::Symbol("!"), rest @ ..] => fold(rest).map(|it| !it),
            [Token::Name("true")] => Some(true),
            [Token::Name("false")] => Some(false),
            [
                Token::Name("has"),
                Token::Symbol("("),
                path @ ..,
                Token::Symbol(")"),
            ] => self.is_new_field(path).then_some(false),
            _ => None,
        }
    }

    /// Whether the last field of a path cannot be in an old value, and the others always are.
    fn is_new_field(&self, path: &[Token<'_>]) -> bool {
        let Some((parent, name)) = self.parent(path) else {
            return false;
        };
        let (old, new) = parent;
        let has_default = property(new, name).is_none_or(|it| it.default.is_some());
        !IMPLIED.contains(&name) && !accepts(old, name) && !has_default
    }

    /// Whether a field equals a literal, or one of a list of literals: `Some(false)` if the field always has a value,
    /// and none of the literals was in its enum.
    fn compare(&self, left: &[Token<'_>], operator: &str, right: &[Token<'_>]) -> Option<bool> {
        let (path, literals) = match (left, right) {
            ([Token::Text(text)], path) if operator != "in" => (path, vec![*text]),
            (path, [Token::Text(text)]) if operator != "in" => (path, vec![*text]),
            (path, [Token::Symbol("["), items @ .., Token::Symbol("]")]) if operator == "in" => {
                let texts = split(items, ",").into_iter().map(|item| match item {
                    [Token::Text(text)] => Some(*text),
                    _ => None,
                });
                (path, texts.collect::<Option<Vec<_>>>()?)
            }
            _ => return None,
        };
        let ((old, new), name) = self.parent(path)?;
        let before = property(old, name).filter(|it| it.nullable != Some(true))?;
        let default = property(new, name).and_then(|it| it.default.as_ref());
        let values: Vec<&JSON> = before.enum_.iter().flatten().chain(default).collect();
        let is_present = is_required(old, name) || default.is_some();
        let is_possible = |text: &&str| values.iter().any(|it| it.0.as_str() == Some(text));
        let is_closed = before.enum_.is_some() && is_present;
        (is_closed && !literals.iter().any(is_possible)).then_some(false)
    }

    /// The schemas of the parent of a field, and the name of the field. Every step above is required.
    fn parent<'t>(
        &self,
        path: &[Token<'t>],
    ) -> Option<((&JSONSchemaProps, &JSONSchemaProps), &'t str)> {
        let [Token::Name("self"), rest @ ..] = path else {
            return None;
        };
        let (mut old, mut new) = (self.old, self.new);
        let mut steps = rest.chunks(2).peekable();
        while let Some([Token::Symbol("."), Token::Name(name)]) = steps.next() {
            if steps.peek().is_none() {
                return Some(((old, new), name));
            }
            if !is_required(old, name) {
                return None;
            }
            (old, new) = (property(old, name)?, property(new, name)?);
        }
        None
    }
}

/// `decisive` if one part is that, its opposite if all parts are the opposite.
fn decide(parts: &[Option<bool>], decisive: bool) -> Option<bool> {
    if parts.contains(&Some(decisive)) {
        return Some(decisive);
    }
    let all = parts.iter().all(|it| *it == Some(!decisive));
    all.then_some(!decisive)
}

fn property<'a>(schema: &'a JSONSchemaProps, name: &str) -> Option<&'a JSONSchemaProps> {
    schema.properties.as_ref()?.get(name)
}

fn is_required(schema: &JSONSchemaProps, name: &str) -> bool {
    schema.required.iter().flatten().any(|it| it == name)
}

/// Whether a value of this schema can have the field.
fn accepts(schema: &JSONSchemaProps, name: &str) -> bool {
    property(schema, name).is_some()
        || schema.x_kubernetes_preserve_unknown_fields == Some(true)
        || matches!(
            schema.additional_properties,
            Some(JSONSchemaPropsOrBool::Schema(_) | JSONSchemaPropsOrBool::Bool(true))
        )
}

/// The tokens between parentheses around all of them.
fn parenthesized<'t, 's>(tokens: &'t [Token<'s>]) -> Option<&'t [Token<'s>]> {
    let [Token::Symbol("("), inner @ .., Token::Symbol(")")] = tokens else {
        return None;
    };
    let mut depth = 0_usize;
    for token in inner {
        if token.opens() {
            depth = depth.saturating_add(1);
        } else if token.closes() {
            depth = depth.checked_sub(1)?;
        }
    }
    Some(inner)
}

/// The parts of a conditional outside brackets.
type Conditional<'t, 's> = (&'t [Token<'s>], &'t [Token<'s>], &'t [Token<'s>]);

fn conditional<'t, 's>(tokens: &'t [Token<'s>]) -> Option<Conditional<'t, 's>> {
    let question = position(tokens, "?")?;
    let (condition, rest) = (
        tokens.get(..question)?,
        tokens.get(question.saturating_add(1)..)?,
    );
    // A conditional in the middle has a question mark and a colon of its own.
    let mut open = 0_usize;
    let mut depth = 0_usize;
    for (at, token) in rest.iter().enumerate() {
        if token.opens() {
            depth = depth.saturating_add(1);
        } else if token.closes() {
            depth = depth.checked_sub(1)?;
        } else if depth == 0 && token.is("?") {
            open = open.saturating_add(1);
        } else if depth == 0 && token.is(":") {
            match open.checked_sub(1) {
                Some(left) => open = left,
                None => {
                    return Some((
                        condition,
                        rest.get(..at)?,
                        rest.get(at.saturating_add(1)..)?,
                    ));
                }
            }
        }
    }
    None
}

/// The first position of a symbol outside brackets.
fn position(tokens: &[Token<'_>], symbol: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        if token.opens() {
            depth = depth.saturating_add(1);
        } else if token.closes() {
            depth = depth.checked_sub(1)?;
        } else if depth == 0 && token.is(symbol) {
            return Some(at);
        }
    }
    None
}

/// The parts between an operator outside brackets.
fn split<'t, 's>(tokens: &'t [Token<'s>], operator: &str) -> Vec<&'t [Token<'s>]> {
    let mut parts = Vec::new();
    let mut rest = tokens;
    while let Some(at) = position(rest, operator) {
        let (before, after) = rest.split_at(at);
        parts.push(before);
        rest = after.get(1..).unwrap_or_default();
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::accepts_former_values;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
    use serde_json::{Value, json};

    fn schema(value: Value) -> JSONSchemaProps {
        serde_json::from_value(value).unwrap()
    }

    /// An HTTP route filter gains `cors` and its type, as in Gateway API 1.5.
    fn accepts(rule: &str) -> bool {
        let string = json!({"type": "string"});
        let old = schema(
            json!({"type": "object", "required": ["type"], "properties": {
                "type": {"type": "string", "enum": ["Header", "Redirect"]},
                "mode": {"type": "string", "enum": ["A"]},
                "path": string, "metadata": {"type": "object"},
            }}),
        );
        let new = schema(
            json!({"type": "object", "required": ["type"], "properties": {
                "type": {"type": "string", "enum": ["Header", "Redirect", "CORS"]},
                "mode": {"type": "string", "enum": ["A", "B"]},
                "path": string, "metadata": {"type": "object"},
                "cors": {"type": "object"}, "percent": {"type": "integer"}, "size": {"type": "integer", "default": 1},
            }}),
        );
        accepts_former_values(rule, &old, &new)
    }

    #[test]
    fn rules_on_new_fields_and_values_accept_former_values() {
        for rule in [
            "!(has(self.cors) && self.type != 'CORS')",
            "!(!has(self.cors) && self.type == 'CORS')",
            "!(has(self.percent) && has(self.cors))",
            "has(self.cors) ? self.cors.size() > 0 : true",
            "!has(self.percent) || self.percent <= 100",
            "self.type == \"CORS\" ? has(self.cors) : !has(self.cors)",
            "!(self.type in ['CORS', 'Other'])",
            "(has(self.cors)) == false || !has(self.cors)",
        ] {
            assert!(accepts(rule), "{rule}");
        }
    }

    #[test]
    fn rules_on_former_fields_may_reject_former_values() {
        for rule in [
            "!(has(self.path) && self.type != 'CORS')",
            "has(self.cors)",
            "self.type != 'Redirect'",
            // The field may be absent, and its comparison an error.
            "self.mode != 'B'",
            // The default makes it present.
            "!has(self.size)",
            "!has(self.metadata.labels)",
            "!has(self.cors.origin) || true == self.path",
            "self.all(x, !has(self.cors))",
            "!has(self.cors) == has(self.path)",
            "self.path > 'a' ? true : true",
            "'unclosed",
        ] {
            assert!(!accepts(rule), "{rule}");
        }
    }
}
