//! Paths of files.

/// Reasons why a path has a part `..`.
pub(super) fn no_backsteps(path: &str) -> Vec<String> {
    if path.split('/').any(|it| it == "..") {
        vec!["must not contain '..'".to_owned()]
    } else {
        Vec::new()
    }
}

/// Reasons why a path is not relative, or has a part `..`.
pub(super) fn descending(path: &str) -> Vec<String> {
    let mut out = Vec::new();
    if path.starts_with('/') {
        out.push("must be a relative path".to_owned());
    }
    out.extend(no_backsteps(path));
    out
}

/// Reasons why a path does not descend, or begins with `..`.
pub(super) fn non_reserved(path: &str) -> Vec<String> {
    let mut out = descending(path);
    if path.starts_with("..") && !path.starts_with("../") {
        out.push("must not start with '..'".to_owned());
    }
    out
}
