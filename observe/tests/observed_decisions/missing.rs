//! Decisions that Kueue does not make.

use crate::objects::{BEGIN_MS, Rng, applied, queues, workload};
use lockkeeper_explain::KueueObject;
use lockkeeper_observe::{ObserveSettings, Observer};
use std::sync::Arc;

#[test]
fn missing_decision_since_the_start_is_no_decision_before_the_start() {
    let mut observer = Observer::new(ObserveSettings::default());
    for object in queues(&mut Rng(1), true) {
        observer.apply(BEGIN_MS, applied(object));
    }
    let pending = workload("w", 0, 1, 0, BEGIN_MS);
    observer.apply(BEGIN_MS, applied(KueueObject::Workload(Arc::new(pending))));
    observer.start(BEGIN_MS);
    for step in 0..30 {
        observer.poll(BEGIN_MS + step * 5_000);
    }
    let report = observer.report();
    assert_eq!(report.missing.different, 1, "{report:#?}");
    assert_eq!(report.missing.explained, 0, "{report:#?}");
    let difference = serde_json::to_value(&report.differences[0]).unwrap();
    assert_eq!(difference["decision"], "missing");
    assert_eq!(difference["workload"], "n/w");
}
