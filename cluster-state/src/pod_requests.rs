//! The requests of the pods of a template.

use crate::error::{ObjectError, ObjectProblem, RESOURCES_MAX, Subject};
use crate::pod_defaults::PodDefaults;
use crate::quantities::amount_from_quantity;
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::quantity::Quantity;
use lockkeeper_api::workload::PodSet;
use lockkeeper_preemption as core;
use lockkeeper_preemption::{Amount, FlavorId, NamesView, ResourceId, State};
use std::collections::BTreeMap;

/// Requests by resource.
type Requests = BTreeMap<String, Quantity>;

/// What the requests of pods depend on besides their templates.
#[derive(Clone, Copy, Debug)]
pub struct RequestRules<'a> {
    /// Requests of resources whose names have one of these prefixes are left out.
    pub excluded_prefixes: &'a [String],
    /// What the API server adds to new pods in the namespace of the workload.
    pub defaults: &'a PodDefaults,
}

const COUNT_HELP: &str = "give a count of zero or more";
const MIN_COUNT_HELP: &str = "give at least 0 and at most the count";

/// The pod set as a core value, with the total requests of its pods. Requests of resources without quota anywhere are
/// one request of [`ResourceId::UNKNOWN`].
pub(crate) fn pod_set(
    subject: Subject<'_>,
    state: &State,
    pod_set: &PodSet,
    at: usize,
    ineligible: Box<[FlavorId]>,
    rules: RequestRules<'_>,
) -> Result<core::PodSet, ObjectError> {
    let path = || FieldPath::new("spec.podSets").index(at);
    let bad = |field, count, accepted| {
        subject.error(
            &path().field(field),
            ObjectProblem::Count { count, accepted },
        )
    };
    let count = pod_set.count.unwrap_or(1);
    if count < 0 {
        return Err(bad("count", count, COUNT_HELP));
    }
    if let Some(least) = pod_set.min_count
        && !(0..=count).contains(&least)
    {
        return Err(bad("minCount", least, MIN_COUNT_HELP));
    }
    let base = FieldPath::new("spec.podSets").index(at);
    let base = base.field("template.spec");
    let reader = RequestReader {
        subject,
        base,
        defaults: rules.defaults,
    };
    let spec = pod_set.template.spec.as_ref();
    let each = spec.map(|it| reader.pod_total(it)).transpose()?;
    let each = each.unwrap_or_default();
    if each.len() > RESOURCES_MAX {
        let field = path().field("template.spec").field("containers");
        return Err(subject.error(&field, ObjectProblem::TooManyResources(each.len())));
    }
    let mut requests = Vec::new();
    let mut has_unknown = false;
    for (resource, quantity) in each {
        if is_excluded(&resource, rules.excluded_prefixes) {
            continue;
        }
        let field = || path().field("template.spec").field("containers");
        let each = amount_from_quantity(subject, &resource, quantity, field)?;
        // Rounded up per pod, as the scheduler does, and multiplied after that.
        let all = each.get().checked_mul(i64::from(count));
        let all =
            all.ok_or_else(|| subject.error(&path().field("count"), ObjectProblem::TooLarge))?;
        // Not interned: a tenant chooses the names of requests, and a stored name is never released.
        match NamesView::new(state).resource(&resource) {
            Some(id) => requests.push((id, Amount::new(all))),
            None => has_unknown |= all > 0,
        }
    }
    if has_unknown {
        requests.push((ResourceId::UNKNOWN, Amount::new(1)));
    }
    requests.sort_unstable();
    Ok(core::PodSet {
        name: pod_set.name().into(),
        count: count.into(),
        count_min: pod_set.min_count.map(i64::from),
        requests: requests.into(),
        ineligible,
        template_hash: 0,
    })
}

/// Whether requests of a resource do not count, since its name has one of these prefixes.
pub(crate) fn is_excluded(resource: &str, prefixes: &[String]) -> bool {
    prefixes.iter().any(|it| resource.starts_with(it.as_str()))
}

/// The names of the resources that the pods of a template request, without zeros; none if a request is invalid.
pub(crate) fn requested_resources(
    namespace: &str,
    template: &PodTemplateSpec,
    defaults: &PodDefaults,
) -> Vec<String> {
    let requests = template
        .spec
        .as_ref()
        .and_then(|spec| template_requests(namespace, spec, defaults).ok());
    requests.unwrap_or_default().into_keys().collect()
}

/// The requests of one pod by resource, without zeros.
///
/// # Errors
///
/// If a request is not a quantity, is negative, or is too large.
pub fn pod_requests(
    metadata: &ObjectMeta,
    spec: &PodSpec,
) -> Result<BTreeMap<String, Amount>, ObjectError> {
    // The API server has added the defaults already.
    requests_of(metadata, spec, &PodDefaults::NONE)
}

/// The requests of one pod of a template by resource, without zeros, with the defaults of its namespace.
///
/// # Errors
///
/// As [`pod_requests`].
pub(crate) fn template_requests(
    namespace: &str,
    spec: &PodSpec,
    defaults: &PodDefaults,
) -> Result<BTreeMap<String, Amount>, ObjectError> {
    let metadata = ObjectMeta {
        namespace: Some(namespace.to_owned()),
        ..ObjectMeta::default()
    };
    requests_of(&metadata, spec, defaults)
}

