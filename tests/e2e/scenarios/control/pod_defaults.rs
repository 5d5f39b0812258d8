//! Jobs whose pods get requests that their templates do not have: by a `LimitRange` of the namespace, and by a `RuntimeClass`.

use serde_json::{Value, json};

use super::Trial;
use super::fixture::ControllerFixture;
use super::quota_use::queue_and_cpu;
use crate::fixture::{DEFAULTS, Fixture};

pub const TRIALS: [Trial; 1] = [(
    "the quota of a job has the requests that its pods get by default",
    defaults_use_quota,
)];

/// The cpus that the API server has counted for the pods of a job: those of the containers, and the overhead.
fn cpus_of_pods(site: &ControllerFixture<'_>, job: &str) -> u64 {
    let cpus = |it: &Value| -> u64 { it.as_str().map_or(0, |it| it.parse().unwrap()) };
    let pods = site.pods(job);
    let of_pod = |pod: &Value| {
        let requests = &pod["spec"]["containers"][0]["resources"]["requests"];
        cpus(&requests["cpu"]) + cpus(&pod["spec"]["overhead"]["cpu"])
    };
    pods.iter().map(of_pod).sum()
}

fn defaults_use_quota(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    site.queue("q", 8, &json!({}));
    site.objects.create(&json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "defaults", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}}]},
    }));
    site.objects.create(&json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "isolated"},
        "handler": "isolated", "overhead": {"podFixed": {"cpu": "1"}},
    }));
    // Two pods of three cpus each, though their template requests none.
    let without_requests = json!({"spec": {"parallelism": 2, "completions": 2, "template": {"spec": {
        "runtimeClassName": "isolated",
        "containers": [{"name": "main", "image": "registry.example.com/a:1"}],
    }}}});
    site.job("first", "q", 1, "mid", &without_requests);
    let workload = site.wait_until_running("first");
    assert_eq!(queue_and_cpu(&workload), ("q".to_owned(), 6));
    assert_eq!(cpus_of_pods(&site, "first"), 6);
    site.job("second", "q", 1, "mid", &without_requests);
    site.wait_until_pending("second", "WaitingForQuota");

    // New pods get nothing any more: both jobs fit.
    site.objects.delete("LimitRange", "defaults");
    let workload = site.wait_until_running("second");
    assert_eq!(queue_and_cpu(&workload).1, 2);
    assert_eq!(cpus_of_pods(&site, "second"), 2);
    for job in ["first", "second"] {
        site.objects.delete("Job", job);
    }
    site.objects.delete("RuntimeClass", "isolated");
    site.stop();
}
