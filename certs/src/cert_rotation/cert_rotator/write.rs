//! Writes of the rotator: the Secret, and the bundles of the targets.

use super::super::injection_targets::TrackedTarget;
use super::super::plan::RotationStep;
use super::super::secret_store::StoreError;
use super::{CertRotator, Problem, WRITES_PER_ROUND_MAX};
use crate::self_signed;
use std::time::SystemTime;
use tracing::info;

impl CertRotator {
    /// Applies the step and writes the result.
    pub(super) async fn apply_step(&mut self, step: RotationStep) -> Result<(), Problem> {
        let Some(seen) = &self.observed else {
            return Ok(());
        };
        let stored = seen.valid_contents().map(|contents| &**contents);
        let secret = &self.settings.secret;
        let now_s =
            self_signed::unix_seconds(SystemTime::now()).map_err(|error| error.to_string())?;
        let contents = self
            .settings
            .issuer
            .apply(step, stored, self.active_contents.as_deref(), now_s)
            .map_err(|error| format!("cannot renew Secret {secret}: {error}"))?;
        let is_granted = matches!(
            step,
            RotationStep::Create | RotationStep::AnnounceCa | RotationStep::Acknowledge
        );
        let written = match seen.secret() {
            Some(before) => self.store.replace(before, &contents, is_granted).await,
            None => self.store.create(&contents).await,
        };
        match written {
            Ok(written) => {
                info!(secret = secret.to_string(), ?step, "wrote the Secret");
                self.observe_secret(Some(written));
                Ok(())
            }
            // Another replica wrote first: its contents are loaded, and the next step is planned.
            Err(StoreError::Conflict) => self.refresh_secret().await,
            // RBAC cannot limit `create` to a name, so the installation has the Secret.
            Err(StoreError::Forbidden(reason)) if seen.secret().is_none() => Err(format!(
                "Secret {secret} does not exist: {reason}; apply the installation again \
                 (examples/install/server.yaml), which has it, empty"
            )),
            Err(StoreError::Forbidden(reason)) => Err(format!(
                "cannot write Secret {secret}: {reason}; give the account the verb patch on it"
            )),
            Err(StoreError::Failed(reason)) => {
                Err(format!("cannot write Secret {secret}: {reason}"))
            }
        }
    }

    async fn refresh_secret(&mut self) -> Result<(), Problem> {
        match self.store.read().await {
            Ok(secret) => {
                self.observe_secret(secret);
                Ok(())
            }
            Err(StoreError::Conflict) => Ok(()),
            Err(StoreError::Forbidden(reason) | StoreError::Failed(reason)) => {
                let secret = &self.settings.secret;
                Err(format!("cannot read Secret {secret}: {reason}"))
            }
        }
    }

    /// Injects the bundle into every target without it.
    pub(super) async fn inject_bundle(&mut self) -> Result<(), Problem> {
        for _ in 0..WRITES_PER_ROUND_MAX {
            let Some(bundle) = self.stored_bundle() else {
                return Ok(());
            };
            if !self
                .targets
                .iter()
                .any(|target| target.needs_bundle(&bundle))
            {
                return Ok(());
            }
            // Read after the targets: a replica that lags must not replace a newer bundle.
            self.refresh_secret().await?;
            let Some(bundle) = self.stored_bundle() else {
                return Ok(());
            };
            let mut result = Ok(());
            // A target that fails must not keep the others without the bundle.
            for target in &mut self.targets {
                result = result.and(target.inject(&bundle).await.map(drop));
            }
            if result.is_err() {
                let troubles = self.targets.iter().filter_map(TrackedTarget::last_error);
                return Err(troubles.collect::<Vec<_>>().join("; "));
            }
        }
        Err("the CA bundles are changed by another client repeatedly; find and stop it".to_owned())
    }

    fn stored_bundle(&self) -> Option<String> {
        let contents = self.observed.as_ref()?.valid_contents()?;
        Some(contents.bundle().to_owned())
    }
}
