//! What Workloads and PodGroups have in common.

use crate::finding::Findings;
use crate::guarded::Guarded;
use crate::names::Faults;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::{Group, PodGroup, Workload};
use std::collections::BTreeSet;

/// The most templates of a Workload.
pub(super) const TEMPLATES_MAX: usize = 8;

/// A kind that describes groups of pods.
pub(super) trait Grouped: Guarded {
    /// Whether a group has a disruption mode by default.
    const HAS_DISRUPTION_MODE: bool;

    /// The groups, and where they stand. None when there are too many: then that is all there is to say.
    fn groups(&self) -> Vec<(FieldPath, &Group)>;
}

impl Grouped for Workload {
    const HAS_DISRUPTION_MODE: bool = false;

    fn groups(&self) -> Vec<(FieldPath, &Group)> {
        let templates = &self.spec.pod_group_templates;
        if templates.len() > TEMPLATES_MAX {
            return Vec::new();
        }
        let templates = templates.iter().enumerate();
        templates
            .map(|(position, template)| (template_path(position, &template.name), &template.group))
            .collect()
    }
}

impl Grouped for PodGroup {
    const HAS_DISRUPTION_MODE: bool = true;

    fn groups(&self) -> Vec<(FieldPath, &Group)> {
        vec![(FieldPath::new("spec"), &self.spec.group)]
    }
}

/// Where a template stands.
pub(super) fn template_path(position: usize, name: &str) -> FieldPath {
    FieldPath::new("spec.podGroupTemplates").item(position, name)
}

/// Tells everything that is wrong with a name.
pub(super) fn named(field: &FieldPath, value: &str, faults: Faults, out: &mut Findings) {
    for fault in faults {
        out.invalid(field.clone(), value, fault);
    }
}

/// Tells that a name is missing, or everything that is wrong with it.
pub(super) fn required_name(
    field: &FieldPath,
    value: &str,
    faults: fn(&str) -> Faults,
    out: &mut Findings,
) {
    if value.is_empty() {
        out.required(field.clone(), "give a name");
    } else {
        named(field, value, faults(value), out);
    }
}

/// The positions of items whose name has stood in the list before.
pub(super) fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(usize, &'a str)> {
    let mut seen = BTreeSet::new();
    let names = names.enumerate();
    names.filter(|(_, name)| !seen.insert(*name)).collect()
}
