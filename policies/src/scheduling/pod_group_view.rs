//! The common fields of Workloads and PodGroups, in both versions.

use super::feature_gates::{COMPOSITE, PREEMPTION, PREEMPTION_POLICY, TOPOLOGY, is_enabled};
use crate::finding::Findings;
use crate::name_validation::NameErrors;
use crate::rule::Context;
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::v1beta1::{self, CompositePodGroupTemplate, Templates};
use lockkeeper_api::foreign::scheduling::{
    ControllerReference, DisruptionMode, Group, PodGroup, ResourceClaim, SchedulingConstraints,
    Workload,
};
use std::collections::BTreeSet;

/// The most templates in a list.
pub(super) const TEMPLATES_MAX: usize = 8;

/// A kind that describes groups of pods.
pub(super) trait PodGroupFields: ValidatedKind {
    /// Whether the groups are templates, some of whose defaults are set only later, such as the disruption mode.
    const ARE_TEMPLATES: bool;

    /// The feature gate of the disruption mode and the priority; `None` where they have none.
    const PREEMPTION_GATE: Option<&'static str>;

    /// The form of a disruption mode.
    const DISRUPTION_MODE_FORMAT: DisruptionModeFormat;

    /// The fields of a group that need a feature gate.
    const GATED: &'static [GatedField];

    /// The groups, without lists that are too long: for these only the length is reported.
    fn groups(&self) -> Vec<PodGroupView<'_>>;

    /// A field outside of the groups that is set and needs a feature gate.
    fn gated_of_spec(&self) -> Option<(FieldPath, &'static str)> {
        None
    }

    /// The fields that are set and need a feature gate, with the gate.
    fn gated(&self) -> Vec<(FieldPath, &'static str)> {
        let mut out: Vec<_> = self.gated_of_spec().into_iter().collect();
        for group in self.groups() {
            let given = Self::GATED
                .iter()
                .filter(|(_, is_given, _)| is_given(&group));
            out.extend(given.map(|(name, _, gate)| (group.path.clone().field(name), *gate)));
        }
        out
    }

    /// Whether disruption modes and priorities are checked.
    fn has_priorities(context: &Context<'_>) -> bool {
        Self::PREEMPTION_GATE.is_none_or(|gate| is_enabled(gate, context))
    }
}

/// A Workload of either version.
pub(super) trait HasController {
    /// The object that controls the Workload.
    fn controller(&self) -> Option<&ControllerReference>;
}

/// The form of a disruption mode.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DisruptionModeFormat {
    /// As `Pod` or `PodGroup`.
    Text,
    /// As an object with one of `single` and `all`.
    OneOf,
}

/// A group, of pods or of such groups.
pub(super) struct PodGroupView<'a> {
    /// The path of the group.
    pub(super) path: FieldPath,
    /// Whether the policy is `basic`: members are scheduled one by one.
    pub(super) is_basic: bool,
    /// The name and value of the minimum of a gang.
    pub(super) gang: Option<(&'static str, i32)>,
    /// The scheduling constraints.
    pub(super) constraints: Option<&'a SchedulingConstraints>,
    /// The claims that its pods share.
    pub(super) resource_claims: &'a [ResourceClaim],
    /// The disruption mode.
    pub(super) disruption_mode: Option<&'a DisruptionMode>,
    /// Its PriorityClass; empty for none.
    pub(super) priority_class: &'a str,
    /// Its priority.
    pub(super) priority: Option<i32>,
    /// The preemption policy.
    pub(super) preemption_policy: Option<&'a str>,
}

impl<'a> PodGroupView<'a> {
    fn from_group(path: FieldPath, group: &'a Group) -> Self {
        let policy = &group.scheduling_policy;
        Self {
            path,
            is_basic: policy.basic.is_some(),
            gang: policy.gang.as_ref().map(|it| ("minCount", it.min_count)),
            constraints: group.scheduling_constraints.as_ref(),
            resource_claims: &group.resource_claims,
            disruption_mode: group.disruption_mode.as_ref(),
            priority_class: &group.priority_class_name,
            priority: group.priority,
            preemption_policy: None,
        }
    }

