//! The recorded verdicts of crdify.

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrdifyRecord {
    pub verdicts: Vec<CrdifyVerdict>,
    /// The reasons for differences, by their key.
    pub why: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrdifyVerdict {
    pub case: String,
    pub crdify: Crdify,
    pub why: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Crdify {
    Passes,
    Fails,
}

impl Crdify {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Fails => "fails",
        }
    }
}

pub fn read_record() -> CrdifyRecord {
    serde_saphyr::from_str(include_str!("../crdify/verdicts.yaml")).unwrap()
}
