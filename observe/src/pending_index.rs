//! The pending workloads by ClusterQueue and class.

use lockkeeper_api::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Workloads with the same templates, counts and priority: all fit or none. Templates are compared by address, since
/// equal ones are stored once.
type Class = (i32, Vec<(usize, Option<i32>, Option<i32>)>);

/// The order within a class: time in milliseconds, then uid.
type Order = (i64, String);

/// The workloads of a class with their versions, in order.
type Members = BTreeMap<Order, (Arc<str>, Arc<Workload>)>;

/// The place of a workload.
type Place = (Arc<str>, Class, Order);

/// Pending workloads, so that the first of each class is found without those behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingIndex {
    queues: BTreeMap<Arc<str>, BTreeMap<Class, Members>>,
    places: BTreeMap<Arc<str>, Place>,
}

impl PendingIndex {
    /// Adds a workload, or moves it.
    pub(crate) fn insert(
        &mut self,
        key: &Arc<str>,
        queue: &Arc<str>,
        workload: &Arc<Workload>,
        order_ms: i64,
    ) {
        self.remove(key);
        let uid = workload.metadata.uid.clone().unwrap_or_default();
        let place = (Arc::clone(queue), class(workload), (order_ms, uid));
        let classes = self.queues.entry(Arc::clone(queue)).or_default();
        let class = classes.entry(place.1.clone()).or_default();
        let member = (Arc::clone(key), Arc::clone(workload));
        class.insert(place.2.clone(), member);
        self.places.insert(Arc::clone(key), place);
    }

    /// Removes a workload.
    pub(crate) fn remove(&mut self, key: &str) {
        let Some((queue, class, order)) = self.places.remove(key) else {
            return;
        };
        let Some(classes) = self.queues.get_mut(&queue) else {
            return;
        };
        if let Some(members) = classes.get_mut(&class) {
            members.remove(&order);
            if members.is_empty() {
                classes.remove(&class);
            }
        }
        if classes.is_empty() {
            self.queues.remove(&queue);
        }
    }

    /// The first workloads of each class of a queue that `is_included`, at most `count` of each.
    pub(crate) fn first(
        &self,
        queue: &str,
        count: usize,
        is_included: impl Fn(&str) -> bool,
    ) -> Vec<(Arc<str>, Arc<Workload>)> {
        let classes = self.queues.get(queue).into_iter().flatten();
        let mut first = Vec::new();
        for (_, members) in classes {
            let members = members.values().filter(|(key, _)| is_included(key));
            first.extend(members.take(count).cloned());
        }
        first
    }
}

fn class(workload: &Workload) -> Class {
    let priority = workload.status.as_ref().and_then(|it| it.priority);
    let pod_sets = workload.spec.pod_sets.iter();
    let pod_sets = pod_sets.map(|it| {
        let address = Arc::as_ptr(&it.template) as usize;
        (address, it.count, it.min_count)
    });
    (priority.unwrap_or_default(), pod_sets.collect())
}
