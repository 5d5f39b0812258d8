//! Parses cases: names become ids, and invalid values are rejected with their field path.

use super::case::{Amounts, Quota};
use crate::error::ScenarioError;
use crate::validate::parse_amount;
use lockkeeper_cluster_state::decision_text::format_amount;
use lockkeeper_preemption::job::{JobCluster, QuotaId, QuotaLimits, QuotaTree, ResourceList};
use lockkeeper_preemption::placement::Cluster;
use lockkeeper_preemption::{Amount, ResourceId};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Why a case cannot be decided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// `kind` is not supported.
    #[error("kind: unknown kind {kind}")]
    Kind {
        /// The value of `kind`, as JSON.
        kind: String,
    },
    /// A field is missing, unknown or of the wrong type.
    #[error("{0}")]
    Shape(String),
    /// An amount is negative or too large.
    #[error(transparent)]
    Amount(#[from] ScenarioError),
    /// A name is given twice.
    #[error("{at}: duplicate name {name:?}; use unique names")]
    Duplicate {
        /// The field path.
        at: String,
        /// The name.
        name: String,
    },
    /// A reference names no existing object.
    #[error("{at}: {name:?} does not exist; use one of {known}")]
    Unknown {
        /// The field path.
        at: String,
        /// The name.
        name: String,
        /// The existing names.
        known: String,
    },
    /// A quota is its own ancestor.
    #[error("{at}: the quota {name:?} is its own ancestor; remove one parent of the cycle")]
    QuotaCycle {
        /// The field path.
        at: String,
        /// A quota on the cycle.
        name: String,
    },
}

pub(super) fn parse_case<T: DeserializeOwned>(fields: &Value) -> Result<T, CaseError> {
    T::deserialize(fields).map_err(|e| CaseError::Shape(e.to_string()))
}

/// Keys of resources that include the unit.
const UNIT_KEYS: [(&str, &str); 2] = [("cpu", "cpu_milli"), ("memory", "memory_bytes")];

/// Parses amounts, and rejects sums that overflow.
#[derive(Debug, Default)]
pub(super) struct NameResolver {
    /// Interns the names; has hosts and pods only in cases with nodes.
    pub(super) job_cluster: JobCluster,
    totals: BTreeMap<ResourceId, i128>,
}

impl NameResolver {
    pub(super) fn new(job_cluster: JobCluster) -> Self {
        let totals = BTreeMap::new();
        Self {
            job_cluster,
            totals,
        }
    }

    /// Parses used or requested amounts. Errors if the sum of a resource over all calls is too large.
    pub(super) fn resources(
        &mut self,
        amounts: &Amounts,
        at: &str,
    ) -> Result<ResourceList, CaseError> {
        let resources = self.limit(amounts, at)?;
        for (resource, amount) in resources.iter() {
            let sum = self.totals.entry(resource).or_default();
            *sum = sum.saturating_add(i128::from(amount.get()));
            if *sum >= i128::from(i64::MAX) {
                let at = format!("{at}.{}", self.name(resource));
                return Err(ScenarioError::TooLarge { at }.into());
            }
        }
        Ok(resources)
    }

    /// Parses the amounts of a limit; `i64::MAX` is unlimited.
    pub(super) fn limit(&mut self, amounts: &Amounts, at: &str) -> Result<ResourceList, CaseError> {
        let mut pairs = Vec::with_capacity(amounts.len());
        for (written, amount) in amounts {
            let known = UNIT_KEYS.iter().find(|(_, unit)| unit == written);
            let name = known.map_or(written.as_str(), |(name, _)| *name);
            let amount = parse_amount(*amount, name, || format!("{at}.{written}"))?;
            let resource = self.job_cluster.resource(name);
            if pairs.iter().any(|(it, _)| *it == resource) {
                return Err(CaseError::Duplicate {
                    at: format!("{at}.{written}"),
                    name: name.to_owned(),
                });
            }
            pairs.push((resource, Amount::new(amount)));
        }
        Ok(ResourceList::from_pairs(pairs))
    }

    pub(super) fn name(&self, resource: ResourceId) -> &str {
        self.job_cluster.cluster().resource_name(resource)
    }

    /// Amounts in the form of the cases.
    pub(super) fn to_json(&self, amounts: &ResourceList) -> Value {
        to_json(self.job_cluster.cluster(), amounts)
    }

    /// Amounts as text.
    pub(super) fn to_text(&self, amounts: &ResourceList) -> String {
        to_text(self.job_cluster.cluster(), amounts)
    }
}

