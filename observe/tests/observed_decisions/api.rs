//! The API server of a simulation: stores Workloads, and delivers each version to Kueue and to the observer, late and in
//! order.

use crate::objects::Rng;
use lockkeeper_api::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A version of a workload, and when it is delivered.
pub type Delivery = (i64, Arc<Workload>);

/// The stored workloads, and the deliveries that are due later.
#[derive(Default)]
pub struct Api {
    pub stored: BTreeMap<String, Arc<Workload>>,
    version: u64,
    to_kueue: std::collections::VecDeque<Delivery>,
    to_observer: std::collections::VecDeque<Delivery>,
}

impl Api {
    /// Stores a version.
    pub fn write(&mut self, now_ms: i64, mut workload: Workload, rng: &mut Rng) {
        self.version += 1;
        workload.metadata.resource_version = Some(self.version.to_string());
        let name = workload.metadata.name.clone().unwrap();
        let workload = Arc::new(workload);
        self.stored.insert(name, Arc::clone(&workload));
        for (queue, lag_ms) in [(&mut self.to_kueue, 100), (&mut self.to_observer, 300)] {
            let last_ms = queue.back().map_or(i64::MIN, |it| it.0);
            let at_ms = last_ms.max(now_ms + rng.ms(lag_ms));
            queue.push_back((at_ms, Arc::clone(&workload)));
        }
    }

    pub fn due_for_kueue(&mut self, now_ms: i64) -> Option<Delivery> {
        take_due(&mut self.to_kueue, now_ms)
    }

    pub fn due_for_observer(&mut self, now_ms: i64) -> Option<Delivery> {
        take_due(&mut self.to_observer, now_ms)
    }
}

fn take_due(queue: &mut std::collections::VecDeque<Delivery>, now_ms: i64) -> Option<Delivery> {
    if queue.front()?.0 > now_ms {
        return None;
    }
    queue.pop_front()
}
