//! Regular expressions with the semantics of Go's `regexp`, which `pattern` and the CEL function `matches` use.

use regex::{Regex, RegexBuilder};
use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

/// The size limit of a compiled pattern, in bytes.
const COMPILED_MAX_BYTES: usize = 32 * 1024 * 1024;

/// The length limit of a pattern, in bytes.
const PATTERN_MAX_BYTES: usize = 64 * 1024;

/// Compiles a pattern of Go. `None` if Go rejects it, or it exceeds the limits.
pub(crate) fn compile(pattern: &str) -> Option<Regex> {
    if pattern.len() > PATTERN_MAX_BYTES {
        return None;
    }
    let translated = translate(pattern)?;
    let mut builder = RegexBuilder::new(&translated);
    builder.size_limit(COMPILED_MAX_BYTES).build().ok()
}

/// Whether Go accepts a pattern. Patterns beyond the limits count as valid.
pub(crate) fn is_valid(pattern: &str) -> bool {
    /// The largest count of a repetition.
    const REPETITION_MAX: u32 = 1000;
    let Some(translated) = translate(pattern) else {
        return false;
    };
    let counts = pattern.split('{').skip(1).filter_map(|it| {
        let (counts, _) = it.split_once('}')?;
        counts
            .split(',')
            .filter_map(|it| it.parse::<u32>().ok())
            .max()
    });
    if counts.max().is_some_and(|it| it > REPETITION_MAX) {
        return false;
    }
    !matches!(Regex::new(&translated), Err(regex::Error::Syntax(_)))
}

/// Rewrites the syntax that Go and the crate `regex` interpret differently.
fn translate(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    let mut class_start = false;
    while let Some(sign) = rest.next() {
        let at_start = class_start;
        class_start = false;
        match sign {
            '\\' => escape(&mut rest, in_class, &mut out)?,
            '[' if !in_class => {
                in_class = true;
                class_start = true;
                out.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            '[' if rest.peek() == Some(&':') => {
                // A class such as `[:alpha:]`.
                out.push('[');
                while let Some(sign) = rest.next() {
                    out.push(sign);
                    if sign == ':' && rest.peek() == Some(&']') && !out.ends_with("[:") {
                        break;
                    }
                }
                out.extend(rest.next());
            }
            // Go has neither nested classes nor operators between classes.
            '[' => out.push_str("\\["),
            ']' if in_class && at_start => out.push_str("\\]"),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(sign);
            }
            '-' if in_class && rest.peek() == Some(&'-') => out.push_str("\\-"),
            other => out.push(other),
        }
    }
    Some(out)
}

/// Translates the rest of an escape sequence.
fn escape(rest: &mut Peekable<Chars<'_>>, in_class: bool, out: &mut String) -> Option<()> {
    let sign = rest.next()?;
    let class = match sign {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => r"\t\n\x0c\r ",
        'D' => r"[^0-9]",
        'W' => "[^0-9A-Za-z_]",
        'S' => r"[^\t\n\x0c\r ]",
        _ => "",
    };
    match sign {
        'd' | 'w' | 's' if in_class => out.push_str(class),
        'd' | 'w' | 's' => {
            out.push('[');
            out.push_str(class);
            out.push(']');
        }
        'D' | 'W' | 'S' => out.push_str(class),
        'b' => out.push_str("(?-u:\\b)"),
        'B' => out.push_str("(?-u:\\B)"),
        'Q' => {
            while let Some(sign) = rest.next() {
                if sign == '\\' && rest.next_if_eq(&'E').is_some() {
                    break;
                }
                out.push_str(&regex::escape(sign.encode_utf8(&mut [0; 4])));
            }
        }
        // A single digit would be a back reference.
        '1'..='7' if !rest.peek().is_some_and(|it| ('0'..='7').contains(it)) => return None,
        '0'..='7' => {
            let mut code = sign.to_digit(8)?;
            for _ in 0..2 {
                let Some(digit) = rest.peek().and_then(|it| it.to_digit(8)) else {
                    break;
                };
                rest.next();
                code = code.checked_mul(8)?.checked_add(digit)?;
            }
            // Writing to a string does not fail.
            let _ = write!(out, "\\x{{{code:x}}}");
        }
        '8' | '9' | 'Z' | 'G' | 'C' => return None,
        letter if letter.is_ascii_alphanumeric() => {
            out.push('\\');
            out.push(letter);
        }
        other => out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::compile;

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let regex = compile(pattern).unwrap();
        for text in matching {
            assert!(regex.is_match(text), "{pattern} {text}");
        }
        for text in others {
            assert!(!regex.is_match(text), "{pattern} {text}");
        }
    }

    #[test]
    fn compile_differing_syntax_matches_as_go() {
        check(r"^\d+$", &["1"], &["٣"]);
        check(r"^[\w-]+$", &["a-b_1"], &["ä"]);
        check(r"^[a&&b]+$", &["a&b"], &["c"]);
        check(r"^[[a]+$", &["[a"], &["]"]);
        check(r"^[]a]+$", &["]a"], &["["]);
        check(r"^[[:alpha:]]+$", &["ab"], &["1"]);
        check(r"^[^\S]$", &[" "], &["a"]);
        check(r"^\p{L}+$", &["ä"], &["1"]);
        check(r"^\<\_\/$", &["<_/"], &["a"]);
        check(r"^\Qa.b\E$", &["a.b"], &["aab"]);
    }
}
