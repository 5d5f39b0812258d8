//! Reads the keys of the cluster's tokens from the API server, and keeps them up to date.

use super::key_set::{KeySet, KeySetError};
use super::verifier::CallerTokens;
use axum::http::{Request, Uri};
use kube::Client;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, warn};

/// The issuer and where its keys are (`OpenID` Connect Discovery 1.0).
const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";

/// The keys. The API server serves them here also if it names another address for other readers.
const KEYS_PATH: &str = "/openid/v1/jwks";

/// The interval of a regular read.
const INTERVAL: Duration = Duration::from_mins(5);

/// The shortest pause between two reads, so that tokens of unknown keys cause no more requests.
const PAUSE_MIN: Duration = Duration::from_secs(10);

/// The pauses after failed reads: the first, and the longest.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Reads the keys of the API server.
pub struct KeyDiscovery {
    client: Client,
    tokens: Arc<CallerTokens>,
    issuer: Option<String>,
}

/// The fields that are read of the discovery document.
#[derive(Deserialize)]
struct OpenIdConfiguration {
    issuer: String,
}

/// Why the keys could not be read.
#[derive(Debug, thiserror::Error)]
enum DiscoveryError {
    #[error("no response to {path} within {} s", TIMEOUT.as_secs())]
    Timeout { path: &'static str },
    #[error(
        "{path}: {error}; the webhook's account needs the role system:service-account-issuer-discovery"
    )]
    Request {
        path: &'static str,
        #[source]
        error: Box<kube::Error>,
    },
    #[error("{CONFIGURATION_PATH} is no discovery document: {0}")]
    Configuration(serde_json::Error),
    #[error(transparent)]
    Keys(#[from] KeySetError),
}

impl KeyDiscovery {
    /// Without `issuer`, the one that the API server names is accepted.
    #[must_use]
    pub const fn new(client: Client, tokens: Arc<CallerTokens>, issuer: Option<String>) -> Self {
        Self {
            client,
            tokens,
            issuer,
        }
    }

    /// Runs until it is dropped. After a failed read the earlier keys stay valid.
    pub async fn run(self) {
        let (first_pause, longest_pause) = RETRY_PAUSES;
        let mut pause = first_pause;
        loop {
            let earliest = Instant::now().checked_add(PAUSE_MIN);
            match self.read().await {
                Ok(keys) => {
                    debug!(?keys, "read the keys of the API server's tokens");
                    self.tokens.set_keys(keys);
                    pause = first_pause;
                    tokio::select! {
                        () = sleep(INTERVAL) => {}
                        () = self.tokens.unknown_key() => {
                            if let Some(earliest) = earliest {
                                sleep_until(earliest).await;
                            }
                        }
                    }
                }
                Err(error) => {
                    warn!(%error, "cannot read the keys of the API server's tokens");
                    self.tokens.set_problem(error.to_string());
                    sleep(pause).await;
                    pause = pause.saturating_mul(2).min(longest_pause);
                }
            }
        }
    }

    async fn read(&self) -> Result<KeySet, DiscoveryError> {
        let issuer = if let Some(issuer) = &self.issuer {
            issuer.clone()
        } else {
            let document = self.get(CONFIGURATION_PATH).await?;
            let document: OpenIdConfiguration =
                serde_json::from_str(&document).map_err(DiscoveryError::Configuration)?;
            document.issuer
        };
        Ok(KeySet::from_json(issuer, &self.get(KEYS_PATH).await?)?)
    }

    async fn get(&self, path: &'static str) -> Result<String, DiscoveryError> {
        let mut request = Request::new(Vec::new());
        *request.uri_mut() = Uri::from_static(path);
        match timeout(TIMEOUT, self.client.request_text(request)).await {
            Err(_) => Err(DiscoveryError::Timeout { path }),
            Ok(answer) => answer.map_err(|error| DiscoveryError::Request {
                path,
                error: Box::new(error),
            }),
        }
    }
}
