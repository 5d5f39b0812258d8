//! Reserved words of Kubernetes' CEL.

/// Names that a field of a CEL expression must escape (`__namespace__`), as Kubernetes lists them.
pub(crate) const RESERVED_WORDS: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];
