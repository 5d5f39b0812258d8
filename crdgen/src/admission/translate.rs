//! Expressions about a place as expressions about the object that holds it, which is all that an admission policy sees.
//!
//! `spec.groups[]` with `self.size > 0` becomes
//! `!has(object.spec) || !has(object.spec.groups) || object.spec.groups.all(i1, i1.size > 0)`. Where a policy is to let
//! pass what the stored object has already, as the engine does, each place is looked for in `oldObject` by the keys
//! that the engine goes by.

use lockkeeper_policies::expression::Expression;

/// The object of a request, and what is stored.
const NEW: &str = "object";
const OLD: &str = "oldObject";

/// What an expression says of the object of a request. With `ratchets`, an update may leave as it was what is wrong.
#[must_use]
pub fn of_object(expression: &Expression, ratchets: bool) -> String {
    let steps = steps(expression.at);
    if expression.is_about_updates() {
        let said = inside(&steps, &|at| {
            let before = at.replacen(NEW, OLD, 1);
            let said = said_of(expression.holds, at, &before);
            // The object itself is always there.
            if steps.is_empty() {
                return said;
            }
            let there = present(&steps, OLD);
            format!("!({there}) || ({said})")
        });
        return format!("{OLD} == null || ({said})");
    }
    let is_kept = |at: &str, loops: usize| {
        let kept = before(&steps, OLD, loops, &|old| {
            format!("({})", said_of(expression.kept, at, old))
        });
        format!("({OLD} != null && {kept})")
    };
    let said = |at: &str, loops: usize| {
        let holds = said_of(expression.holds, at, OLD);
        if ratchets {
            format!("({holds}) || {}", is_kept(at, loops))
        } else {
            format!("({holds})")
        }
    };
    walk(&steps, NEW, 0, &said)
}

/// What is said if an expression does not hold, with what is seen: only where the place is in no list.
#[must_use]
pub fn detail(expression: &Expression) -> Option<String> {
    let is_one = !expression.at.contains("[]");
    let place = |root: &str| match expression.at {
        "" => root.to_owned(),
        at => format!("{root}.{at}"),
    };
    let (at, before) = (place(NEW), place(OLD));
    let detail = expression.detail.filter(|_| is_one)?;
    Some(said_of(detail, &at, &before))
}

/// The steps from an object to a place in it; none if it is the object itself.
fn steps(at: &str) -> Vec<Step<'_>> {
    let named = at.split('.').filter(|it| !it.is_empty());
    named.map(Step::of).collect()
}

/// A field, or the items of the list in it.
struct Step<'a> {
    name: &'a str,
    is_list: bool,
}

impl<'a> Step<'a> {
    fn of(text: &'a str) -> Self {
        let (name, is_list) = match text.strip_suffix("[]") {
            Some(name) => (name, true),
            None => (text, false),
        };
        Self { name, is_list }
    }

    /// By what the engine knows an item of the list in an older version of it.
    fn key(&self) -> Option<&'static str> {
        match self.name {
            "resourceGroups" => Some("coveredResources[0]"),
            "flavors" | "resources" | "podSets" | "podGroups" => Some("name"),
            _ => None,
        }
    }
}

