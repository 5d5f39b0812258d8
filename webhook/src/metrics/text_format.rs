//! The two text formats, and their selection.

use std::fmt::Write as _;

/// The media type of `OpenMetrics`, for clients that accept it.
const OPENMETRICS: &str = "application/openmetrics-text";

/// The `Content-Type` of each format.
const OPENMETRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextFormat {
    /// `OpenMetrics` 1.0.
    OpenMetrics,
    /// The Prometheus format, which every scraper and curl can use.
    Prometheus,
}

impl TextFormat {
    /// Selects the best format of an `Accept` header.
    pub(crate) fn from_accept(accept: &str) -> Self {
        let mut ranges = accept.split(',').map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            // A quality of 0 excludes a format (RFC 9110, section 12.4.2).
            let quality = parts.find_map(|part| part.strip_prefix("q="));
            let is_excluded = quality.is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0));
            (name, is_excluded)
        });
        if ranges.any(|(name, is_excluded)| name.eq_ignore_ascii_case(OPENMETRICS) && !is_excluded)
        {
            return Self::OpenMetrics;
        }
        Self::Prometheus
    }

    /// Returns the `Content-Type` of the response.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => OPENMETRICS_TYPE,
            Self::Prometheus => PROMETHEUS_TYPE,
        }
    }
}

/// Converts `OpenMetrics`, as the library writes it, to the Prometheus format: there the metadata of a
/// metric uses the name of its samples, an info is a gauge, and there is no end marker.
pub(crate) fn to_prometheus(openmetrics: &str) -> String {
    let mut out = String::with_capacity(openmetrics.len());
    let mut help = "";
    for line in openmetrics.lines() {
        if let Some(text) = line.strip_prefix("# HELP ") {
            // The line is written with the type, which determines the suffix of the name.
            help = text;
        } else if let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|rest| rest.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                other => ("", other),
            };
            let help = help.strip_prefix(name).unwrap_or_default();
            let _ = writeln!(out, "# HELP {name}{suffix}{help}");
            let _ = writeln!(out, "# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with('#') {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_served_if_accepted() {
        for (accept, format) in [
            ("", TextFormat::Prometheus),
            ("*/*", TextFormat::Prometheus),
            ("text/plain", TextFormat::Prometheus),
            ("application/openmetrics-text;q=0", TextFormat::Prometheus),
            ("application/openmetrics-text", TextFormat::OpenMetrics),
            (
                "application/openmetrics-text;version=1.0.0;q=0.5, text/plain;version=0.0.4;q=0.2",
                TextFormat::OpenMetrics,
            ),
            (
                "text/plain;q=0.1,Application/OpenMetrics-Text",
                TextFormat::OpenMetrics,
            ),
        ] {
            assert_eq!(TextFormat::from_accept(accept), format, "{accept}");
        }
    }

    #[test]
    fn prometheus_rewrites_headers_and_keeps_samples() {
        let openmetrics = "# HELP a Things seen.\n# TYPE a counter\na_total{b=\"# c\"} 1\n\
            # HELP d_seconds Time.\n# TYPE d_seconds gauge\n# UNIT d_seconds seconds\nd_seconds 2\n\
            # HELP e Which.\n# TYPE e info\ne_info{v=\"1\"} 1\n# EOF\n";
        let expected = "# HELP a_total Things seen.\n# TYPE a_total counter\na_total{b=\"# c\"} 1\n\
            # HELP d_seconds Time.\n# TYPE d_seconds gauge\nd_seconds 2\n\
            # HELP e_info Which.\n# TYPE e_info gauge\ne_info{v=\"1\"} 1\n";
        assert_eq!(to_prometheus(openmetrics), expected);
    }
}
