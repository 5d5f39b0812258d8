//! Decodes labels and label selectors.

use lockkeeper_preemption::gang::GangCluster;
use lockkeeper_preemption::placement::{LabelCondition, Labels, Requirement, Selector};
use std::collections::BTreeMap;

/// A requirement of a label selector; `None` if its operator is unknown.
pub(crate) fn condition(
    gang_cluster: &mut GangCluster,
    operator: &str,
    values: &[String],
) -> Option<LabelCondition> {
    let mut words = || values.iter().map(|it| gang_cluster.symbol(it)).collect();
    match operator {
        "In" => Some(LabelCondition::In(words())),
        "NotIn" => Some(LabelCondition::NotIn(words())),
        "Exists" => Some(LabelCondition::Exists),
        "DoesNotExist" => Some(LabelCondition::DoesNotExist),
        _ => None,
    }
}

/// The requirement that a label has this value.
pub(crate) fn has_label(gang_cluster: &mut GangCluster, key: &str, value: &str) -> Requirement {
    Requirement {
        key: gang_cluster.symbol(key),
        condition: LabelCondition::In(Box::new([gang_cluster.symbol(value)])),
    }
}

/// A label selector, from its labels and from its requirements with key, operator and values.
///
/// # Errors
///
/// The first unknown operator.
pub fn label_selector<'a>(
    gang_cluster: &mut GangCluster,
    labels: impl IntoIterator<Item = (&'a String, &'a String)>,
    expressions: impl IntoIterator<Item = (&'a str, &'a str, &'a [String])>,
) -> Result<Selector, &'a str> {
    let labels = labels.into_iter();
    let mut all: Vec<Requirement> = labels
        .map(|(key, value)| has_label(gang_cluster, key, value))
        .collect();
    for (key, operator, values) in expressions {
        all.push(Requirement {
            key: gang_cluster.symbol(key),
            condition: condition(gang_cluster, operator, values).ok_or(operator)?,
        });
    }
    Ok(Selector(all.into()))
}

/// The labels of an object.
#[must_use]
pub fn labels(gang_cluster: &mut GangCluster, labels: &BTreeMap<String, String>) -> Labels {
    let pairs = labels.iter();
    Labels::from_pairs(
        pairs.map(|(key, value)| (gang_cluster.symbol(key), gang_cluster.symbol(value))),
    )
}
