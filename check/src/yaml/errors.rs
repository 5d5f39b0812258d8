/// The position of a YAML error as `:line:column` (empty if unknown), and its message on one line.
#[must_use]
pub fn place_and_message(error: &serde_saphyr::Error) -> (String, String) {
    let place = match error.location() {
        Some(place) => format!(":{}:{}", place.line(), place.column()),
        None => String::new(),
    };
    let text = error.without_snippet().to_string();
    let first = text.lines().next().unwrap_or_default();
    // The message repeats the position at its end.
    let end = first.rfind(" at line ").unwrap_or(first.len());
    (place, first.get(..end).unwrap_or(first).to_owned())
}
