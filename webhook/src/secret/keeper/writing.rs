//! What the keeper writes: the Secret, and the bundles of the targets.

use std::time::SystemTime;

use tracing::info;

use super::super::cluster::Refusal;
use super::super::plan::Step;
use super::super::targets::Target;
use super::{Keeper, Trouble, WRITES_MAX};
use crate::bootstrap;

impl Keeper {
    /// Makes what the step asks for and writes it.
    pub(super) async fn carry_out(&mut self, step: Step) -> Result<(), Trouble> {
        let Some(seen) = &self.seen else {
            return Ok(());
        };
        let stored = seen.good().map(|contents| &**contents);
        let secret = &self.settings.secret;
        let now_s = bootstrap::seconds(SystemTime::now()).map_err(|error| error.to_string())?;
        let contents = self
            .settings
            .maker
            .after(step, stored, self.held.as_deref(), now_s)
            .map_err(|error| format!("cannot renew Secret {secret}: {error}"))?;
        let is_granted = matches!(step, Step::Found | Step::Announce | Step::Acknowledge);
        let written = match seen.secret() {
            Some(before) => self.store.replace(before, &contents, is_granted).await,
            None => self.store.create(&contents).await,
        };
        match written {
            Ok(written) => {
                info!(secret = secret.to_string(), ?step, "the Secret was written");
                self.see(Some(written));
                Ok(())
            }
            Err(Refusal::Outrun) => self.read_again().await,
            Err(Refusal::Forbidden(reason)) if seen.secret().is_none() => Err(format!(
                "Secret {secret} does not exist: {reason}; apply the installation again \
                 (examples/install/server.yaml), which has it, empty"
            )),
            Err(Refusal::Forbidden(reason)) => Err(format!(
                "cannot write Secret {secret}: {reason}; give the account the verb patch on it"
            )),
            Err(Refusal::Failed(reason)) => Err(format!("cannot write Secret {secret}: {reason}")),
        }
    }

    async fn read_again(&mut self) -> Result<(), Trouble> {
        match self.store.read().await {
            Ok(secret) => {
                self.see(secret);
                Ok(())
            }
            Err(Refusal::Outrun) => Ok(()),
            Err(Refusal::Forbidden(reason) | Refusal::Failed(reason)) => {
                let secret = &self.settings.secret;
                Err(format!("cannot read Secret {secret}: {reason}"))
            }
        }
    }

    /// Gives the bundle to every target that lacks it. What the Secret holds is read just before:
    /// a replica that lags behind must not put an old bundle in place of a new one.
    pub(super) async fn inject(&mut self) -> Result<(), Trouble> {
        for _ in 0..WRITES_MAX {
            let Some(bundle) = self.stored_bundle() else {
                return Ok(());
            };
            if !self.targets.iter().any(|target| target.lacks(&bundle)) {
                return Ok(());
            }
            self.read_again().await?;
            let Some(bundle) = self.stored_bundle() else {
                return Ok(());
            };
            let mut result = Ok(());
            for target in &mut self.targets {
                result = result.and(target.inject(&bundle).await.map(drop));
            }
            if result.is_err() {
                let troubles = self.targets.iter().filter_map(Target::trouble);
                return Err(troubles.collect::<Vec<_>>().join("; "));
            }
        }
        Err("the CA bundles are changed by others again and again; who writes them?".to_owned())
    }

    fn stored_bundle(&self) -> Option<String> {
        let contents = self.seen.as_ref()?.good()?;
        Some(contents.bundle().to_owned())
    }
}
