//! The HTTP client that sends spans to the collector.

use super::variable;
use anyhow::{Context, Error};
use hyper_rustls::HttpsConnectorBuilder;
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::future::ready;
use std::iter::successors;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// The default timeout of a batch, in milliseconds.
const TIMEOUT_DEFAULT_MS: u64 = 10_000;

/// Sends on the calling thread, which is a thread of the exporter: the threads that serve reviews do
/// none of this work.
#[derive(Debug)]
pub(super) struct SpanClient {
    runtime: Runtime,
    client: Box<dyn HttpClient>,
    is_failing: AtomicBool,
}

impl SpanClient {
    /// A client for this address; over TLS if its scheme is `https`.
    pub(super) fn new(address: &str) -> Result<Self, Error> {
        let builder = HttpsConnectorBuilder::new();
        let builder = match otlp_variable("CERTIFICATE") {
            Some(file) => builder.with_tls_config(tls_config(read_root_certificates(&file)?)?),
            None if address.starts_with("https:") => {
                let provider = aws_lc_rs::default_provider();
                let native = builder.with_provider_and_native_roots(provider);
                native.context("cannot read the system's trusted CAs")?
            }
            // Plain HTTP needs no CAs, and an image may have none.
            None => builder.with_tls_config(tls_config(RootCertStore::empty())?),
        };
        let connector = builder.https_or_http().enable_http1().build();
        let client = HyperClient::new(connector, timeout(), None);
        Ok(Self {
            runtime: Builder::new_current_thread().enable_all().build()?,
            client: Box::new(client),
            is_failing: AtomicBool::new(false),
        })
    }

    /// Logs the first failure and the first success after it, not every batch.
    fn log_outcome(&self, sent: &Result<Response<Bytes>, HttpError>) {
        let failure = match sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!(
                "the collector responded with {}",
                response.status()
            )),
            Err(error) => Some(error_chain(&**error)),
        };
        // One atomic step: concurrent batches log a change once.
        let was_failing = self.is_failing.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(error) if !was_failing => {
                tracing::warn!(
                    error,
                    "cannot send spans; dropping them until the collector responds"
                );
            }
            None if was_failing => tracing::info!("sending spans again"),
            _ => {}
        }
    }
}

impl HttpClient for SpanClient {
    fn send_bytes<'a, 'out>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'out>>
    where
        'a: 'out,
        Self: 'out,
    {
        let sent = self.runtime.block_on(self.client.send_bytes(request));
        self.log_outcome(&sent);
        Box::pin(ready(sent))
    }
}

/// The CAs in a PEM file.
fn read_root_certificates(file: &str) -> Result<RootCertStore, Error> {
    let read = || format!("cannot use the CAs in {file}");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).with_context(read)? {
        roots
            .add(certificate.with_context(read)?)
            .with_context(read)?;
    }
    Ok(roots)
}

fn tls_config(roots: RootCertStore) -> Result<ClientConfig, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    Ok(config.with_no_client_auth())
}

/// A variable of the exporter: the one for traces, else the general one.
fn otlp_variable(kind: &str) -> Option<String> {
    variable(&format!("OTEL_EXPORTER_OTLP_TRACES_{kind}"))
        .or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{kind}")))
}

fn timeout() -> Duration {
    let given = otlp_variable("TIMEOUT").and_then(|text| text.parse().ok());
    Duration::from_millis(given.unwrap_or(TIMEOUT_DEFAULT_MS))
}

/// An error with its causes.
fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let texts: Vec<String> = successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect();
    texts.join(": ")
}
