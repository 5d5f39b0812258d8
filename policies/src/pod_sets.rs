//! Kinds that consist of pod sets: lockkeeper's Workload and Kueue's. Rules for their pods are generic over both.

use crate::finding::Findings;
use crate::settings::Settings;
use crate::validated_kind::ValidatedKind;
use k8s_openapi::api::core::v1::{Container, PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use lockkeeper_api::field_path::FieldPath;

/// A kind that consists of pod sets.
pub(crate) trait PodSets: ValidatedKind {
    /// The pod sets, in the order of the object.
    fn pod_sets(&self) -> impl Iterator<Item = PodSetView<'_>>;

    /// Whether a feature gate of Kueue, on by default, enables a check for this kind. Always true for lockkeeper's
    /// own kinds.
    fn is_gate_enabled(_gate: &str, _settings: &Settings) -> bool {
        true
    }
}

/// The fields that the pod sets of both kinds have.
#[derive(Clone, Copy)]
pub(crate) struct PodSetView<'a> {
    /// The index in `spec.podSets`.
    pub(crate) position: usize,
    /// The name.
    pub(crate) name: &'a str,
    /// The minimum number of pods for a partial admission.
    pub(crate) min_count: Option<i32>,
    /// The pod template.
    pub(crate) template: &'a PodTemplateSpec,
}

impl PodSetView<'_> {
    /// The path of the pod set.
    pub(crate) fn path(&self) -> FieldPath {
        FieldPath::new("spec.podSets").item(self.position, self.name)
    }
}

/// A request or limit of one resource.
pub(crate) struct ResourceAmount<'a> {
    pod_set: PodSetView<'a>,
    owner: ResourceOwner<'a>,
    list: &'static str,
    /// The resource name.
    pub(crate) resource: &'a str,
    /// The amount in its original notation.
    pub(crate) quantity: &'a Quantity,
}

/// The owner of a request or limit.
#[derive(Clone, Copy)]
enum ResourceOwner<'a> {
    /// A container: the field (`initContainers` or `containers`), the index and the container.
    Container(&'static str, usize, &'a Container),
    /// The pod as a whole.
    Pod,
}

impl ResourceAmount<'_> {
    /// The path of the amount. Paths are built only for findings.
    pub(crate) fn path(&self) -> FieldPath {
        let spec = self.pod_set.path().field("template.spec");
        let holder = match self.owner {
            ResourceOwner::Container(field, position, container) => {
                spec.field(field).item(position, &container.name)
            }
            ResourceOwner::Pod => spec,
        };
        let list = holder.field("resources").field(self.list);
        list.key(self.resource)
    }
}

/// Visits every request and limit: those of init containers, containers and whole pods, until `out` is full.
pub(crate) fn visit_amounts<T: PodSets>(
    workload: &T,
    out: &mut Findings,
    mut visit: impl FnMut(&ResourceAmount<'_>, &mut Findings),
) {
    for pod_set in workload.pod_sets() {
        let Some(spec) = &pod_set.template.spec else {
            continue;
        };
        let init_containers = spec.init_containers.as_deref().unwrap_or_default();
        let lists = [
            ("initContainers", init_containers),
            ("containers", spec.containers.as_slice()),
        ];
        for (field, containers) in lists {
            for (position, container) in containers.iter().enumerate() {
                let holder = ResourceOwner::Container(field, position, container);
                let resources = container.resources.as_ref();
                visit_list(pod_set, holder, resources, out, &mut visit);
            }
        }
        let resources = spec.resources.as_ref();
        visit_list(pod_set, ResourceOwner::Pod, resources, out, &mut visit);
    }
}

fn visit_list(
    pod_set: PodSetView<'_>,
    holder: ResourceOwner<'_>,
    resources: Option<&ResourceRequirements>,
    out: &mut Findings,
    visit: &mut impl FnMut(&ResourceAmount<'_>, &mut Findings),
) {
    let Some(resources) = resources else { return };
    let lists = [
        ("requests", &resources.requests),
        ("limits", &resources.limits),
    ];
    for (list, amounts) in lists {
        for (resource, quantity) in amounts.iter().flatten() {
            // Further amounts could only be dropped, and a template may have many.
            if out.is_full() {
                return;
            }
            let amount = ResourceAmount {
                pod_set,
                owner: holder,
                list,
                resource,
                quantity,
            };
            visit(&amount, out);
        }
    }
}