/// What is said of a place that is in no list.
fn inside(steps: &[Step<'_>], said: &dyn Fn(&str) -> String) -> String {
    walk(steps, NEW, 0, &|at, _| said(at))
}

/// What is said of all places that there are below `at`.
fn walk(
    steps: &[Step<'_>],
    at: &str,
    loops: usize,
    said: &dyn Fn(&str, usize) -> String,
) -> String {
    let Some((step, rest)) = steps.split_first() else {
        return said(at, loops);
    };
    let field = format!("{at}.{}", step.name);
    if step.is_list {
        let item = format!("i{}", loops.saturating_add(1));
        let inner = walk(rest, &item, loops.saturating_add(1), said);
        format!("!has({field}) || {field}.all({item}, {inner})")
    } else {
        let inner = walk(rest, &field, loops, said);
        format!("!has({field}) || {inner}")
    }
}

/// Whether something is said of the place below `at` which the stored object has by the same keys. The items that the
/// keys are taken from are called `i1` and so on.
fn before(steps: &[Step<'_>], at: &str, loops: usize, said: &dyn Fn(&str) -> String) -> String {
    let lists = steps.iter().filter(|it| it.is_list).count();
    let outer = loops.saturating_sub(lists);
    let Some((step, rest)) = steps.split_first() else {
        return said(at);
    };
    let field = format!("{at}.{}", step.name);
    if !step.is_list {
        return format!("has({field}) && {}", before(rest, &field, loops, said));
    }
    let number = outer.saturating_add(1);
    let item = format!("o{number}");
    let inner = before(rest, &item, loops, said);
    let same = step
        .key()
        .map(|key| format!("{item}.{key} == i{number}.{key} && "))
        .unwrap_or_default();
    format!("has({field}) && {field}.exists({item}, {same}{inner})")
}

/// Whether all fields of a path without lists are there.
fn present(steps: &[Step<'_>], root: &str) -> String {
    let mut at = root.to_owned();
    let mut all = Vec::new();
    for step in steps {
        at = format!("{at}.{}", step.name);
        all.push(format!("has({at})"));
    }
    all.join(" && ")
}

/// An expression with other names for `self` and `oldSelf`. Texts in quotes are left as they are.
fn said_of(expression: &str, new: &str, old: &str) -> String {
    let mut out = String::new();
    let mut rest = expression;
    while let Some(at) = rest.find(|c: char| c == '\'' || c == '"' || is_of_name(c)) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let first = from.chars().next().unwrap_or_default();
        let length = if is_of_name(first) {
            from.find(|c: char| !is_of_name(c))
        } else {
            let inside = from.get(1..).unwrap_or_default();
            inside.find(first).map(|it| it.saturating_add(2))
        };
        let (word, after) = from.split_at(length.unwrap_or(from.len()));
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

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use lockkeeper_policies::finding::ErrorKind;

    #[test]
    fn an_object_is_a_place_too() {
        let change = expression("", "self.a == oldSelf.a", "");
        assert_eq!(
            of_object(&change, true),
            "oldObject == null || (object.a == oldObject.a)"
        );
        assert_eq!(detail(&change).unwrap(), "'self is ' + object.a");
        let plain = expression("", "self.a > 1", "self.a == oldSelf.a");
        assert_eq!(
            of_object(&plain, true),
            "(object.a > 1) || (oldObject != null && (object.a == oldObject.a))"
        );
    }

    fn expression(at: &'static str, holds: &'static str, kept: &'static str) -> Expression {
        Expression {
            at,
            holds,
            message: "",
            detail: Some("'self is ' + self.a"),
            field: "",
            kept,
            kind: ErrorKind::Invalid,
        }
    }

    #[test]
    fn names_are_replaced_but_not_in_texts() {
        assert_eq!(
            said_of(
                "self.a == 'self' && x.self != oldSelf.b && myself",
                "n",
                "o"
            ),
            "n.a == 'self' && x.self != o.b && myself"
        );
        assert_eq!(
            said_of("self == \"it's self\" + self", "n", "o"),
            "n == \"it's self\" + n"
        );
        assert_eq!(
            said_of("'never closed self", "n", "o"),
            "'never closed self"
        );
    }

    #[test]
    fn a_place_is_looked_for_from_the_object_on() {
        let plain = expression("spec", "self.a > 1", "self.a == oldSelf.a");
        assert_eq!(
            of_object(&plain, false),
            "!has(object.spec) || (object.spec.a > 1)"
        );
        assert_eq!(
            of_object(&plain, true),
            "!has(object.spec) || (object.spec.a > 1) || (oldObject != null && has(oldObject.spec) && \
             (object.spec.a == oldObject.spec.a))"
        );
        assert_eq!(detail(&plain).unwrap(), "'self is ' + object.spec.a");
    }

    #[test]
    fn items_are_found_again_by_their_keys() {
        let listed = expression("spec.podSets[].ports[]", "self > 1", "self == oldSelf");
        assert_eq!(
            of_object(&listed, true),
            "!has(object.spec) || !has(object.spec.podSets) || object.spec.podSets.all(i1, !has(i1.ports) || \
             i1.ports.all(i2, (i2 > 1) || (oldObject != null && has(oldObject.spec) && has(oldObject.spec.podSets) && \
             oldObject.spec.podSets.exists(o1, o1.name == i1.name && has(o1.ports) && \
             o1.ports.exists(o2, (i2 == o2))))))"
        );
        assert_eq!(detail(&listed), None);
    }

    #[test]
    fn what_is_about_updates_says_nothing_of_others() {
        let change = expression("spec", "self.a == oldSelf.a", "");
        assert_eq!(
            of_object(&change, true),
            "oldObject == null || (!has(object.spec) || !(has(oldObject.spec)) || \
             (object.spec.a == oldObject.spec.a))"
        );
    }
}
