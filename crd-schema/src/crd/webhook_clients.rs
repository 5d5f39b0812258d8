//! URLs and paths of webhooks, as `k8s.io/apiserver/pkg/util/webhook` validates them.

use super::formats::uri::Reference;
use super::names::dns1123_subdomain;

/// What is wrong with a URL.
pub(crate) enum UrlProblem {
    /// The text is no URL, which the API server reports as a missing one.
    Unreadable,
    /// A part is missing or not allowed.
    Part(&'static str),
}

/// The problems of the URL of a webhook.
pub(crate) fn url_problems(url: &str) -> Vec<UrlProblem> {
    let Some(url) = Reference::parse(url) else {
        return vec![UrlProblem::Unreadable];
    };
    let checks = [
        (
            url.scheme != "https",
            "'https' is the only allowed URL scheme",
        ),
        (url.host.is_empty(), "host must be specified"),
        (url.has_user, "user information is not permitted in the URL"),
        (
            !url.fragment.is_empty(),
            "fragments are not permitted in the URL",
        ),
        (
            !url.query.is_empty(),
            "query parameters are not permitted in the URL",
        ),
    ];
    let found = checks.into_iter().filter(|it| it.0);
    found.map(|it| UrlProblem::Part(it.1)).collect()
}

/// The problems of the path of a service.
pub(crate) fn path_problems(path: &str) -> Vec<String> {
    let mut out = Vec::new();
    if matches!(path, "" | "/") {
        return out;
    }
    if !path.starts_with('/') {
        out.push("must start with a '/'".to_owned());
    }
    // The first character is dropped, also if it is no slash.
    let mut rest = path.chars();
    rest.next();
    let rest = rest.as_str();
    for step in rest.strip_suffix('/').unwrap_or(rest).split('/') {
        if step.is_empty() {
            out.push("segment may not be empty".to_owned());
        } else {
            out.extend(dns1123_subdomain(step));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{UrlProblem, path_problems, url_problems};

    /// `ValidateWebhookURL` of `k8s.io/apiserver` 0.37.1: `R` for a text that is no URL, and the first letters of the parts
    /// that are not allowed.
    const URLS: &str = include_str!("webhook_clients/urls.txt");

    #[test]
    fn url_problems_are_those_of_the_api_server() {
        let mut differences = Vec::new();
        for line in URLS.lines() {
            let (expected, url) = line.split_once(' ').unwrap();
            let url: String = serde_json::from_str(url).unwrap();
            let mut found = String::new();
            for problem in url_problems(&url) {
                found.push(match problem {
                    UrlProblem::Unreadable => 'R',
                    UrlProblem::Part(detail) => match detail.get(..1).unwrap() {
                        "'" => 's',
                        letter => letter.chars().next().unwrap(),
                    },
                });
            }
            if found.is_empty() {
                found.push('-');
            }
            if found != expected {
                differences.push(format!("{url:?}: {found}, not {expected}"));
            }
        }
        assert_eq!(differences, Vec::<String>::new());
    }

    #[test]
    fn path_problems_are_those_of_the_api_server() {
        for (path, count) in [
            ("", 0),
            ("/", 0),
            ("//", 1),
            ("/a/b.c/", 0),
            ("a", 2),
            ("/a//b", 1),
            ("/A", 1),
        ] {
            assert_eq!(path_problems(path).len(), count, "{path}");
        }
    }
}
