//! The names of images, as `pkg/util/parsers` and `github.com/distribution/reference` read them.

use regex::Regex;
use std::sync::LazyLock;

/// The longest name without tag and digest, in bytes.
const NAME_MAX_BYTES: usize = 255;

/// The registry of names without one.
const DEFAULT_DOMAIN: &str = "docker.io";

static REFERENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let label = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
    let domain = format!(r"(?:{label}(?:\.{label})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?");
    let part = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
    let tag = "[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}";
    let digest = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
    let name = format!("{domain}/{part}(?:/{part})*");
    Regex::new(&format!("^({name})(?::({tag}))?(?:@({digest}))?$")).ok()
});

/// Whether an image has the tag `latest`: by name, or because it has neither tag nor digest. An invalid name has no tag.
pub(super) fn is_latest(image: &str) -> bool {
    let Some(name) = normalized(image) else {
        return false;
    };
    let captures = REFERENCE.as_ref().and_then(|it| it.captures(&name));
    let Some(captures) = captures else {
        return false;
    };
    let is_too_long = captures.get(1).is_some_and(|it| it.len() > NAME_MAX_BYTES);
    let tag = captures.get(2).map(|it| it.as_str());
    let has_digest = captures.get(3).is_some();
    !is_too_long && (tag == Some("latest") || (tag.is_none() && !has_digest))
}

/// The name with its registry; `None` if the name is an id or has upper-case letters in its path.
fn normalized(image: &str) -> Option<String> {
    let is_id = image.len() == 64
        && image
            .bytes()
            .all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    if is_id {
        return None;
    }
    let (domain, rest) = match image.split_once('/') {
        Some((first, rest))
            if first.contains(['.', ':'])
                || first == "localhost"
                || first.to_lowercase() != first =>
        {
            (first, rest)
        }
        _ => (DEFAULT_DOMAIN, image),
    };
    let domain = if domain == "index.docker.io" {
        DEFAULT_DOMAIN
    } else {
        domain
    };
    let library = if domain == DEFAULT_DOMAIN && !rest.contains('/') {
        "library/"
    } else {
        ""
    };
    let path = rest.split(':').next().unwrap_or_default();
    (path.to_lowercase() == path).then(|| format!("{domain}/{library}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::is_latest;

    #[test]
    fn is_latest_depends_on_tag_and_digest() {
        let digest = "a".repeat(64);
        for (image, expected) in [
            ("busybox", true),
            ("busybox:latest", true),
            ("nginx:1.27", false),
            ("registry.example:5000/a/b", true),
            ("registry.example:5000/a/b:1", false),
            ("localhost/a", true),
            ("a/b/c", true),
            ("Nginx", false),
            ("nginx:", false),
            ("", false),
            (digest.as_str(), false),
            (&format!("busybox@sha256:{digest}"), false),
        ] {
            assert_eq!(is_latest(image), expected, "{image}");
        }
    }
}
