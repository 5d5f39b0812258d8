//! A parsed CEL expression.

use super::cel_bytes::with_plain_bytes;
use super::cel_macros::expand;
use super::cel_signs::without_repeated_signs;
use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{EntryExpr, Expr};
use kube_cel::cel::parser::Parser;
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
        check_nesting(text)?;
        let text = &with_plain_bytes(text);
        let text = &without_repeated_signs(text);
        // The generated parser can panic; the text of a definition must not end the process.
        let parsed = catch_unwind(|| Parser::new().enable_optional_syntax(true).parse(text));
        let tree = match parsed {
            Ok(Ok(tree)) => tree,
            Ok(Err(errors)) => return Err(errors.to_string()),
            Err(_) => return Err("the text is not an expression".to_owned()),
        };
        let tree = expand(&tree)?;
        let mut names = BTreeSet::new();
        collect_names(&tree, &mut names);
        Ok(Self { tree, names })
    }

    /// Whether the expression reads a variable.
    pub(super) fn uses(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The tree of the expression.
    pub(super) fn tree(&self) -> &IdedExpr {
        &self.tree
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
}
