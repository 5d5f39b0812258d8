//! What to do next with the Secret. Pure: times and what is known of others come in.
//!
//! A CA is rotated in three writes. It is *announced*: put in front of the bundle, while the pair of
//! the older one is served on. When it has stood in every target for the overlap, every API server
//! trusts it, and a new pair is *issued* by it. When that one has stood in the Secret for the
//! overlap, every replica serves it, and the older CA is *retired*.

use std::time::Duration;

use rustls::pki_types::ServerName;

use super::contents::{Contents, Validity};
use crate::bootstrap::{DAY_S, RENEWAL_DAYS};

/// Longest until the Secret is looked at again, whatever is planned: much less than a third of the
/// shortest life.
const LOOK_AGAIN_MAX: Duration = Duration::from_hours(1);

/// What the Secret holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stored<'a> {
    /// There is no Secret, or nothing of ours in it.
    Nothing,
    /// Something that is not understood.
    Broken,
    /// A CA and a pair that fit together.
    Good(&'a Contents),
}

/// All that a plan is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation<'a> {
    /// Seconds since 1970.
    pub(super) now_s: u64,
    pub(super) stored: Stored<'a>,
    /// The good contents that this replica took over last.
    pub(super) held: Option<&'a Contents>,
    /// Whether somebody asks for a new CA.
    pub(super) renewal_asked: bool,
    /// The names that the serving certificate must have.
    pub(super) names: &'a [ServerName<'static>],
    pub(super) overlap: Duration,
    /// For how long this replica has seen the newest CA in every target there is; `None` if it does
    /// not see it in all of them now.
    pub(super) standing: Option<Duration>,
    /// For how long this replica has seen the stored pair in the Secret.
    pub(super) served: Duration,
}

/// A change of the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing to do.
    Rest,
    /// Make a CA and a pair, where there is nothing.
    Found,
    /// Write back what this replica holds.
    Restore,
    /// Put a new CA in front of the bundle.
    Announce,
    /// Only take the wish for a new CA away: one is on its way.
    Acknowledge,
    /// Make a new pair with the newest CA.
    Issue,
    /// Take all but the newest CA out of the bundle.
    Retire,
    /// Take the older CAs that have expired out of the bundle.
    Prune,
}

/// What to do, and when to plan again if nothing happens until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) step: Step,
    pub(super) look_again: Duration,
}

impl Situation<'_> {
    /// The next step.
    pub(super) fn plan(&self) -> Plan {
        match (self.stored, self.held) {
            (Stored::Good(contents), _) => self.care_for(contents),
            (_, Some(_)) => Plan::at_once(Step::Restore),
            (Stored::Nothing, None) => Plan::at_once(Step::Found),
            // What is not understood is not ours to overwrite.
            (Stored::Broken, None) => Plan::rest(LOOK_AGAIN_MAX),
        }
    }

    fn care_for(&self, contents: &Contents) -> Plan {
        let (Some(newest), Some(signer)) = (contents.authorities().first(), contents.signer())
        else {
            return Plan::rest(LOOK_AGAIN_MAX);
        };
        let is_announced = contents.is_announced();
        if newest.validity.has_ended(self.now_s) {
            return Plan::at_once(Step::Announce);
        }
        if contents.validity().has_ended(self.now_s) || signer.validity.has_ended(self.now_s) {
            // Nobody accepts what is served: the overlap protects nothing any more.
            return Plan::at_once(Step::Issue);
        }
        if self.renewal_asked {
            let on_its_way = if is_announced {
                Step::Acknowledge
            } else {
                Step::Announce
            };
            return Plan::at_once(on_its_way);
        }
        if !is_announced && newest.validity.is_near_its_end(self.now_s) {
            return Plan::at_once(Step::Announce);
        }
        if is_announced {
            return match self.standing {
                Some(standing) => self.after_overlap(standing, Step::Issue, contents),
                None => self.prune_or_rest(contents, LOOK_AGAIN_MAX),
            };
        }
        let has_names = self.names.iter().all(|name| contents.has_name(name));
        if !has_names || contents.validity().is_near_its_end(self.now_s) {
            return Plan::at_once(Step::Issue);
        }
        if contents.authorities().len() > 1 {
            return self.after_overlap(self.served, Step::Retire, contents);
        }
        Plan::rest(LOOK_AGAIN_MAX)
    }

    /// The step if the overlap is over.
    fn after_overlap(&self, passed: Duration, step: Step, contents: &Contents) -> Plan {
        match self.overlap.checked_sub(passed) {
            Some(left) if !left.is_zero() => self.prune_or_rest(contents, left),
            _ => Plan::at_once(step),
        }
    }

    fn prune_or_rest(&self, contents: &Contents, look_again: Duration) -> Plan {
        let older = contents.authorities().iter().skip(1);
        let mut ended = older.filter(|authority| authority.validity.has_ended(self.now_s));
        if ended.next().is_some() {
            return Plan::at_once(Step::Prune);
        }
        Plan::rest(look_again)
    }
}

impl Plan {
    fn at_once(step: Step) -> Self {
        Self {
            step,
            look_again: Duration::ZERO,
        }
    }

    fn rest(look_again: Duration) -> Self {
        Self {
            step: Step::Rest,
            look_again: look_again.min(LOOK_AGAIN_MAX),
        }
    }
}

impl Validity {
    pub(super) fn has_ended(self, now_s: u64) -> bool {
        now_s > self.ends_s
    }

    /// Less than a third of its life is left, and less than 30 days.
    fn is_near_its_end(self, now_s: u64) -> bool {
        let life_s = self.ends_s.saturating_sub(self.begins_s);
        let left_s = self.ends_s.saturating_sub(now_s);
        left_s < (life_s / 3).min(RENEWAL_DAYS * DAY_S)
    }
}

/// Since when something is seen as it is, by a clock that only goes forward.
#[derive(Debug)]
pub(super) struct Since<T> {
    seen: Option<(T, Duration)>,
}

// By hand: what is seen needs no default.
impl<T> Default for Since<T> {
    fn default() -> Self {
        Self { seen: None }
    }
}

impl<T: PartialEq> Since<T> {
    /// Takes what is seen at `now` (since any moment, the same at every call); for how long it has
    /// been seen like that without a break. What was not looked at between two calls counts as
    /// unchanged if it is the same at both.
    pub(super) fn observe(&mut self, now: Duration, what: Option<T>) -> Option<Duration> {
        let Some(what) = what else {
            self.seen = None;
            return None;
        };
        match &self.seen {
            Some((same, since)) if *same == what => Some(now.saturating_sub(*since)),
            _ => {
                self.seen = Some((what, now));
                Some(Duration::ZERO)
            }
        }
    }
}
