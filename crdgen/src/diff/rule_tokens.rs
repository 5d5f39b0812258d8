//! The tokens of CEL expressions, as far as rules are folded.

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name or a number.
    Name(&'a str),
    /// The content of a string without escapes.
    Text(&'a str),
    /// An operator or a bracket.
    Symbol(&'a str),
}

/// The operators of two characters.
const PAIRS: [&str; 6] = ["||", "&&", "==", "!=", "<=", ">="];

impl Token<'_> {
    pub(super) fn opens(&self) -> bool {
        matches!(self, Self::Symbol("(" | "[" | "{"))
    }

    pub(super) fn closes(&self) -> bool {
        matches!(self, Self::Symbol(")" | "]" | "}"))
    }

    /// Whether this is the operator, which may be a word.
    pub(super) fn is(&self, operator: &str) -> bool {
        match self {
            Self::Symbol(text) => *text == operator,
            Self::Name(name) => *name == "in" && operator == "in",
            Self::Text(_) => false,
        }
    }
}

/// The tokens of an expression; `None` if it has a string with escapes, a raw string or a comment.
pub(super) fn tokenize(text: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first == '"' || first == '\'' {
            let inner = rest.get(1..)?;
            let end = inner.find(first)?;
            let content = inner.get(..end)?;
            let follows_name = matches!(tokens.last(), Some(Token::Name("r" | "b" | "rb" | "br")));
            if content.contains('\\') || follows_name {
                return None;
            }
            tokens.push(Token::Text(content));
            end.checked_add(2)?
        } else if first.is_alphanumeric() || first == '_' {
            let is_part = |it: char| it.is_alphanumeric() || it == '_';
            let end = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
            tokens.push(Token::Name(rest.get(..end)?));
            end
        } else if rest.starts_with("//") {
            return None;
        } else {
            let pair = rest.get(..2).filter(|it| PAIRS.contains(it));
            let symbol = pair.or_else(|| rest.get(..first.len_utf8()))?;
            tokens.push(Token::Symbol(symbol));
            symbol.len()
        };
        rest = rest.get(length..)?.trim_start();
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::{Token, tokenize};

    #[test]
    fn tokenize_separates_names_texts_and_symbols() {
        assert_eq!(
            tokenize("!has(self.a)||self.b=='x y'").unwrap(),
            [
                Token::Symbol("!"),
                Token::Name("has"),
                Token::Symbol("("),
                Token::Name("self"),
                Token::Symbol("."),
                Token::Name("a"),
                Token::Symbol(")"),
                Token::Symbol("||"),
                Token::Name("self"),
                Token::Symbol("."),
                Token::Name("b"),
                Token::Symbol("=="),
                Token::Text("x y"),
            ]
        );
        for unsupported in ["'a\\'b'", "r'a'", "a // b", "'a"] {
            assert_eq!(tokenize(unsupported), None, "{unsupported}");
        }
    }
}