    /// A group of pods of the later version.
    pub(super) fn from_v1beta1(path: FieldPath, group: &'a v1beta1::Group) -> Self {
        Self {
            preemption_policy: group.preemption_policy.as_deref(),
            ..Self::from_group(path, &group.base)
        }
    }

    /// A group of groups.
    pub(super) fn from_composite(path: FieldPath, group: &'a CompositePodGroupTemplate) -> Self {
        let policy = &group.scheduling_policy;
        let gang = policy.gang.as_ref();
        Self {
            path,
            is_basic: policy.basic.is_some(),
            gang: gang.map(|it| ("minGroupCount", it.min_group_count)),
            constraints: group.scheduling_constraints.as_ref(),
            resource_claims: &[],
            disruption_mode: group.disruption_mode.as_ref(),
            priority_class: &group.priority_class_name,
            priority: group.priority,
            preemption_policy: group.preemption_policy.as_deref(),
        }
    }
}

/// A field of a group that needs a feature gate: its name, whether it is given, and the gate.
pub(super) type GatedField = (&'static str, fn(&PodGroupView<'_>) -> bool, &'static str);

const CONSTRAINTS: GatedField = (
    "schedulingConstraints",
    |it| it.constraints.is_some(),
    TOPOLOGY,
);

const GATED_V1ALPHA2: &[GatedField] = &[
    CONSTRAINTS,
    (
        "disruptionMode",
        |it| it.disruption_mode.is_some(),
        PREEMPTION,
    ),
    (
        "priorityClassName",
        |it| !it.priority_class.is_empty(),
        PREEMPTION,
    ),
    ("priority", |it| it.priority.is_some(), PREEMPTION),
];

const GATED_V1BETA1: &[GatedField] = &[
    CONSTRAINTS,
    (
        "preemptionPolicy",
        |it| it.preemption_policy.is_some(),
        PREEMPTION_POLICY,
    ),
];

impl PodGroupFields for Workload {
    const ARE_TEMPLATES: bool = true;
    const PREEMPTION_GATE: Option<&'static str> = Some(PREEMPTION);
    const DISRUPTION_MODE_FORMAT: DisruptionModeFormat = DisruptionModeFormat::Text;
    const GATED: &'static [GatedField] = GATED_V1ALPHA2;

    fn groups(&self) -> Vec<PodGroupView<'_>> {
        let templates = &self.spec.pod_group_templates;
        // As in the API server, a list that is too long has one finding, for its length.
        if templates.len() > TEMPLATES_MAX {
            return Vec::new();
        }
        let spec = FieldPath::new("spec");
        let templates = templates.iter().enumerate();
        templates
            .map(|(at, it)| PodGroupView::from_group(template_path(&spec, at, &it.name), &it.group))
            .collect()
    }
}

impl PodGroupFields for PodGroup {
    const ARE_TEMPLATES: bool = false;
    const PREEMPTION_GATE: Option<&'static str> = Some(PREEMPTION);
    const DISRUPTION_MODE_FORMAT: DisruptionModeFormat = DisruptionModeFormat::Text;
    const GATED: &'static [GatedField] = GATED_V1ALPHA2;

    fn groups(&self) -> Vec<PodGroupView<'_>> {
        vec![PodGroupView::from_group(
            FieldPath::new("spec"),
            &self.spec.group,
        )]
    }
}

impl PodGroupFields for v1beta1::Workload {
    const ARE_TEMPLATES: bool = true;
    const PREEMPTION_GATE: Option<&'static str> = None;
    const DISRUPTION_MODE_FORMAT: DisruptionModeFormat = DisruptionModeFormat::OneOf;
    const GATED: &'static [GatedField] = GATED_V1BETA1;

