use lockkeeper_policies::registry;

/// The command that prints the page of a rule.
pub fn help_command(rule: &str) -> String {
    match registry::find(rule) {
        Some(_) => format!("lockkeeper rules {rule}"),
        // A rule of the user.
        None => format!("lockkeeper rules --rules DIR {rule}"),
    }
}

/// A count with its noun, such as `2 files`.
#[must_use]
pub fn pluralize(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}
