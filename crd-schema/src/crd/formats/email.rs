//! Addresses as Go's `net/mail.ParseAddress` parses them.

/// Whether Go parses a text as one address, with or without a display name.
pub(super) fn is_address(text: &str) -> bool {
    let Some(text) = without_comments(text) else {
        return false;
    };
    let text = text.trim_matches([' ', '\t']);
    if is_addr_spec(text) {
        return true;
    }
    // A display name and the address in angle brackets.
    let Some((name, rest)) = split_outside_quotes(text, '<') else {
        return false;
    };
    let Some(address) = rest.strip_suffix('>') else {
        return false;
    };
    is_phrase(name) && is_addr_spec(address.trim_matches([' ', '\t']))
}

/// The text without comments in parentheses. `None` if they are not balanced.
fn without_comments(text: &str) -> Option<String> {
    let mut out = String::new();
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    for sign in text.chars() {
        if is_escaped {
            is_escaped = false;
        } else if sign == '\\' {
            is_escaped = true;
        } else if sign == '"' && depth == 0 {
            is_quoted = !is_quoted;
        } else if sign == '(' && !is_quoted {
            depth = depth.saturating_add(1);
            continue;
        } else if sign == ')' && !is_quoted {
            depth = depth.checked_sub(1)?;
            continue;
        }
        if depth == 0 {
            out.push(sign);
        }
    }
    (depth == 0).then_some(out)
}

fn split_outside_quotes(text: &str, separator: char) -> Option<(&str, &str)> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, sign) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if sign == '\\' {
            is_escaped = true;
        } else if sign == '"' {
            is_quoted = !is_quoted;
        } else if sign == separator && !is_quoted {
            let (head, tail) = text.split_at_checked(at)?;
            return Some((head, tail.strip_prefix(separator)?));
        }
    }
    None
}

fn is_atom_text(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(sign) || !sign.is_ascii()
}

fn is_dot_atom(text: &str) -> bool {
    text.split('.')
        .all(|it| !it.is_empty() && it.chars().all(is_atom_text))
}

/// Words of atoms (with dots) or quoted strings.
fn is_phrase(text: &str) -> bool {
    let mut rest = text.trim_matches([' ', '\t']);
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let Some(end) = end_of_quoted(quoted) else {
                return false;
            };
            rest = quoted.get(end..).unwrap_or_default();
        } else {
            let end = rest
                .find(|it| !is_atom_text(it) && it != '.')
                .unwrap_or(rest.len());
            if end == 0 {
                return false;
            }
            rest = rest.get(end..).unwrap_or_default();
        }
        rest = rest.trim_start_matches([' ', '\t']);
    }
    true
}

/// The position after the closing quote.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, sign) in text.char_indices() {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at.checked_add(1),
            '\r' | '\n' => return None,
            _ => {}
        }
    }
    None
}

fn is_addr_spec(text: &str) -> bool {
    let (local, domain) = if let Some(quoted) = text.strip_prefix('"') {
        let Some(end) = end_of_quoted(quoted).filter(|it| *it > 1) else {
            return false;
        };
        let rest = quoted
            .get(end..)
            .and_then(|it| it.trim_start().strip_prefix('@'));
        let Some(domain) = rest else {
            return false;
        };
        ("quoted", domain)
    } else {
        let Some((local, domain)) = text.split_once('@') else {
            return false;
        };
        (local, domain)
    };
    let (local, domain) = (local.trim_end(), domain.trim_start());
    let is_literal = domain
        .strip_prefix('[')
        .and_then(|it| it.strip_suffix(']'))
        .is_some_and(|it| super::net::parse_ip(it.trim_start_matches("IPv6:")).is_some());
    is_dot_atom(local) && (is_literal || is_dot_atom(domain))
}
