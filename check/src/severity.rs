/// The severity of a finding. `Warning` is less than `Error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The API server would accept the object, with a warning.
    Warning,
    /// The API server or the webhook would reject the object.
    Error,
}

impl Severity {
    /// The word that reports print: `warning` or `error`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}
