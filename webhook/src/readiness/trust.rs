//! The CA that the self-check trusts.

use lockkeeper_certs::ca_bundle::CaBundle;
use std::path::PathBuf;
use tokio::sync::watch;

/// The CA that the served certificate is verified against.
#[derive(Clone, Debug)]
pub enum SelfCheckTrust {
    /// It must be signed by a certificate of this PEM file, which is read at each check.
    Ca(PathBuf),
    /// It must be signed by a certificate of the current bundle. A change of the bundle triggers a check.
    Bundle(watch::Receiver<CaBundle>),
    /// Any certificate is accepted, because the CA is not configured here. The server must still prove
    /// that it has the certificate's key.
    Any,
}

impl SelfCheckTrust {
    /// Completes when the bundle changes; never for the other variants.
    pub(super) async fn changed(&mut self) {
        if let Self::Bundle(bundle) = self
            && bundle.changed().await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
