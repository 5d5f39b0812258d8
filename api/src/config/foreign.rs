//! Kinds of other projects that the webhook validates besides lockkeeper's own.

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::str::FromStr;

/// The kinds of another project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ForeignKinds {
    /// Kueue's (`kueue.x-k8s.io`): ClusterQueue, Cohort, ResourceFlavor, LocalQueue and Workload.
    Kueue,
    /// Koordinator's (`scheduling.sigs.k8s.io`): ElasticQuota.
    Koordinator,
}

impl ForeignKinds {
    /// All projects.
    pub const ALL: [Self; 2] = [Self::Kueue, Self::Koordinator];

    /// The name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kueue => "kueue",
            Self::Koordinator => "koordinator",
        }
    }
}

impl fmt::Display for ForeignKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name of an unknown project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKinds(String);

impl fmt::Display for UnknownKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = ForeignKinds::ALL.map(ForeignKinds::as_str).join(", ");
        write!(f, "unknown project {:?}; give one of {known}", self.0)
    }
}

impl std::error::Error for UnknownKinds {}

impl FromStr for ForeignKinds {
    type Err = UnknownKinds;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|it| it.as_str() == text)
            .ok_or_else(|| UnknownKinds(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for ForeignKinds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_kinds_round_trip_and_unknown_name_is_rejected() {
        for kinds in ForeignKinds::ALL {
            assert_eq!(kinds.as_str().parse(), Ok(kinds));
            let written = serde_json::to_value(kinds).unwrap();
            assert_eq!(written, kinds.as_str());
        }
        for unknown in ["", "Kueue", "yunikorn"] {
            let error = unknown.parse::<ForeignKinds>().unwrap_err().to_string();
            let known = "give one of kueue, koordinator";
            assert_eq!(error, format!("unknown project {unknown:?}; {known}"));
        }
    }
}
