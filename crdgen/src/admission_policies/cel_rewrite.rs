//! Rewrites the CEL expression of a node for the whole object: an admission policy has only `object`
//! and `oldObject`.
//!
//! `spec.groups[]` with `self.size > 0` becomes
//! `!has(object.spec) || !has(object.spec.groups) || object.spec.groups.all(i1, i1.size > 0)`. With
//! ratcheting, as in the engine, each node is looked up in `oldObject` by the keys that the engine uses.

use lockkeeper_policies::cel::CelRule;

/// The object of the request, and the stored object.
const NEW: &str = "object";
const OLD: &str = "oldObject";

/// The CEL expression for the object of a request. With `ratchets`, an update may keep a pre-existing
/// finding.
#[must_use]
pub fn rewrite_for_object(expression: &CelRule, ratchets: bool) -> String {
    let steps = steps(expression.path);
    if expression.is_transition_rule() {
        let condition = walk_without_index(&steps, &|at| {
            // Transition rules are in no list, so only the root of the path differs.
            let before = at.replacen(NEW, OLD, 1);
            let condition = substitute_self(&expression.expression, at, &before);
            // The root has no parent that may be missing.
            if steps.is_empty() {
                return condition;
            }
            // A node that is new has no `oldSelf`, so its transition rule does not apply.
            let has_old = has_path(&steps, OLD);
            format!("!({has_old}) || ({condition})")
        });
        return format!("{OLD} == null || ({condition})");
    }
    let is_kept = |at: &str, loops: usize| {
        let exists = exists_in_old(&steps, OLD, loops, &|old| {
            format!("({})", substitute_self(&expression.unchanged, at, old))
        });
        format!("({OLD} != null && {exists})")
    };
    let condition = |at: &str, loops: usize| {
        let holds = substitute_self(&expression.expression, at, OLD);
        if ratchets {
            format!("({holds}) || {}", is_kept(at, loops))
        } else {
            format!("({holds})")
        }
    };
    walk(&steps, NEW, 0, &condition)
}

/// The message expression for the whole object; `None` for a node in a list.
#[must_use]
pub fn message_expression(expression: &CelRule) -> Option<String> {
    // The path of a list item starts with a variable of `all`, which is not visible in the message.
    let is_one = !expression.path.contains("[]");
    let place = |root: &str| match expression.path {
        "" => root.to_owned(),
        at => format!("{root}.{at}"),
    };
    let (at, before) = (place(NEW), place(OLD));
    let detail = expression
        .message_expression
        .as_deref()
        .filter(|_| is_one)?;
    Some(substitute_self(detail, &at, &before))
}

/// The steps from an object to a place in it; none if it is the object itself.
fn steps(at: &str) -> Vec<Step<'_>> {
    let named = at.split('.').filter(|it| !it.is_empty());
    named.map(Step::parse).collect()
}

/// A field, or the items of the list in it.
struct Step<'a> {
    name: &'a str,
    is_list: bool,
}

impl<'a> Step<'a> {
    fn parse(text: &'a str) -> Self {
        let (name, is_list) = match text.strip_suffix("[]") {
            Some(name) => (name, true),
            None => (text, false),
        };
        Self { name, is_list }
    }

    /// The key by which the engine finds an item of the list in the stored object.
    fn key(&self) -> Option<&'static str> {
        match self.name {
            "resourceGroups" => Some("coveredResources[0]"),
            "flavors" | "resources" | "podSets" | "podGroups" => Some("name"),
            _ => None,
        }
    }
}

