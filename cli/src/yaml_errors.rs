//! Places and messages in the errors of the YAML parser.

/// The place as `:line:column`, where it is known, and what is wrong, on one line.
pub(crate) fn place_and_message(error: &serde_saphyr::Error) -> (String, String) {
    let place = match error.location() {
        Some(place) => format!(":{}:{}", place.line(), place.column()),
        None => String::new(),
    };
    let text = error.without_snippet().to_string();
    let first = text.lines().next().unwrap_or_default();
    let end = first.rfind(" at line ").unwrap_or(first.len());
    (place, first.get(..end).unwrap_or(first).to_owned())
}
