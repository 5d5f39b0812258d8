//! Plans the next step of the rotation. Pure: times and observations are parameters.
//!
//! A CA is rotated in three writes. It is *announced*: added at the front of the bundle, while the
//! certificate of the older CA is still served. After it was in every target for the overlap, every API
//! server trusts it, and a new certificate is *issued* by it. After that one was in the Secret for the
//! overlap, every replica serves it, and the older CA is *retired*.

use super::contents::{SecretContents, Validity};
use crate::self_signed::{DAY_S, RENEWAL_DAYS};
use rustls::pki_types::ServerName;
use std::time::Duration;

/// The longest time between two plans: much less than a third of the shortest validity.
const RECHECK_MAX: Duration = Duration::from_hours(1);

/// The content of the Secret.
#[derive(Clone, Copy, Debug)]
pub(super) enum StoredState<'a> {
    /// There is no Secret, or it is empty.
    Empty,
    /// Invalid contents.
    Invalid,
    /// A CA and a matching certificate with its key.
    Valid(&'a SecretContents),
}

/// The inputs of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct RotationState<'a> {
    /// Seconds since 1970.
    pub(super) now_s: u64,
    pub(super) stored: StoredState<'a>,
    /// The valid contents that this replica serves.
    pub(super) active: Option<&'a SecretContents>,
    /// True if the annotation requests a new CA.
    pub(super) renewal_requested: bool,
    /// The names that the serving certificate must have.
    pub(super) names: &'a [ServerName<'static>],
    pub(super) overlap: Duration,
    /// For how long this replica observed the newest CA in every existing target; `None` if one does
    /// not have it.
    pub(super) ca_injected_for: Option<Duration>,
    /// For how long this replica observed the stored certificate in the Secret.
    pub(super) served_for: Duration,
}

/// A change of the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RotationStep {
    /// No change.
    Wait,
    /// Create a CA and a certificate in an empty Secret.
    Create,
    /// Restore the contents that this replica serves.
    Restore,
    /// Add a new CA at the front of the bundle.
    AnnounceCa,
    /// Only remove the request for a new CA, because one is announced already.
    Acknowledge,
    /// Issue a new certificate with the newest CA.
    IssueServing,
    /// Remove all but the newest CA from the bundle.
    RetireOldCas,
    /// Remove expired CAs from the bundle.
    PruneExpiredCas,
}

/// The step, and when to plan again if no event arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RotationPlan {
    pub(super) step: RotationStep,
    pub(super) recheck_after: Duration,
}