/// The expression for a node in no list.
fn walk_without_index(steps: &[Step<'_>], condition: &dyn Fn(&str) -> String) -> String {
    walk(steps, NEW, 0, &|at, _| condition(at))
}

/// The expression for all nodes at the path below `at`.
fn walk(
    steps: &[Step<'_>],
    at: &str,
    loops: usize,
    condition: &dyn Fn(&str, usize) -> String,
) -> String {
    let Some((step, rest)) = steps.split_first() else {
        return condition(at, loops);
    };
    let field = format!("{at}.{}", step.name);
    if step.is_list {
        let item = format!("i{}", loops.saturating_add(1));
        let inner = walk(rest, &item, loops.saturating_add(1), condition);
        format!("!has({field}) || {field}.all({item}, {inner})")
    } else {
        let inner = walk(rest, &field, loops, condition);
        format!("!has({field}) || {inner}")
    }
}

/// The expression that the stored object has a node with the same keys for which `condition` holds. The
/// items of the new object, which have the keys, are called `i1` and so on.
fn exists_in_old(
    steps: &[Step<'_>],
    at: &str,
    loops: usize,
    condition: &dyn Fn(&str) -> String,
) -> String {
    let lists = steps.iter().filter(|it| it.is_list).count();
    // The lists that are entered already: `loops` counts those of the whole path.
    let outer = loops.saturating_sub(lists);
    let Some((step, rest)) = steps.split_first() else {
        return condition(at);
    };
    let field = format!("{at}.{}", step.name);
    if !step.is_list {
        return format!(
            "has({field}) && {}",
            exists_in_old(rest, &field, loops, condition)
        );
    }
    let number = outer.saturating_add(1);
    let item = format!("o{number}");
    let inner = exists_in_old(rest, &item, loops, condition);
    // Without a key, any stored item may match.
    let same = step
        .key()
        .map(|key| format!("{item}.{key} == i{number}.{key} && "))
        .unwrap_or_default();
    format!("has({field}) && {field}.exists({item}, {same}{inner})")
}

/// A CEL test that all fields of a path without lists are present.
fn has_path(steps: &[Step<'_>], root: &str) -> String {
    let mut at = root.to_owned();
    let mut all = Vec::new();
    for step in steps {
        at = format!("{at}.{}", step.name);
        all.push(format!("has({at})"));
    }
    all.join(" && ")
}

/// An expression with other names for `self` and `oldSelf`. String literals are unchanged.
fn substitute_self(expression: &str, new: &str, old: &str) -> String {
    let mut out = String::new();
    let mut rest = expression;
    while let Some(at) = rest.find(|c: char| c == '\'' || c == '"' || is_identifier_char(c)) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let first = from.chars().next().unwrap_or_default();
        let length = if is_identifier_char(first) {
            from.find(|c: char| !is_identifier_char(c))
        } else {
            let inside = from.get(1..).unwrap_or_default();
            inside.find(first).map(|it| it.saturating_add(2))
        };
        // A string literal without an end extends to the end of the expression.
        let (word, after) = from.split_at(length.unwrap_or(from.len()));
        // `x.self` is a field of `x`.
        let is_field = out.ends_with('.');
        out.push_str(match word {
            "self" if !is_field => new,
            "oldSelf" if !is_field => old,
            other => other,
        });
        rest = after;
    }
    out.push_str(rest);
    out
}

fn is_identifier_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use lockkeeper_policies::finding::ErrorKind;

    #[test]
    fn empty_path_means_object() {
        let change = expression("", "self.a == oldSelf.a", "");
        assert_eq!(
            rewrite_for_object(&change, true),
            "oldObject == null || (object.a == oldObject.a)"
        );
        assert_eq!(
            message_expression(&change).unwrap(),
            "'self is ' + object.a"
        );
        let plain = expression("", "self.a > 1", "self.a == oldSelf.a");
        assert_eq!(
            rewrite_for_object(&plain, true),
            "(object.a > 1) || (oldObject != null && (object.a == oldObject.a))"
        );
    }

    fn expression(at: &'static str, holds: &'static str, unchanged: &'static str) -> CelRule {
        CelRule {
            path: at,
            expression: holds.into(),
            message: "",
            message_expression: Some("'self is ' + self.a".into()),
            field_path: "".into(),
            unchanged: unchanged.into(),
            kind: ErrorKind::Invalid,
        }
    }

    #[test]
    fn self_is_replaced_outside_string_literals() {
        assert_eq!(
            substitute_self(
                "self.a == 'self' && x.self != oldSelf.b && myself",
                "n",
                "o"
            ),
            "n.a == 'self' && x.self != o.b && myself"
        );
        assert_eq!(
            substitute_self("self == \"it's self\" + self", "n", "o"),
            "n == \"it's self\" + n"
        );
        assert_eq!(
            substitute_self("'never closed self", "n", "o"),
            "'never closed self"
        );
    }

    #[test]
    fn path_is_checked_from_object_root() {
        let plain = expression("spec", "self.a > 1", "self.a == oldSelf.a");
        assert_eq!(
            rewrite_for_object(&plain, false),
            "!has(object.spec) || (object.spec.a > 1)"
        );
        assert_eq!(
            rewrite_for_object(&plain, true),
            "!has(object.spec) || (object.spec.a > 1) || (oldObject != null && has(oldObject.spec) && \
             (object.spec.a == oldObject.spec.a))"
        );
        assert_eq!(
            message_expression(&plain).unwrap(),
            "'self is ' + object.spec.a"
        );
    }

    #[test]
    fn list_items_are_matched_by_key() {
        let listed = expression("spec.podSets[].ports[]", "self > 1", "self == oldSelf");
        assert_eq!(
            rewrite_for_object(&listed, true),
            "!has(object.spec) || !has(object.spec.podSets) || object.spec.podSets.all(i1, !has(i1.ports) || \
             i1.ports.all(i2, (i2 > 1) || (oldObject != null && has(oldObject.spec) && has(oldObject.spec.podSets) && \
             oldObject.spec.podSets.exists(o1, o1.name == i1.name && has(o1.ports) && \
             o1.ports.exists(o2, (i2 == o2))))))"
        );
        assert_eq!(message_expression(&listed), None);
    }

    #[test]
    fn transition_rules_skip_creates() {
        let change = expression("spec", "self.a == oldSelf.a", "");
        assert_eq!(
            rewrite_for_object(&change, true),
            "oldObject == null || (!has(object.spec) || !(has(oldObject.spec)) || \
             (object.spec.a == oldObject.spec.a))"
        );
    }
}