fn requests_of(
    metadata: &ObjectMeta,
    spec: &PodSpec,
    defaults: &PodDefaults,
) -> Result<BTreeMap<String, Amount>, ObjectError> {
    let subject = Subject::new("Pod", metadata);
    let base = FieldPath::new("spec");
    let reader = RequestReader {
        subject,
        base,
        defaults,
    };
    let mut requests = BTreeMap::new();
    for (resource, quantity) in reader.pod_total(spec)? {
        let field = || FieldPath::new("spec.containers");
        let each = amount_from_quantity(subject, &resource, quantity, field)?;
        if each > Amount::ZERO {
            requests.insert(resource, each);
        }
    }
    Ok(requests)
}

/// Reads the requests of a pod, or of the template of a pod set.
struct RequestReader<'a> {
    subject: Subject<'a>,
    /// The path of its spec.
    base: FieldPath,
    defaults: &'a PodDefaults,
}

impl RequestReader<'_> {
    /// The requests of one pod as the scheduler counts them: the sum of the containers and sidecars, or more if an init
    /// container needs more beside the sidecars started before it; pod-level requests replace this sum where they are
    /// set; plus the overhead.
    ///
    /// Source: Kubernetes `component-helpers/resource`, `PodRequests`.
    fn pod_total(&self, pod: &PodSpec) -> Result<Requests, ObjectError> {
        let mut running = Requests::new();
        for (at, container) in pod.containers.iter().enumerate() {
            let requests = self.container_requests("containers", at, container)?;
            self.add(&mut running, &requests)?;
        }
        let mut sidecars = Requests::new();
        let mut most = Requests::new();
        for (at, container) in pod.init_containers.iter().flatten().enumerate() {
            let requests = self.container_requests("initContainers", at, container)?;
            let mut now = sidecars.clone();
            self.add(&mut now, &requests)?;
            // A sidecar runs beside the containers and all later init containers.
            if container.restart_policy.as_deref() == Some("Always") {
                self.add(&mut running, &requests)?;
                sidecars.clone_from(&now);
            }
            // Init containers run one after the other: only the largest sum counts.
            raise_to(&mut most, now);
        }
        raise_to(&mut running, most);
        // Pod-level requests replace the sum of the containers, for the supported resources.
        if let Some(whole) = &pod.resources {
            let path = || self.path().field("resources");
            let (requests, limits) = self.requests_and_limits(whole, path)?;
            running.extend(
                requests
                    .into_iter()
                    .filter(|(name, _)| is_pod_level_resource(name)),
            );
            for (name, limit) in limits {
                if is_pod_level_resource(&name) {
                    running.entry(name).or_insert(limit);
                }
            }
        }
        let overhead = pod.overhead.as_ref().filter(|it| !it.is_empty());
        match (overhead, &pod.runtime_class_name) {
            (None, Some(class)) => {
                if let Some(overhead) = self.defaults.overhead(class) {
                    self.add(&mut running, overhead)?;
                }
            }
            (overhead, _) => {
                let overhead = self.parse_list(overhead, || self.path().field("overhead"))?;
                self.add(&mut running, &overhead)?;
            }
        }
        Ok(running)
    }

    fn path(&self) -> FieldPath {
        self.base.clone()
    }

    fn container_requests(
        &self,
        list: &'static str,
        at: usize,
        container: &Container,
    ) -> Result<Requests, ObjectError> {
        let mut requests = Requests::new();
        if let Some(given) = &container.resources {
            let path = || self.path().field(list).index(at).field("resources");
            let limits;
            (requests, limits) = self.requests_and_limits(given, path)?;
            // The API server defaults a missing request to the limit, and after that to the default of the namespace.
            for (name, limit) in limits {
                requests.entry(name).or_insert(limit);
            }
        }
        for (name, amount) in self.defaults.of_containers(self.subject.namespace()) {
            if !requests.contains_key(name) {
                requests.insert(name.clone(), *amount);
            }
        }
        Ok(requests)
    }

    fn requests_and_limits(
        &self,
        given: &ResourceRequirements,
        path: impl Fn() -> FieldPath,
    ) -> Result<(Requests, Requests), ObjectError> {
        let list = |list, field| self.parse_list(list, || path().field(field));
        let requests = list(given.requests.as_ref(), "requests")?;
        Ok((requests, list(given.limits.as_ref(), "limits")?))
    }

    fn parse_list(
        &self,
        list: Option<&BTreeMap<String, Text>>,
        path: impl Fn() -> FieldPath,
    ) -> Result<Requests, ObjectError> {
        let mut out = Requests::new();
        for (name, text) in list.into_iter().flatten() {
            let error = |problem| self.subject.error(&path().key(name.as_str()), problem);
            let quantity: Quantity = text
                .0
                .parse()
                .map_err(|it| error(ObjectProblem::Quantity(it)))?;
            if quantity.is_negative() {
                return Err(error(ObjectProblem::Negative(quantity)));
            }
            out.insert(name.clone(), quantity);
        }
        Ok(out)
    }

    fn add(&self, sums: &mut Requests, requests: &Requests) -> Result<(), ObjectError> {
        for (name, quantity) in requests {
            let sum = sums.entry(name.clone()).or_insert(Quantity::ZERO);
            *sum = sum.checked_add(*quantity).ok_or_else(|| {
                let field = self.path().field("containers");
                self.subject.error(&field, ObjectProblem::TooLarge)
            })?;
        }
        Ok(())
    }
}

/// Whether pod-level requests support the resource.
fn is_pod_level_resource(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

fn raise_to(sums: &mut Requests, least: Requests) {
    for (name, quantity) in least {
        let sum = sums.entry(name).or_insert(quantity);
        *sum = quantity.max(*sum);
    }
}