impl RotationState<'_> {
    /// Returns the next step.
    pub(super) fn plan(&self) -> RotationPlan {
        match (self.stored, self.active) {
            (StoredState::Valid(contents), _) => self.plan_for_contents(contents),
            // The targets trust the served CA, so a deleted or damaged Secret gets it back.
            (_, Some(_)) => RotationPlan::immediate(RotationStep::Restore),
            (StoredState::Empty, None) => RotationPlan::immediate(RotationStep::Create),
            // Invalid contents are never overwritten.
            (StoredState::Invalid, None) => RotationPlan::wait(RECHECK_MAX),
        }
    }

    fn plan_for_contents(&self, contents: &SecretContents) -> RotationPlan {
        let (Some(newest), Some(signer)) = (contents.cas().first(), contents.signer()) else {
            return RotationPlan::wait(RECHECK_MAX);
        };
        let is_announced = contents.has_announced_ca();
        // An invalid CA cannot issue, so even an invalid certificate needs a new CA first. A certificate that is not
        // valid yet comes from a replica whose clock is ahead: API servers reject it until then.
        if !newest.validity.contains(self.now_s) {
            return RotationPlan::immediate(RotationStep::AnnounceCa);
        }
        if !contents.validity().contains(self.now_s) || !signer.validity.contains(self.now_s) {
            // No client accepts the certificate, so an overlap would have no use.
            return RotationPlan::immediate(RotationStep::IssueServing);
        }
        if self.renewal_requested {
            let on_its_way = if is_announced {
                RotationStep::Acknowledge
            } else {
                RotationStep::AnnounceCa
            };
            return RotationPlan::immediate(on_its_way);
        }
        // A second announcement would start the overlap again.
        if !is_announced && newest.validity.needs_renewal(self.now_s) {
            return RotationPlan::immediate(RotationStep::AnnounceCa);
        }
        if is_announced {
            return match self.ca_injected_for {
                Some(standing) => {
                    self.after_overlap(standing, RotationStep::IssueServing, contents)
                }
                None => self.prune_or_wait(contents, RECHECK_MAX),
            };
        }
        // Not while a CA is announced: only its key is stored, and a target may not trust it yet.
        let has_names = self.names.iter().all(|name| contents.has_name(name));
        if !has_names || contents.validity().needs_renewal(self.now_s) {
            return RotationPlan::immediate(RotationStep::IssueServing);
        }
        if contents.cas().len() > 1 {
            return self.after_overlap(self.served_for, RotationStep::RetireOldCas, contents);
        }
        RotationPlan::wait(RECHECK_MAX)
    }

    /// Returns the step if the overlap has passed.
    fn after_overlap(
        &self,
        passed: Duration,
        step: RotationStep,
        contents: &SecretContents,
    ) -> RotationPlan {
        match self.overlap.checked_sub(passed) {
            Some(left) if !left.is_zero() => self.prune_or_wait(contents, left),
            _ => RotationPlan::immediate(step),
        }
    }

    fn prune_or_wait(&self, contents: &SecretContents, look_again: Duration) -> RotationPlan {
        let older = contents.cas().iter().skip(1);
        let mut ended = older.filter(|authority| authority.validity.has_expired(self.now_s));
        if ended.next().is_some() {
            return RotationPlan::immediate(RotationStep::PruneExpiredCas);
        }
        RotationPlan::wait(look_again)
    }
}

impl RotationPlan {
    fn immediate(step: RotationStep) -> Self {
        Self {
            step,
            recheck_after: Duration::ZERO,
        }
    }

    fn wait(look_again: Duration) -> Self {
        Self {
            step: RotationStep::Wait,
            recheck_after: look_again.min(RECHECK_MAX),
        }
    }
}

impl Validity {
    /// Whether it has begun and has not expired.
    pub(super) fn contains(self, now_s: u64) -> bool {
        (self.begins_s..=self.ends_s).contains(&now_s)
    }

    pub(super) fn has_expired(self, now_s: u64) -> bool {
        now_s > self.ends_s
    }

    /// Less than a third of the validity is left, and less than 30 days.
    fn needs_renewal(self, now_s: u64) -> bool {
        let life_s = self.ends_s.saturating_sub(self.begins_s);
        let left_s = self.ends_s.saturating_sub(now_s);
        left_s < (life_s / 3).min(RENEWAL_DAYS * DAY_S)
    }
}

/// Since when a value is unchanged, by a monotonic clock.
#[derive(Debug)]
pub(super) struct StableSince<T> {
    observed: Option<(T, Duration)>,
}

// Not derived: `T` needs no default.
impl<T> Default for StableSince<T> {
    fn default() -> Self {
        Self { observed: None }
    }
}

impl<T: PartialEq> StableSince<T> {
    /// Observes the value at `now` (the time since a fixed moment) and returns for how long it is
    /// unchanged. Changes between two calls are not noticed.
    pub(super) fn observe(&mut self, now: Duration, what: Option<T>) -> Option<Duration> {
        let Some(what) = what else {
            self.observed = None;
            return None;
        };
        match &self.observed {
            Some((same, since)) if *same == what => Some(now.saturating_sub(*since)),
            _ => {
                self.observed = Some((what, now));
                Some(Duration::ZERO)
            }
        }
    }
}
