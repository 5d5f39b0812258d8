//! Compares the CEL rules of a schema node.

use super::ChangeCode;
use crate::structural::uses_old_self;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;

/// A changed CEL rule.
pub(super) struct RuleChange {
    pub(super) code: ChangeCode,
    /// The expression.
    pub(super) rule: String,
    /// The description.
    pub(super) what: String,
}

/// The changes of the CEL rules of a node.
pub(super) fn rule_changes(old: &[ValidationRule], new: &[ValidationRule]) -> Vec<RuleChange> {
    // `optionalOldSelf` changes when the rule runs; the message does not.
    let key = |it: &ValidationRule| (it.rule.clone(), it.optional_old_self);
    let gone = old
        .iter()
        .filter(|it| !new.iter().any(|new| key(new) == key(it)));
    let come = new
        .iter()
        .filter(|it| !old.iter().any(|old| key(old) == key(it)));
    let mut changes = Vec::new();
    let mut add = |code: ChangeCode, rule: &ValidationRule, what: String| {
        changes.push(RuleChange {
            code,
            rule: rule.rule.clone(),
            what,
        });
    };
    for rule in gone {
        let what = format!("the rule {:?} is removed", rule.rule);
        add(ChangeCode::RuleRemoved, rule, what);
    }
    for rule in come {
        let what = format!("the rule {:?} is added", rule.rule);
        add(code_of(rule), rule, what);
    }
    for rule in new {
        let before = old.iter().find(|it| key(it) == key(rule));
        if before.is_some_and(|before| before != rule) {
            let what = format!("the message of the rule {:?} changes", rule.rule);
            add(ChangeCode::RuleMessageChanged, rule, what);
        }
    }
    changes
}

fn code_of(rule: &ValidationRule) -> ChangeCode {
    let is_optional = rule.optional_old_self == Some(true);
    if !uses_old_self(&rule.rule) {
        ChangeCode::RuleAdded
    } else if accepts_unchanged(&rule.rule, is_optional) {
        ChangeCode::RatchetingRuleAdded
    } else {
        ChangeCode::TransitionRuleAdded
    }
}

/// Whether one alternative of the expression is that the value is unchanged. Only the usual forms are recognized;
/// equivalent expressions are not.
fn accepts_unchanged(rule: &str, is_optional: bool) -> bool {
    let text: String = rule.chars().filter(|it| !it.is_whitespace()).collect();
    let forms: &[&str] = if is_optional {
        &[
            "oldSelf.hasValue()",
            "oldSelf.hasValue()&&oldSelf.value()==self",
            "oldSelf.hasValue()&&self==oldSelf.value()",
            "oldSelf.optMap(o,o==self).orValue(false)",
            "oldSelf.optMap(o,self==o).orValue(false)",
        ]
    } else {
        &["oldSelf==self", "self==oldSelf"]
    };
    let alternatives = alternatives(&text);
    // Without another alternative the rule rejects every change.
    alternatives.len() > 1
        && alternatives
            .iter()
            .any(|it| forms.contains(&strip_parentheses(it)))
}

/// The parts between `||` that are not in brackets or quotes.
/// A conditional has none: `a || b ? c : d` parses differently.
fn alternatives(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut start) = (0_usize, None, 0_usize);
    let mut parts = Vec::new();
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open && before != '\\' => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth = depth.saturating_add(1),
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, '?') if depth == 0 => return vec![text],
            (None, '|') if depth == 0 && before == '|' => {
                parts.push(text.get(start..at.saturating_sub(1)).unwrap_or_default());
                start = at.saturating_add(1);
            }
            _ => {}
        }
        before = c;
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

/// Without brackets around all of it.
fn strip_parentheses(text: &str) -> &str {
    let inner = text.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
    match inner {
        Some(inner) if !inner.contains(")||(") && !inner.contains(")&&(") => {
            strip_parentheses(inner)
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::accepts_unchanged;

    #[test]
    fn accepts_unchanged_needs_equality_alternative() {
        let cases = [
            ("self == oldSelf || self.matches('^a')", false, true),
            ("self.matches('^a') || (oldSelf == self)", false, true),
            ("oldSelf.hasValue() || self > 1", true, true),
            (
                "self > 1 || oldSelf.optMap(o, o == self).orValue(false)",
                true,
                true,
            ),
            (
                "(oldSelf.hasValue() && self == oldSelf.value()) || self > 1",
                true,
                true,
            ),
            ("self == oldSelf", false, false),
            (
                "self == oldSelf && (self > 1 || self == oldSelf)",
                false,
                false,
            ),
            ("self == '|| self == oldSelf ||'", false, false),
            ("self == oldSelf || self > 1 ? false : true", false, false),
            ("self > 1 || self >= oldSelf", false, false),
            ("self == oldSelf || self > 1", true, false),
            (
                "oldSelf.hasValue() ? self == oldSelf.value() : true",
                true,
                false,
            ),
        ];
        for (rule, is_optional, expected) in cases {
            assert_eq!(accepts_unchanged(rule, is_optional), expected, "{rule}");
        }
    }
}
