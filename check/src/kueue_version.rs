//! `--kueue-version`: the known preemption bugs of a release of Kueue.
//!
//! Source: Kueue `CHANGELOG/CHANGELOG-0.*.md`.

use lockkeeper_api::config::Config;
use lockkeeper_preemption::{Algorithm, KueueBugs, Options};
use std::str::FromStr;
use thiserror::Error;

/// The first supported minor version: it introduced `borrowWithinCohort` and the gate for the order of entries.
const MINOR_MIN: u64 = 6;

/// The current minor version.
const MINOR_MAX: u64 = 20;

/// The minor version that introduced fair sharing.
const FAIR_SHARING_MINOR_MIN: u64 = 7;

/// Kueue's gate for the order of entries by priority, which is on by default.
const PRIORITY_SORTING_GATE: &str = "PrioritySortingWithinCohort";

/// A release of Kueue with known bugs, from 0.6 to 0.20.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KueueVersion {
    minor: u64,
    /// `None` is the last patch of the minor version.
    patch: Option<u64>,
}

/// An error of parsing a version.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum VersionError {
    /// The text is not a version.
    #[error("not a version; write it as 0.10 or v0.10.2")]
    Malformed,
    /// The bugs of this release have not been studied.
    #[error("unsupported version; use one from 0.6 to 0.20")]
    Unknown,
    /// It is not known which patch of 0.9 has the fix for issue 3779.
    #[error("of 0.9, only 0.9.0 and 0.9.1 are supported; use one of these, or 0.10 or later")]
    UnknownPatch,
}

impl FromStr for KueueVersion {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let parts: Result<Vec<u64>, _> = text.split('.').map(str::parse).collect();
        let (minor, patch) = match parts.as_deref() {
            Ok([0, minor]) => (*minor, None),
            Ok([0, minor, patch]) => (*minor, Some(*patch)),
            Ok([_, _] | [_, _, _]) => return Err(VersionError::Unknown),
            _ => return Err(VersionError::Malformed),
        };
        match (minor, patch) {
            // Of 0.9 it is unknown which patch has the fix for issue 3779: only two are accepted.
            (MINOR_MIN..=MINOR_MAX, _) if minor != 9 => Ok(Self { minor, patch }),
            (9, Some(0 | 1)) => Ok(Self { minor, patch }),
            (9, _) => Err(VersionError::UnknownPatch),
            _ => Err(VersionError::Unknown),
        }
    }
}

impl KueueVersion {
    /// Whether this release is before a patch of its minor version.
    fn is_before(self, patch: u64) -> bool {
        self.patch.is_some_and(|it| it < patch)
    }

    /// Sets the options for Kueue's queues to the behaviour of this release.
    pub(crate) fn apply(self, config: &Config, options: &mut Options) {
        if self.minor < FAIR_SHARING_MINOR_MIN {
            options.algorithm = Algorithm::Classical;
        }
        let gates = &config.rules.feature_gates;
        // The bug needs the gate off: entries are then ordered by creation time.
        let is_by_time = gates.get(PRIORITY_SORTING_GATE) == Some(&false);
        options.kueue_bugs = KueueBugs {
            ignores_priority_in_cycle: is_by_time && self.has_2821(),
            borrows_under_fair_sharing: self.has_3779(),
            forgets_preemptors: self.has_6947(),
        };
    }

    /// Fixed in 0.9.0 (pull request 2807) and 0.8.1 (2831).
    fn has_2821(self) -> bool {
        match self.minor {
            8 => self.is_before(1),
            minor => minor < 8,
        }
    }

    /// Fixed in 0.11.0 and 0.10.3 (pull request 4165), and reverted in 0.10.4 (4819).
    fn has_3779(self) -> bool {
        match self.minor {
            10 => self.patch != Some(3),
            minor => minor < 10,
        }
    }

    /// Fixed in 0.15.0 (pull request 7157), 0.14.1 (7197) and 0.13.6 (7202).
    fn has_6947(self) -> bool {
        match self.minor {
            13 => self.is_before(6),
            14 => self.is_before(1),
            minor => minor < 13,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KueueVersion, VersionError};
    use lockkeeper_api::config::Config;
    use lockkeeper_preemption::{Algorithm, FairStrategy, Options};

    #[test]
    fn kueue_version_selects_its_bugs() {
        // Issues 2821 (with the gate off), 3779 and 6947.
        for (version, expected) in [
            ("0.6", [true, true, true]),
            ("v0.7.2", [true, true, true]),
            ("0.8.0", [true, true, true]),
            ("0.8.1", [false, true, true]),
            ("0.8", [false, true, true]),
            ("0.9.1", [false, true, true]),
            ("0.10.2", [false, true, true]),
            ("0.10.3", [false, false, true]),
            ("0.10.4", [false, true, true]),
            ("v0.10", [false, true, true]),
            ("0.11.0", [false, false, true]),
            ("0.13.5", [false, false, true]),
            ("0.13.6", [false, false, false]),
            ("0.14.0", [false, false, true]),
            ("0.14", [false, false, false]),
            ("0.20.1", [false, false, false]),
        ] {
            for is_off in [true, false] {
                let mut config = Config::default();
                if is_off {
                    let gates = &mut config.rules.feature_gates;
                    gates.insert(super::PRIORITY_SORTING_GATE.to_owned(), false);
                }
                let mut options = Options {
                    algorithm: Algorithm::FairSharing(vec![FairStrategy::LessThanInitialShare]),
                    ..Options::default()
                };
                version
                    .parse::<KueueVersion>()
                    .unwrap()
                    .apply(&config, &mut options);
                let bugs = options.kueue_bugs;
                let actual = [
                    bugs.ignores_priority_in_cycle,
                    bugs.borrows_under_fair_sharing,
                    bugs.forgets_preemptors,
                ];
                assert_eq!(
                    actual,
                    [expected[0] && is_off, expected[1], expected[2]],
                    "{version}"
                );
                let is_classical = options.algorithm == Algorithm::Classical;
                assert_eq!(is_classical, version == "0.6", "{version}");
            }
        }
    }

    #[test]
    fn kueue_version_unknown_is_rejected() {
        use VersionError::{Malformed, Unknown, UnknownPatch};
        for (text, expected) in [
            ("", Malformed),
            ("latest", Malformed),
            ("0", Malformed),
            ("0.10.2.1", Malformed),
            ("0.-1", Malformed),
            ("0.5", Unknown),
            ("0.21", Unknown),
            ("1.0", Unknown),
            ("0.9", UnknownPatch),
            ("0.9.2", UnknownPatch),
        ] {
            assert_eq!(text.parse::<KueueVersion>(), Err(expected), "{text}");
        }
    }
}