    fn groups(&self) -> Vec<PodGroupView<'_>> {
        let mut out = Vec::new();
        visit_template_lists(&self.spec.templates, &mut |above, templates| {
            let pods = templates.pod_group_templates.iter().enumerate();
            if pods.len() <= TEMPLATES_MAX {
                out.extend(pods.map(|(at, it)| {
                    PodGroupView::from_v1beta1(template_path(above, at, &it.name), &it.group)
                }));
            }
            let groups = templates.composite_pod_group_templates.iter().enumerate();
            if groups.len() <= TEMPLATES_MAX {
                out.extend(groups.map(|(at, it)| {
                    PodGroupView::from_composite(composite_path(above, at, &it.name), it)
                }));
            }
        });
        out
    }

    fn gated_of_spec(&self) -> Option<(FieldPath, &'static str)> {
        let composite = &self.spec.templates.composite_pod_group_templates;
        let field = FieldPath::new("spec.compositePodGroupTemplates");
        (!composite.is_empty()).then_some((field, COMPOSITE))
    }
}

impl PodGroupFields for v1beta1::PodGroup {
    const ARE_TEMPLATES: bool = false;
    const PREEMPTION_GATE: Option<&'static str> = None;
    const DISRUPTION_MODE_FORMAT: DisruptionModeFormat = DisruptionModeFormat::OneOf;
    const GATED: &'static [GatedField] = GATED_V1BETA1;

    fn groups(&self) -> Vec<PodGroupView<'_>> {
        vec![PodGroupView::from_v1beta1(
            FieldPath::new("spec"),
            &self.spec.group,
        )]
    }

    fn gated_of_spec(&self) -> Option<(FieldPath, &'static str)> {
        let parent = self.spec.parent_composite_pod_group_name.as_ref();
        let field = FieldPath::new("spec.parentCompositePodGroupName");
        parent.map(|_| (field, COMPOSITE))
    }
}

impl HasController for Workload {
    fn controller(&self) -> Option<&ControllerReference> {
        self.spec.controller_ref.as_ref()
    }
}

impl HasController for v1beta1::Workload {
    fn controller(&self) -> Option<&ControllerReference> {
        self.spec.controller_ref.as_ref()
    }
}

/// Visits the templates of a Workload, and those below each composite one, with their paths. Templates below a list
/// that is too long are skipped.
pub(super) fn visit_template_lists<'a>(
    templates: &'a Templates,
    visit: &mut dyn FnMut(&FieldPath, &'a Templates),
) {
    visit_composites(&FieldPath::new("spec"), templates, visit);
}

fn visit_composites<'a>(
    above: &FieldPath,
    templates: &'a Templates,
    visit: &mut dyn FnMut(&FieldPath, &'a Templates),
) {
    visit(above, templates);
    let composite = &templates.composite_pod_group_templates;
    if composite.len() > TEMPLATES_MAX {
        return;
    }
    for (at, template) in composite.iter().enumerate() {
        visit_composites(
            &composite_path(above, at, &template.name),
            &template.templates,
            visit,
        );
    }
}

/// The path of a template.
pub(super) fn template_path(above: &FieldPath, position: usize, name: &str) -> FieldPath {
    let list = above.clone().field("podGroupTemplates");
    list.item(position, name)
}

/// The path of a composite template.
pub(super) fn composite_path(above: &FieldPath, position: usize, name: &str) -> FieldPath {
    let list = above.clone().field("compositePodGroupTemplates");
    list.item(position, name)
}

/// Reports all faults of a name.
pub(super) fn check_name(field: &FieldPath, value: &str, faults: NameErrors, out: &mut Findings) {
    for fault in faults {
        out.invalid(field.clone(), value, fault);
    }
}

/// Reports a missing name, or all its faults.
pub(super) fn required_name(
    field: &FieldPath,
    value: &str,
    faults: fn(&str) -> NameErrors,
    out: &mut Findings,
) {
    if value.is_empty() {
        out.required(field.clone(), "give a name");
    } else {
        check_name(field, value, faults(value), out);
    }
}

/// The positions of items whose name is in the list already.
pub(super) fn duplicates<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(usize, &'a str)> {
    let mut seen = BTreeSet::new();
    let names = names.enumerate();
    names.filter(|(_, name)| !seen.insert(*name)).collect()
}
