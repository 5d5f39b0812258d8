//! `lockkeeper adopt` imports a running job of a declared kind.

use super::super::adopt::{adopt, results};
use super::super::fixture::ControllerFixture;
use super::super::render;
use super::policies::emitted;
use super::training_run::{
    apply, conditions, declaration, definition, install, remove, run, spot_queue,
};
use crate::fixture::{DEFAULTS, Fixture};
use serde_json::json;

pub(super) fn running_declared_job_is_adopted(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    install(&mut site, &definition());
    spot_queue(&site);
    apply(&mut site, &declaration("item.replicas").to_string());
    // Its policy keeps the queue of a running job.
    let policies = emitted(&mut site, &["--kubernetes-version=1.35"]);
    apply(&mut site, &policies);
    // Its pods select the nodes of the flavor and tolerate their taints, as the controller cannot add that to running pods.
    let mut running = run("train", false);
    running["metadata"]["labels"] = json!({});
    for role in running["spec"]["roles"].as_array_mut().unwrap() {
        let spec = &mut role["template"]["spec"];
        spec["nodeSelector"] = json!({"test.lockkeeper.dev/kind": "spot"});
    }
    site.objects.create(&running);
    let status = conditions(&[("Suspended", "False"), ("Running", "True")]);
    site.objects.patch_status("TrainingRun", "train", &status);

    let (report, code) = adopt(&mut site, &["trainingrun/train"]);
    assert_eq!(results(&report), [("train", "Fits")], "{report:#}");
    assert_eq!(report["jobs"][0]["kind"], "TrainingRun");
    assert_eq!(code, Some(0));
    let (report, code) = adopt(&mut site, &["trainingrun/train", "--apply"]);
    assert_eq!(results(&report), [("train", "Adopted")], "{report:#}");
    assert_eq!(code, Some(0));
    let name = site.workload_of("TrainingRun", "train");
    let workload = site.objects.wait_until("Workload", &name, |it| {
        render::has_status(it, "PodsReady", "True")
    });
    assert!(render::has_status(&workload, "Admitted", "True"));
    site.wait_for_counts("ClusterQueue", "q", 0, 1);
    let train = site.objects.get("TrainingRun", "train");
    assert_eq!(train["spec"], running["spec"], "it runs on as it is");
    assert_eq!(
        train["metadata"]["labels"]["lockkeeper.dev/queue-name"],
        "q"
    );

    remove(&site, "TrainingRun", "trainingruns.training.example.com");
    let kubectl = site.stage.cluster().kubectl();
    kubectl
        .with_input(&["delete", "-f", "-"], &policies)
        .expect_accepted();
    site.stop();
}
