//! What to do next with the Secret. Pure: times and what is known of others come in.
//!
//! A CA is rotated in three writes. It is *announced*: put in front of the bundle, while the pair of
//! the older one is served on. When it has stood in every target for the overlap, every API server
//! trusts it, and a new pair is *issued* by it. When that one has stood in the Secret for the
//! overlap, every replica serves it, and the older CA is *retired*.

use super::contents::{SecretContents, Validity};
use crate::self_signed::{DAY_S, RENEWAL_DAYS};
use rustls::pki_types::ServerName;
use std::time::Duration;

/// Longest until the Secret is looked at again, whatever is planned: much less than a third of the
/// shortest life.
const RECHECK_MAX: Duration = Duration::from_hours(1);

/// What the Secret holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum StoredState<'a> {
    /// There is no Secret, or nothing of ours in it.
    Empty,
    /// Something that is not understood.
    Invalid,
    /// A CA and a pair that fit together.
    Valid(&'a SecretContents),
}

/// All that a plan is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct RotationState<'a> {
    /// Seconds since 1970.
    pub(super) now_s: u64,
    pub(super) stored: StoredState<'a>,
    /// The good contents that this replica took over last.
    pub(super) active: Option<&'a SecretContents>,
    /// Whether somebody asks for a new CA.
    pub(super) renewal_requested: bool,
    /// The names that the serving certificate must have.
    pub(super) names: &'a [ServerName<'static>],
    pub(super) overlap: Duration,
    /// For how long this replica has seen the newest CA in every target there is; `None` if it does
    /// not see it in all of them now.
    pub(super) ca_injected_for: Option<Duration>,
    /// For how long this replica has seen the stored pair in the Secret.
    pub(super) served_for: Duration,
}

/// A change of the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RotationStep {
    /// Nothing to do.
    Wait,
    /// Make a CA and a pair, where there is nothing.
    Create,
    /// Write back what this replica holds.
    Restore,
    /// Put a new CA in front of the bundle.
    AnnounceCa,
    /// Only take the wish for a new CA away: one is on its way.
    Acknowledge,
    /// Make a new pair with the newest CA.
    IssueServing,
    /// Take all but the newest CA out of the bundle.
    RetireOldCas,
    /// Take the older CAs that have expired out of the bundle.
    PruneExpiredCas,
}

/// What to do, and when to plan again if nothing happens until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RotationPlan {
    pub(super) step: RotationStep,
    pub(super) recheck_after: Duration,
}

impl RotationState<'_> {
    /// The next step.
    pub(super) fn plan(&self) -> RotationPlan {
        match (self.stored, self.active) {
            (StoredState::Valid(contents), _) => self.plan_for_contents(contents),
            (_, Some(_)) => RotationPlan::immediate(RotationStep::Restore),
            (StoredState::Empty, None) => RotationPlan::immediate(RotationStep::Create),
            // What is not understood is not ours to overwrite.
            (StoredState::Invalid, None) => RotationPlan::wait(RECHECK_MAX),
        }
    }

    fn plan_for_contents(&self, contents: &SecretContents) -> RotationPlan {
        let (Some(newest), Some(signer)) = (contents.cas().first(), contents.signer()) else {
            return RotationPlan::wait(RECHECK_MAX);
        };
        let is_announced = contents.has_announced_ca();
        if newest.validity.has_expired(self.now_s) {
            return RotationPlan::immediate(RotationStep::AnnounceCa);
        }
        if contents.validity().has_expired(self.now_s) || signer.validity.has_expired(self.now_s) {
            // Nobody accepts what is served: the overlap protects nothing any more.
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
        let has_names = self.names.iter().all(|name| contents.has_name(name));
        if !has_names || contents.validity().needs_renewal(self.now_s) {
            return RotationPlan::immediate(RotationStep::IssueServing);
        }
        if contents.cas().len() > 1 {
            return self.after_overlap(self.served_for, RotationStep::RetireOldCas, contents);
        }
        RotationPlan::wait(RECHECK_MAX)
    }

    /// The step if the overlap is over.
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
    pub(super) fn has_expired(self, now_s: u64) -> bool {
        now_s > self.ends_s
    }

    /// Less than a third of its life is left, and less than 30 days.
    fn needs_renewal(self, now_s: u64) -> bool {
        let life_s = self.ends_s.saturating_sub(self.begins_s);
        let left_s = self.ends_s.saturating_sub(now_s);
        left_s < (life_s / 3).min(RENEWAL_DAYS * DAY_S)
    }
}

/// Since when something is seen as it is, by a clock that only goes forward.
#[derive(Debug)]
pub(super) struct StableSince<T> {
    observed: Option<(T, Duration)>,
}

// By hand: what is seen needs no default.
impl<T> Default for StableSince<T> {
    fn default() -> Self {
        Self { observed: None }
    }
}

impl<T: PartialEq> StableSince<T> {
    /// Takes what is seen at `now` (since any moment, the same at every call); for how long it has
    /// been seen like that without a break. What was not looked at between two calls counts as
    /// unchanged if it is the same at both.
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
