//! The build with spans: OTLP over HTTP, configured by OpenTelemetry's environment variables.
//!
//! Invalid variables are logged and never stop or delay the server: an operator may set them for every pod of a
//! cluster, without regard to lockkeeper.

mod sender;

use super::{endpoint, variable};
use anyhow::Error;
use lockkeeper_webhook::app_state::AppState;
use opentelemetry::trace::TracerProvider;
use opentelemetry::{Key, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use sender::SpanClient;
use std::time::Duration;

/// The default service name, and the instrumentation scope of the spans.
const SERVICE: &str = "lockkeeper";

/// The maximum time for sending the last spans of a stopping process, in seconds.
const FLUSH_SECONDS: u64 = 2;

/// The samplers of the SDK. It treats every other name as `parentbased_always_on`.
const SAMPLERS: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

/// Exports spans if an endpoint is set; `None` otherwise.
pub(crate) struct Traces(Option<SdkTracerProvider>);

impl Traces {
    pub(crate) fn start() -> Self {
        let Some((endpoint, address)) = endpoint().filter(|_| is_enabled(variable)) else {
            return Self(None);
        };
        for warning in unsupported_settings(variable) {
            tracing::warn!("{warning}");
        }
        match provider(&address) {
            Ok(provider) => {
                tracing::info!(endpoint, "exporting spans to the endpoint of this variable");
                Self(Some(provider))
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(endpoint, error, "no spans are exported");
                Self(None)
            }
        }
    }

    /// Adds the tracer to the app.
    pub(crate) fn attach(&self, app: AppState) -> AppState {
        match &self.0 {
            Some(provider) => app.with_tracer(provider.tracer(SERVICE)),
            None => app,
        }
    }

    /// Exports the remaining spans, for [`FLUSH_SECONDS`] at most.
    pub(crate) fn shutdown(self) {
        let Some(provider) = self.0 else {
            return;
        };
        if let Err(error) = provider.shutdown_with_timeout(Duration::from_secs(FLUSH_SECONDS)) {
            tracing::warn!(%error, "the last spans were not exported");
        }
    }
}

/// Exports spans in batches from a queue, on a separate thread. Spans are dropped while the queue is full.
fn provider(address: &str) -> Result<SdkTracerProvider, Error> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_http_client(SpanClient::new(address)?)
        .build()?;
    let provider = SdkTracerProvider::builder()
        .with_resource(resource())
        .with_batch_exporter(exporter);
    Ok(provider.build())
}

/// The resource attributes: those of the environment, with the default service name and the version.
fn resource() -> Resource {
    let named = Resource::builder().build().get(&Key::new("service.name"));
    // The SDK's default name.
    let is_unknown = named.is_none_or(|name| name.as_str().starts_with("unknown_service"));
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let builder = Resource::builder().with_attribute(version);
    if is_unknown {
        builder.with_service_name(SERVICE).build()
    } else {
        builder.build()
    }
}

/// Whether no variable turns spans off.
fn is_enabled(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is = |name, value: &str| variable(name).is_some_and(|v| v.eq_ignore_ascii_case(value));
    !is("OTEL_SDK_DISABLED", "true") && !is("OTEL_TRACES_EXPORTER", "none")
}

/// Warnings about variables with unsupported values.
fn unsupported_settings(variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let of = |kind: &str| {
        let own = format!("OTEL_EXPORTER_OTLP_TRACES_{kind}");
        let general = format!("OTEL_EXPORTER_OTLP_{kind}");
        [own, general]
            .into_iter()
            .find_map(|name| variable(&name).map(|value| (name, value)))
    };
    let mut out = Vec::new();
    if let Some((name, value)) = of("PROTOCOL").filter(|(_, value)| value != "http/protobuf") {
        out.push(format!(
            "{name} is {value:?}, but spans are sent as http/protobuf; the endpoint must accept that \
             (usually on port 4318)"
        ));
    }
    if let Some((name, value)) = of("COMPRESSION").filter(|(_, value)| value != "none") {
        out.push(format!(
            "{name} is {value:?}, but spans are sent uncompressed"
        ));
    }
    if let Some((name, _)) = of("CLIENT_CERTIFICATE") {
        out.push(format!(
            "{name} is set, but no certificate is presented to the collector"
        ));
    }
    let name = "OTEL_TRACES_SAMPLER";
    if let Some(value) = variable(name).filter(|value| !SAMPLERS.contains(&value.as_str())) {
        let known = SAMPLERS.join(", ");
        out.push(format!(
            "{name} is {value:?}, which is unknown, so every review is sampled; use one of {known}"
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An environment with these variables.
    fn environment(variables: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> + Copy {
        |name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        }
    }

    #[track_caller]
    fn check(variables: &'static [(&str, &str)], parts: &[&str]) {
        let warnings = unsupported_settings(environment(variables));
        assert_eq!(warnings.len(), parts.len(), "{warnings:?}");
        for (warning, part) in warnings.iter().zip(parts) {
            assert!(warning.contains(part), "{warning}");
        }
    }

    #[test]
    fn otlp_supported_settings_raise_no_warning() {
        check(&[], &[]);
        check(
            &[
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
                ("OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
                ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ],
            &[],
        );
    }

    #[test]
    fn otlp_unsupported_settings_are_reported() {
        check(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], &["4318"]);
        check(
            &[
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
                ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
                ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
                ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "tls.crt"),
                ("OTEL_TRACES_SAMPLER", "always"),
            ],
            &[
                "TRACES_PROTOCOL",
                "gzip",
                "CLIENT_CERTIFICATE",
                "always_on, ",
            ],
        );
    }

    #[test]
    fn otlp_environment_disables_spans() {
        assert!(is_enabled(environment(&[])));
        assert!(is_enabled(environment(&[("OTEL_SDK_DISABLED", "false")])));
        assert!(!is_enabled(environment(&[("OTEL_SDK_DISABLED", "True")])));
        assert!(!is_enabled(environment(&[(
            "OTEL_TRACES_EXPORTER",
            "none"
        )])));
        assert!(is_enabled(environment(&[("OTEL_TRACES_EXPORTER", "otlp")])));
    }
}
