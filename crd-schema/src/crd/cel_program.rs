//! A parsed CEL expression.

use super::cel_literals::PlainText;
use super::cel_macros::expand;
use super::cel_signs::without_repeated_signs;
use super::cel_sums;
use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue};
use kube_cel::cel::parser::{ParseError, ParseErrors, Parser};
use std::collections::BTreeSet;
use std::panic::catch_unwind;

/// The longest expression, in bytes.
const TEXT_MAX_BYTES: usize = 64 * 1024;

/// The deepest nesting of brackets.
const NESTING_MAX: usize = 48;

/// The most operators that are open at one place.
const OPERATORS_MAX: usize = 128;

/// A parsed expression.
#[derive(Debug)]
pub(super) struct Program {
    tree: IdedExpr,
    names: BTreeSet<String>,
}

impl Program {
    /// Parses an expression, and expands its macros.
    ///
    /// # Errors
    ///
    /// The reason if the text is not an expression or is nested too deep.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        if text.len() > TEXT_MAX_BYTES {
            return Err("the expression is too long".to_owned());
        }
        let plain = PlainText::new(text);
        check_nesting(&plain.text)?;
        let parsed_text = &without_repeated_signs(&plain.text);
        // The generated parser can panic; the text of a definition must not end the process.
        let parsed = catch_unwind(|| {
            Parser::new()
                .enable_optional_syntax(true)
                .parse(parsed_text)
        });
        let tree = match parsed {
            Ok(Ok(tree)) => tree,
            Ok(Err(errors)) => return Err(messages(&errors, &plain, text)),
            Err(_) => return Err("the text is not an expression".to_owned()),
        };
        let tree = expand(&tree)?;
        let mut names = BTreeSet::new();
        collect_names(&tree, &mut names);
        Ok(Self { tree, names })
    }

    /// Reads fields of variables as variables of their own, with the name `variable.field`: all fields of a variable, or
    /// one. So the value of each is found only when it is read.
    pub(super) fn split_variables(&mut self, variables: &[(&str, Option<&str>)]) {
        split(&mut self.tree, variables);
        self.names.clear();
        collect_names(&self.tree, &mut self.names);
    }

    /// The variables that the expression reads.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Whether the expression reads a variable.
    pub(super) fn uses(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The lists that the expression adds.
    pub(super) fn summed(&self) -> Vec<&IdedExpr> {
        cel_sums::summed(&self.tree)
    }

    /// Gives the sums of the expression their names, in the order of [`Self::summed`].
    pub(super) fn name_sums(&mut self, names: &[&'static str]) {
        cel_sums::rename(&mut self.tree, &mut names.iter().copied());
    }

    /// The tree of the expression.
    pub(super) fn tree(&self) -> &IdedExpr {
        &self.tree
    }
}

/// The errors with the places in the original text.
fn messages(errors: &ParseErrors, plain: &PlainText, text: &str) -> String {
    let message = |error: &ParseError| {
        let (Ok(line), Ok(column)) = (usize::try_from(error.pos.0), usize::try_from(error.pos.1))
        else {
            return error.to_string();
        };
        let lines = plain
            .text
            .split_inclusive('\n')
            .take(line.saturating_sub(1));
        let start = lines.map(str::len).fold(0, usize::saturating_add);
        let rest = plain.text.get(start..).unwrap_or_default();
        let before = rest.chars().take(column.saturating_sub(1));
        let length = before.map(char::len_utf8).fold(0, usize::saturating_add);
        let offset = plain.original_offset(start.saturating_add(length));
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count();
        let last = before.rsplit('\n').next().unwrap_or_default();
        let column = last.chars().count().saturating_add(1);
        let number = line.saturating_add(1);
        let snippet = text.lines().nth(line).unwrap_or_default();
        format!(
            "ERROR: <input>:{number}:{column}: {}\n| {snippet}\n| {:.>column$}",
            error.msg, "^"
        )
    };
    let messages: Vec<String> = errors.errors.iter().map(message).collect();
    messages.join("\n")
}

/// See [`Program::split_variables`].
fn split(tree: &mut IdedExpr, variables: &[(&str, Option<&str>)]) {
    if let Some(replaced) = split_field(tree, variables) {
        tree.expr = replaced;
        return;
    }
    match &mut tree.expr {
        Expr::Call(call) => {
            let target = call.target.as_deref_mut();
            let parts = target.into_iter().chain(&mut call.args);
            parts.for_each(|it| split(it, variables));
        }
        Expr::Select(select) => split(&mut select.operand, variables),
        Expr::List(list) => list.elements.iter_mut().for_each(|it| split(it, variables)),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    split(&mut entry.key, variables);
                    split(&mut entry.value, variables);
                }
            }
        }
        Expr::Struct(message) => {
            for entry in &mut message.entries {
                if let EntryExpr::StructField(field) = &mut entry.expr {
                    split(&mut field.value, variables);
                }
            }
        }
        Expr::Comprehension(all) => {
            let parts = [
                &mut all.iter_range,
                &mut all.accu_init,
                &mut all.loop_cond,
                &mut all.loop_step,
                &mut all.result,
            ];
            for part in parts {
                split(part, variables);
            }
        }
        _ => {}
    }
}

