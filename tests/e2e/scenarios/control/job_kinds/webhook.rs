//! The webhook suspends new jobs of declared kinds, and says what the controller will do with them.

use super::super::fixture::{ControllerFixture, NO_LEADER_ELECTION};
use super::policies::children_of_controllers_run;
use super::training_run::{
    apply, declaration, definition, install, remove, run, spot_queue, wait_for_start,
};
use crate::fixture::Fixture;
use crate::lockkeeper::{self, Protocol};
use crate::wait;
use serde_json::Value;

const PREVIEW: &str = "webhook: {preview: true}\n";

pub(super) fn webhook_suspends_new_jobs(stage: &mut Fixture) {
    stage.register_server(Protocol::Http1, PREVIEW);
    let mut site = ControllerFixture::without_controller(stage);
    site.start_controller("", &[NO_LEADER_ELECTION]);
    install(&mut site, &definition());
    spot_queue(&site);
    apply(&mut site, &declaration("item.replicas").to_string());
    register(&mut site);

    let kubectl = site.stage.cluster().kubectl().clone();
    let probe = run("train", false).to_string();
    let dry_run = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    let mut last = String::new();
    let is_suspended = wait::until(
        || {
            let output = kubectl.with_input(&dry_run, &probe).expect_accepted();
            let object: Value = serde_json::from_str(&output.stdout).unwrap();
            let is_previewed = output
                .stderr
                .contains("preview: runs now on flavor default");
            last = output.stderr;
            Ok((object["spec"]["suspend"] == true && is_previewed).then_some(()))
        },
        || "the job is not suspended, or has no preview".to_owned(),
    );
    is_suspended.unwrap_or_else(|e| panic!("{e}; last: {last}"));
    children_of_controllers_run(&kubectl, &dry_run);
    kubectl
        .with_input(&["create", "-f", "-"], &probe)
        .expect_accepted();
    wait_for_start(&site, "train");

    remove(&site, "TrainingRun", "trainingruns.training.example.com");
    // The kind is still registered: its jobs are not suspended any more, and the user learns it.
    let is_reported = wait::until(
        || {
            let output = kubectl.with_input(&dry_run, &probe).expect_accepted();
            let expected = "lockkeeper has no rule for training.example.com/v1 TrainingRun";
            Ok(output.stderr.contains(expected).then_some(()))
        },
        || "the missing declaration is not reported".to_owned(),
    );
    is_reported.unwrap_or_else(|e| panic!("{e}"));
    site.stop();
}

/// Registers the server for the declared kind, too.
#[track_caller]
fn register(site: &mut ControllerFixture<'_>) {
    let declaration = declaration("item.replicas")["items"][0].to_string();
    let file = site.stage.cluster().folder().join("jobkind.json");
    std::fs::write(&file, declaration).unwrap();
    let server = site.stage.server();
    let (url, config) = (server.url(), server.config().unwrap());
    let ca = server.ca().to_str().unwrap();
    let webhooks = lockkeeper::output(&[
        "crds",
        "webhooks",
        "--url",
        &url,
        "--ca-bundle",
        ca,
        "--config",
        config.to_str().unwrap(),
        "--job-kinds",
        file.to_str().unwrap(),
    ]);
    apply(site, &webhooks);
}
