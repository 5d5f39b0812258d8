use lockkeeper_crdgen::manifests::SyntaxError;

/// The position of a YAML error as `:line:column` (empty if unknown), and its message on one line.
#[must_use]
pub fn place_and_message(error: &serde_saphyr::Error) -> (String, String) {
    let SyntaxError { location, message } = SyntaxError::from_parser(error);
    let place = location.map(|(line, column)| format!(":{line}:{column}"));
    (place.unwrap_or_default(), message)
}
