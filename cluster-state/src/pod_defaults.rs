//! The requests that the API server adds to new pods: the defaults of `LimitRange`s, and the overhead of `RuntimeClass`es.
//!
//! The pod templates of jobs do not have them, and the pods do: without them a job would run with less quota than its pods use.
//! Sources: Kubernetes, `SetDefaults_LimitRangeItem` in `pkg/apis/core/v1/defaults.go`, and the admission plugins `limitranger` and
//! `runtimeclass`.

use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem};
use k8s_openapi::api::node::v1::{Overhead, RuntimeClass};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::quantity::Quantity;
use std::collections::BTreeMap;

/// Requests by resource.
type Requests = BTreeMap<String, Quantity>;

/// The type of a limit that concerns single containers.
const CONTAINER: &str = "Container";

/// The defaults of a cluster.
#[derive(Clone, Debug, Default)]
pub struct PodDefaults {
    /// The default requests of containers, by namespace and name of the `LimitRange`; only those with defaults.
    limit_ranges: BTreeMap<(String, String), Requests>,
    /// By name of the `RuntimeClass`; only those with an overhead.
    overheads: BTreeMap<String, Requests>,
}

impl PodDefaults {
    /// No defaults.
    pub const NONE: Self = Self {
        limit_ranges: BTreeMap::new(),
        overheads: BTreeMap::new(),
    };

    /// Adds or updates a `LimitRange`; true if a default has changed.
    pub(crate) fn set_limit_range(&mut self, limit_range: &LimitRange) -> bool {
        let metadata = &limit_range.metadata;
        let key = |it: &Option<String>| it.clone().unwrap_or_default();
        let key = (key(&metadata.namespace), key(&metadata.name));
        let items = limit_range.spec.iter().flat_map(|it| &it.limits);
        let defaults = default_requests(items);
        if defaults.is_empty() {
            return self.limit_ranges.remove(&key).is_some();
        }
        let before = self.limit_ranges.insert(key.clone(), defaults);
        before.as_ref() != self.limit_ranges.get(&key)
    }

    /// Removes a `LimitRange`; true if it had defaults.
    pub(crate) fn remove_limit_range(&mut self, namespace: &str, name: &str) -> bool {
        let key = (namespace.to_owned(), name.to_owned());
        self.limit_ranges.remove(&key).is_some()
    }

    /// Adds or updates a `RuntimeClass`; true if its overhead has changed.
    pub(crate) fn set_runtime_class(&mut self, class: &RuntimeClass) -> bool {
        let name = class.metadata.name.clone().unwrap_or_default();
        let fixed = class.overhead.as_ref().and_then(|it| it.pod_fixed.as_ref());
        let overhead: Requests = amounts(fixed).collect();
        if overhead.is_empty() {
            return self.overheads.remove(&name).is_some();
        }
        let before = self.overheads.insert(name.clone(), overhead);
        before.as_ref() != self.overheads.get(&name)
    }

    /// Removes a `RuntimeClass`; true if it had an overhead.
    pub(crate) fn remove_runtime_class(&mut self, name: &str) -> bool {
        self.overheads.remove(name).is_some()
    }

    /// The requests that a container of a new pod gets for the resources that it does not request, the first of several for one
    /// resource. The API server applies the `LimitRange`s of a namespace in no defined order.
    pub(crate) fn of_containers(
        &self,
        namespace: &str,
    ) -> impl Iterator<Item = (&String, &Quantity)> {
        let first = (namespace.to_owned(), String::new());
        let ranges = self.limit_ranges.range(first..);
        let namespace = namespace.to_owned();
        let ranges = ranges.take_while(move |((it, _), _)| *it == namespace);
        ranges.flat_map(|(_, defaults)| defaults)
    }

    /// The overhead of the pods of a `RuntimeClass`.
    pub(crate) fn overhead(&self, runtime_class: &str) -> Option<&Requests> {
        self.overheads.get(runtime_class)
    }

    /// Objects with these defaults.
    pub(crate) fn limit_ranges(&self) -> impl Iterator<Item = LimitRange> {
        self.limit_ranges
            .iter()
            .map(|((namespace, name), defaults)| {
                let item = LimitRangeItem {
                    type_: CONTAINER.to_owned(),
                    default_request: Some(texts(defaults)),
                    ..LimitRangeItem::default()
                };
                LimitRange {
                    metadata: ObjectMeta {
                        namespace: Some(namespace.clone()),
                        name: Some(name.clone()),
                        ..ObjectMeta::default()
                    },
                    spec: Some(k8s_openapi::api::core::v1::LimitRangeSpec { limits: vec![item] }),
                }
            })
    }

    /// Objects with these overheads.
    pub(crate) fn runtime_classes(&self) -> impl Iterator<Item = RuntimeClass> {
        self.overheads.iter().map(|(name, overhead)| RuntimeClass {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                ..ObjectMeta::default()
            },
            overhead: Some(Overhead {
                pod_fixed: Some(texts(overhead)),
            }),
            ..RuntimeClass::default()
        })
    }
}

/// The default requests of containers. The API server has completed the items of stored objects; others, as in files, are completed
/// here: the default limit is the maximum, and the default request is the default limit, or else the minimum.
fn default_requests<'a>(items: impl Iterator<Item = &'a LimitRangeItem>) -> Requests {
    let mut all = Requests::new();
    for item in items.filter(|it| it.type_ == CONTAINER) {
        let mut of_item = Requests::new();
        for list in [&item.default_request, &item.default, &item.max, &item.min] {
            for (resource, amount) in amounts(list.as_ref()) {
                of_item.entry(resource).or_insert(amount);
            }
        }
        // Later items of one object replace earlier ones.
        all.extend(of_item);
    }
    all
}

/// The valid amounts of a list: the API server stores no others.
fn amounts(list: Option<&BTreeMap<String, Text>>) -> impl Iterator<Item = (String, Quantity)> {
    list.into_iter().flatten().filter_map(|(resource, text)| {
        let amount: Quantity = text.0.parse().ok()?;
        (!amount.is_negative()).then(|| (resource.clone(), amount))
    })
}

fn texts(requests: &Requests) -> BTreeMap<String, Text> {
    let texts = requests.iter();
    texts
        .map(|(resource, amount)| (resource.clone(), Text(amount.to_string())))
        .collect()
}