/// The expression that reads a field of a variable as a variable; `None` if the expression reads no such field.
fn split_field(tree: &IdedExpr, variables: &[(&str, Option<&str>)]) -> Option<Expr> {
    let variable = |operand: &IdedExpr, field: &str| {
        let Expr::Ident(name) = &operand.expr else {
            return None;
        };
        let is_split =
            |it: &&(&str, Option<&str>)| it.0 == name && it.1.is_none_or(|it| it == field);
        variables.iter().find(is_split)?;
        Some(Expr::Ident(format!("{name}.{field}")))
    };
    match &tree.expr {
        Expr::Select(select) => {
            let name = variable(&select.operand, &select.field)?;
            // The fields of these variables are always set.
            Some(if select.test {
                Expr::Literal(LiteralValue::Boolean(true.into()))
            } else {
                name
            })
        }
        Expr::Call(call) if call.func_name == op::OPT_SELECT => {
            let [operand, key] = call.args.as_slice() else {
                return None;
            };
            let Expr::Literal(LiteralValue::String(field)) = &key.expr else {
                return None;
            };
            let name = variable(operand, field.inner())?;
            let ident = |expr| IdedExpr { id: 0, expr };
            Some(Expr::Call(CallExpr {
                func_name: "of".to_owned(),
                target: Some(Box::new(ident(Expr::Ident("optional".to_owned())))),
                args: vec![ident(name)],
            }))
        }
        _ => None,
    }
}

fn collect_names(tree: &IdedExpr, names: &mut BTreeSet<String>) {
    match &tree.expr {
        Expr::Ident(name) => {
            names.insert(name.clone());
        }
        Expr::Call(call) => {
            for part in call.target.iter().map(AsRef::as_ref).chain(&call.args) {
                collect_names(part, names);
            }
        }
        Expr::Select(select) => collect_names(&select.operand, names),
        Expr::List(list) => list.elements.iter().for_each(|it| collect_names(it, names)),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    collect_names(&entry.key, names);
                    collect_names(&entry.value, names);
                }
            }
        }
        Expr::Struct(message) => {
            for entry in &message.entries {
                if let EntryExpr::StructField(field) = &entry.expr {
                    collect_names(&field.value, names);
                }
            }
        }
        Expr::Comprehension(all) => {
            let parts = [
                &all.iter_range,
                &all.accu_init,
                &all.loop_cond,
                &all.loop_step,
                &all.result,
            ];
            for part in parts {
                collect_names(part, names);
            }
        }
        _ => {}
    }
}

/// Errors if a text is nested too deep for the parser, which is recursive.
fn check_nesting(text: &str) -> Result<(), String> {
    // The operators at each level of brackets; each can be a level of the tree.
    let mut levels: Vec<usize> = vec![0];
    let mut total: usize = 0;
    let mut quote: Option<char> = None;
    let mut rest = text.chars().peekable();
    while let Some(sign) = rest.next() {
        if let Some(end) = quote {
            match sign {
                '\\' => drop(rest.next()),
                _ if sign == end => quote = None,
                _ => {}
            }
            continue;
        }
        match sign {
            '"' | '\'' => quote = Some(sign),
            '(' | '[' | '{' => levels.push(0),
            ')' | ']' | '}' => {
                total = total.saturating_sub(levels.pop().unwrap_or_default());
            }
            // The parser balances chains of these, and begins a new tree after a comma.
            '&' | '|' | ',' => {
                if let Some(level) = levels.last_mut() {
                    total = total.saturating_sub(*level);
                    *level = 0;
                }
            }
            '.' | '+' | '-' | '*' | '/' | '%' | '!' | '<' | '>' | '=' | ':' | '?' => {
                total = total.saturating_add(1);
                if let Some(level) = levels.last_mut() {
                    *level = level.saturating_add(1);
                }
            }
            _ => {}
        }
        if levels.len() > NESTING_MAX || total > OPERATORS_MAX {
            return Err("the expression is nested too deep".to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Program;

    #[test]
    fn macros_that_copy_their_target_are_bounded() {
        let chain = ".optMap(v, v)".repeat(30);
        let error = Program::new(&format!("self.?a{chain}.hasValue()")).unwrap_err();
        assert_eq!(error, "the expression is too large");
    }

    #[test]
    fn error_after_rewritten_literal_has_place_of_original() {
        let error = Program::new("'it\\'s' ==\n\"\\'\" + @").unwrap_err();
        assert!(error.starts_with("ERROR: <input>:2:8: "), "{error}");
        assert!(error.contains("\n| \"\\'\" + @\n| .......^"), "{error}");
    }

    #[test]
    fn brackets_inside_text_do_not_nest() {
        let brackets = "(".repeat(60);
        Program::new(&format!("self == '''a'{brackets}'''")).unwrap();
    }
}
