//! Limits the nesting of an expression before it is parsed: the parser is recursive, and deep nesting would overflow
//! the stack.

use super::cost::DEPTH_MAX;

/// The most operators between two commas, `&&` or `||`: each can be a level.
const OPERATORS_MAX: usize = 64;

/// The most conditionals: each is nested in the one before.
const CONDITIONALS_MAX: usize = DEPTH_MAX;

/// Errors if a text is nested too deep to be parsed.
pub(super) fn check(text: &str) -> Result<(), String> {
    let (mut depth, mut signs, mut questions) = (0_usize, 0_usize, 0_usize);
    let mut quote: Option<char> = None;
    let mut rest = text.chars().peekable();
    while let Some(sign) = rest.next() {
        if let Some(end) = quote {
            match sign {
                // An escaped quote does not end the string.
                '\\' => drop(rest.next()),
                _ if sign == end => quote = None,
                _ => {}
            }
            continue;
        }
        match sign {
            '"' | '\'' => quote = Some(sign),
            // A bracket is also a sign: in `a[b][c]` each subscript is one more level of the tree.
            '(' | '[' | '{' => {
                depth = depth.saturating_add(1);
                signs = signs.saturating_add(1);
            }
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '&' | '|' if rest.peek() == Some(&sign) => {
                rest.next();
                signs = 0;
            }
            ',' => signs = 0,
            '?' => questions = questions.saturating_add(1),
            '.' | '+' | '-' | '*' | '/' | '%' | '!' | '<' | '>' | '=' | ':' => {
                signs = signs.saturating_add(1);
            }
            _ => {}
        }
        if depth > DEPTH_MAX || questions > CONDITIONALS_MAX {
            return Err(format!("it is nested more than {DEPTH_MAX} deep"));
        }
        if signs > OPERATORS_MAX {
            return Err(format!(
                "one part of it has more than {OPERATORS_MAX} signs"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_quoted_text_does_not_count_as_nesting() {
        let quoted = format!("'{0}\\'{0}' == \"{0}'\"", "([".repeat(40));
        assert_eq!(check(&quoted), Ok(()));
        assert!(check(&"(".repeat(DEPTH_MAX + 1)).is_err());
        assert_eq!(check(&"()".repeat(OPERATORS_MAX)), Ok(()));
        assert!(check(&"!".repeat(OPERATORS_MAX + 1)).is_err());
        assert!(check(&"a && b ? c : ".repeat(CONDITIONALS_MAX + 1)).is_err());
        assert_eq!(check(&"a.b == c.d && ".repeat(100)), Ok(()));
    }
}
