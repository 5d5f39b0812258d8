//! A preempted workload is never admitted again before its preemptor, whatever decides the order: checked on every
//! version of the objects.

use serde_json::{Value, json};

use super::fixture::ControllerFixture;
use super::{Trial, render};
use crate::fixture::Fixture;

pub const TRIALS: [Trial; 1] = [(
    "a victim is not admitted again before its preemptor",
    preemptor_is_admitted_before_its_victim,
)];

/// The victim is older than the preemptor, and is requeued by its creation time.
fn preemptor_is_admitted_before_its_victim(stage: &mut Fixture) {
    let config = "waitForPodsReady: {enable: true, requeuingStrategy: {timestamp: Creation}}\n";
    let mut site = ControllerFixture::open(stage, config);
    site.flavor("default");
    site.classes();
    let more = json!({
        "cohortName": "lab",
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
    });
    site.queue("a", 4, &more);
    site.queue("b", 4, &more);
    let watch = site.watch("Workload");
    // Reclaimed by a younger workload of equal priority, and then preempted by a higher priority in its own queue.
    site.job("lent", "b", 8, "mid", &json!({}));
    site.wait_until_running("lent");
    site.job("owner", "a", 4, "mid", &json!({}));
    site.wait_until_running("owner");
    site.job("small", "b", 4, "mid", &json!({}));
    site.wait_until_running("small");
    site.job("first", "b", 4, "high", &json!({}));
    site.wait_until_running("first");
    for pair in [("lent", "owner"), ("small", "first")] {
        let pair = [pair.0, pair.1].map(|job| site.workload_name(job));
        let versions = watch.versions();
        let held = |it: &Value| render::has_status(it, "QuotaReserved", "True");
        let of = |name: &String| {
            let name = name.clone();
            versions
                .iter()
                .filter(move |it| it["metadata"]["name"] == name.as_str())
        };
        let number = |workload: &Value| -> u64 {
            let version = workload["metadata"]["resourceVersion"].as_str();
            version.unwrap().parse().unwrap()
        };
        let freed =
            of(&pair[0]).find(|it| render::has_status(it, "Preempted", "True") && !held(it));
        let reserved = of(&pair[1]).find(|it| held(it));
        let (freed, reserved) = (number(freed.unwrap()), number(reserved.unwrap()));
        assert!(freed < reserved, "{freed} {reserved}");
        let again = of(&pair[0]).find(|it| held(it) && number(it) > freed);
        assert!(again.is_none_or(|it| number(it) > reserved), "{again:#?}");
    }
    site.stop();
}