pub(super) fn to_json(names: &Cluster, amounts: &ResourceList) -> Value {
    let pairs = amounts.iter().map(|(resource, amount)| {
        let name = names.resource_name(resource);
        let unit = UNIT_KEYS.iter().find(|(plain, _)| *plain == name);
        let name = unit.map_or(name, |(_, unit)| *unit);
        (name.to_owned(), Value::from(amount.get()))
    });
    Value::Object(pairs.collect::<Map<_, _>>())
}

pub(super) fn to_text(names: &Cluster, amounts: &ResourceList) -> String {
    let mut all: Vec<(&str, Amount)> = amounts
        .iter()
        .map(|(it, amount)| (names.resource_name(it), amount))
        .collect();
    all.sort_unstable();
    let all: Vec<String> = all
        .into_iter()
        .map(|(name, amount)| format_amount(name, amount))
        .collect();
    if all.is_empty() {
        return "nothing".to_owned();
    }
    all.join(", ")
}

/// Quotas by name.
#[derive(Debug, Default)]
pub(super) struct QuotaIds {
    ids: BTreeMap<String, QuotaId>,
}

impl QuotaIds {
    /// All quotas, those above first. `add` puts one into the tree.
    pub(super) fn from_quotas(
        own: &Quota,
        others: &[Quota],
        mut add: impl FnMut(Option<QuotaId>, &Quota, &str) -> Result<QuotaId, CaseError>,
    ) -> Result<Self, CaseError> {
        let places = (0..others.len()).map(|at| format!("quotas[{at}]"));
        let places = std::iter::once("quota".to_owned()).chain(places);
        let mut left: Vec<(String, &Quota)> =
            places.zip(std::iter::once(own).chain(others)).collect();
        let mut names = std::collections::BTreeSet::new();
        for (at, quota) in &left {
            if !names.insert(quota.name.as_str()) {
                return Err(CaseError::Duplicate {
                    at: format!("{at}.name"),
                    name: quota.name.clone(),
                });
            }
        }
        let mut quotas = Self::default();
        while !left.is_empty() {
            let before = left.len();
            let mut later = Vec::new();
            for (at, quota) in left {
                let mut parent = None;
                if let Some(name) = &quota.parent {
                    if !names.contains(name.as_str()) {
                        return Err(unknown_name(&format!("{at}.parent"), name, &names));
                    }
                    parent = quotas.ids.get(name).copied();
                    if parent.is_none() {
                        later.push((at, quota));
                        continue;
                    }
                }
                let id = add(parent, quota, &at)?;
                quotas.ids.insert(quota.name.clone(), id);
            }
            if let Some((at, quota)) = later.first().filter(|_| later.len() == before) {
                return Err(CaseError::QuotaCycle {
                    at: format!("{at}.parent"),
                    name: quota.name.clone(),
                });
            }
            left = later;
        }
        Ok(quotas)
    }

    /// A quota by its name. One that is only referenced has no limits.
    pub(super) fn id(&mut self, name: &str, add: impl FnOnce() -> QuotaId) -> QuotaId {
        *self.ids.entry(name.to_owned()).or_insert_with(add)
    }

    pub(super) fn name(&self, id: QuotaId) -> &str {
        let mut all = self.ids.iter();
        all.find(|(_, it)| **it == id).map_or("", |(name, _)| name)
    }
}

/// A tree of quotas, and their names.
pub(super) fn quota_tree(
    resolver: &mut NameResolver,
    own: &Quota,
    others: &[Quota],
) -> Result<(QuotaTree, QuotaIds), CaseError> {
    let mut tree = QuotaTree::default();
    let quotas = QuotaIds::from_quotas(own, others, |parent, quota, at| {
        let limits = quota_limits(resolver, quota, at)?;
        Ok(tree.add(parent, limits))
    })?;
    Ok((tree, quotas))
}

pub(super) fn quota_limits(
    resolver: &mut NameResolver,
    quota: &Quota,
    at: &str,
) -> Result<QuotaLimits, CaseError> {
    Ok(QuotaLimits {
        min: resolver.limit(&quota.min, &format!("{at}.min"))?,
        max: resolver.limit(&quota.max, &format!("{at}.max"))?,
    })
}

pub(super) fn unknown_name<'a>(
    at: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a &'a str>,
) -> CaseError {
    let known: Vec<&str> = known.into_iter().copied().collect();
    CaseError::Unknown {
        at: at.to_owned(),
        name: name.to_owned(),
        known: known.join(", "),
    }
}

/// Merges the fields of two objects.
pub(super) fn merge_fields(mut object: Value, more: Value) -> Value {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}
