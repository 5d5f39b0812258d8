//! Sends the spans of reviews to an OpenTelemetry collector (docs/tracing.md).

#[cfg(not(feature = "otel"))]
mod noop;
#[cfg(feature = "otel")]
mod otlp;

#[cfg(not(feature = "otel"))]
pub(super) use noop::Traces;
#[cfg(feature = "otel")]
pub(super) use otlp::Traces;

/// The variables with the endpoint. The first one has precedence.
const ENDPOINT_VARIABLES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

/// The value of an environment variable; an empty one counts as unset, as OpenTelemetry specifies.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The variable with the endpoint, and its value.
fn endpoint() -> Option<(&'static str, String)> {
    ENDPOINT_VARIABLES
        .into_iter()
        .find_map(|name| Some((name, variable(name)?)))
}
