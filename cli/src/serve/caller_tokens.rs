//! The tokens with which API servers authenticate (KEP-6060).

use anyhow::{Error, anyhow};
use lockkeeper_api::config::WebhookSettings;
use lockkeeper_kube_support::api_client::ApiClients;
use lockkeeper_webhook::caller_tokens::{CallerTokens, KeyDiscovery};
use std::sync::Arc;

/// Checks the settings.
pub(super) fn validate(settings: &WebhookSettings) -> Result<(), Error> {
    match &settings.token_audience {
        Some(audience) if !audience.starts_with("https://") => Err(anyhow!(
            "webhook.tokenAudience {audience:?} is no address of a webhook; write https://SERVICE.NAMESPACE.svc:443"
        )),
        None if settings.token_issuer.is_some() => Err(anyhow!(
            "webhook.tokenIssuer has no effect without webhook.tokenAudience; set both, or leave it out"
        )),
        _ => Ok(()),
    }
}

/// Starts to read the keys of tokens; `None` if no token is required.
pub(super) fn start(clients: &ApiClients, settings: &WebhookSettings) -> Option<Arc<CallerTokens>> {
    let audience = settings.token_audience.as_deref()?;
    let tokens = Arc::new(CallerTokens::new(audience));
    let client = clients.requests.clone();
    let issuer = settings.token_issuer.clone();
    // Runs until the runtime ends.
    tokio::spawn(KeyDiscovery::new(client, Arc::clone(&tokens), issuer).run());
    Some(tokens)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn settings_without_effect_are_rejected() {
        let settings = |audience: Option<&str>, issuer: Option<&str>| WebhookSettings {
            token_audience: audience.map(str::to_owned),
            token_issuer: issuer.map(str::to_owned),
            ..WebhookSettings::default()
        };
        let address = Some("https://lockkeeper.lockkeeper-system.svc:443");
        for (settings, expected) in [
            (settings(None, None), None),
            (settings(address, None), None),
            (settings(address, address), None),
            (settings(None, address), Some("tokenIssuer has no effect")),
            (settings(Some("lockkeeper"), None), Some("is no address")),
        ] {
            let error = validate(&settings).err().map(|it| it.to_string());
            match expected {
                None => assert_eq!(error, None),
                Some(text) => assert!(error.as_ref().unwrap().contains(text), "{error:?}"),
            }
        }
    }
}
