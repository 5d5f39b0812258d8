//! Upgrades from an earlier version to this one and back, with running jobs. tests/upgrade builds the earlier binary.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fixture::{self, ControllerFixture};
use super::{Trial, render};
use crate::controller::Controller;
use crate::fixture::{DEFAULTS, Fixture};
use crate::kubectl::Kubectl;
use crate::lockkeeper::{Lockkeeper, Program, Protocol};
use crate::wait;

/// Jobs that run during the upgrade.
const RUNNING: u32 = 1_000;

/// Jobs that wait for quota during the upgrade.
const WAITING: u32 = 20;

/// The most Jobs that kubectl creates at once.
const CHUNK: u32 = 250;

/// When the CRDs of the other version are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DefinitionsOrder {
    BeforeTheProgram,
    AfterTheProgram,
}

pub const TRIALS: [Trial; 2] = [
    ("jobs run on, with the CRDs first", |stage| {
        upgrade(stage, DefinitionsOrder::BeforeTheProgram);
    }),
    ("jobs run on, with the CRDs last", |stage| {
        upgrade(stage, DefinitionsOrder::AfterTheProgram);
    }),
];

/// A webhook and a controller of one version.
struct Installation {
    server: Lockkeeper,
    controller: Controller,
}

fn upgrade(stage: &mut Fixture, order: DefinitionsOrder) {
    let earlier = &Program::earlier().expect("LOCKKEEPER_EARLIER names the earlier binary");
    let current = Program::current();
    let kubectl = stage.without_server();
    define(&kubectl, earlier);
    let mut site = ControllerFixture::without_controller(stage);
    let mut installed = install(&mut site, earlier);
    start_jobs(&site, &kubectl);
    let before = Jobs::observe(&site);
    let history = site.watch("Job");
    let mut finished = 0;
    for (program, way) in [(&current, "upgrade"), (earlier, "downgrade")] {
        if order == DefinitionsOrder::BeforeTheProgram {
            define(&kubectl, program);
        }
        // As a Deployment does it: the new replicas are ready before the old ones stop.
        let next = install(&mut site, program);
        let old = std::mem::replace(&mut installed, next);
        old.controller.stop().unwrap_or_else(|e| panic!("{e}"));
        old.server.stop().unwrap_or_else(|e| panic!("{e}"));
        if order == DefinitionsOrder::AfterTheProgram {
            define(&kubectl, program);
        }
        // The new leader admits what waits when others end, and new Jobs.
        finished += 2;
        for number in [finished - 1, finished] {
            site.finish(&format!("running-{number}"));
        }
        let name = format!("after-{way}");
        site.objects
            .create(&fixture::job(&name, "q", 1, "", &json!({})));
        let waiting = WAITING - finished + finished / 2;
        site.wait_for_counts("ClusterQueue", "q", waiting, RUNNING);
        before.expect_unchanged(&site, finished, way);
    }
    let stopped = history.versions();
    let mut stopped = stopped.iter().filter(|it| {
        let name = it["metadata"]["name"].as_str().unwrap_or_default();
        name.starts_with("running-") && it["spec"]["suspend"] == true
    });
    assert_eq!(stopped.next(), None, "a running Job was suspended");
    println!("  {RUNNING} running Jobs, upgraded and downgraded: none stopped, {order:?}");
    installed
        .controller
        .stop()
        .unwrap_or_else(|e| panic!("{e}"));
    installed.server.stop().unwrap_or_else(|e| panic!("{e}"));
    define(&kubectl, &current);
    let jobs = ["delete", "jobs", "--all", "--wait=false"];
    kubectl.run(&jobs).expect_accepted();
}

/// Applies the CRDs and the admission policies of a version.
#[track_caller]
fn define(kubectl: &Kubectl, program: &Program) {
    for what in ["definitions", "policies"] {
        let objects = program.output(&["crds", what]);
        kubectl
            .apply(&objects, &["--server-side", "--force-conflicts"])
            .expect_accepted();
    }
}

/// Starts a version beside the one that runs, and registers its webhook.
#[track_caller]
fn install(site: &mut ControllerFixture<'_>, program: &Program) -> Installation {
    let kubectl = site.stage.cluster().kubectl().clone();
    let folder = site.stage.new_folder();
    let account = site.stage.cluster().server().to_owned();
    let server = Lockkeeper::start_program(program, &account, &folder, Protocol::Http1, DEFAULTS)
        .unwrap_or_else(|e| panic!("{e}"));
    let ca = server.ca().to_str().unwrap().to_owned();
    let webhooks = program.output(&[
        "crds",
        "webhooks",
        "--url",
        &server.url(),
        "--ca-bundle",
        &ca,
    ]);
    kubectl.apply(&webhooks, &[]).expect_accepted();
    let folder = site.stage.new_folder();
    let account = site.stage.controller();
    let controller = Controller::start_program(program, &account, &folder, &[]);
    Installation {
        server,
        controller: controller.unwrap_or_else(|e| panic!("{e}")),
    }
}

/// Starts the Jobs, and creates those that wait.
#[track_caller]
fn start_jobs(site: &ControllerFixture<'_>, kubectl: &Kubectl) {
    site.flavor("default");
    site.queue("q", RUNNING, &json!({}));
    create(kubectl, "running", RUNNING);
    site.wait_for_counts("ClusterQueue", "q", 0, RUNNING);
    create(kubectl, "waiting", WAITING);
    site.wait_for_counts("ClusterQueue", "q", WAITING, RUNNING);
    let all_run = wait::until(
        || {
            let jobs = site.objects.list("Job");
            let running = jobs.iter().filter(|it| it["status"]["ready"] == 1);
            Ok((u32::try_from(running.count()).unwrap() == RUNNING).then_some(()))
        },
        || "not all Jobs run".to_owned(),
    );
    all_run.unwrap_or_else(|e| panic!("{e}"));
}

/// Creates Jobs of one pod with one CPU, numbered from 1.
#[track_caller]
fn create(kubectl: &Kubectl, prefix: &str, count: u32) {
    let numbers: Vec<u32> = (1..=count).collect();
    for chunk in numbers.chunks(CHUNK as usize) {
        let jobs = chunk
            .iter()
            .map(|it| fixture::job(&format!("{prefix}-{it}"), "q", 1, "", &json!({})));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": jobs.collect::<Vec<_>>()});
        kubectl
            .with_input(&["create", "-f", "-"], &list.to_string())
            .expect_accepted();
    }
}

/// The pods and the admissions of the running Jobs.
struct Jobs {
    /// The uid of the pod, by Job.
    pods: BTreeMap<String, Value>,
    /// The uid and the admission of the Workload, by Job.
    workloads: BTreeMap<String, [Value; 2]>,
}

impl Jobs {
    #[track_caller]
    fn observe(site: &ControllerFixture<'_>) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let is_running = |it: &&Value| it["metadata"]["deletionTimestamp"].is_null();
        let pods = site.objects.list("Pod");
        let pods = pods.iter().filter(is_running).map(|it| {
            let job = text(&it["metadata"]["labels"]["job-name"]);
            (job, it["metadata"]["uid"].clone())
        });
        let workloads = site.objects.list("Workload");
        let admitted = workloads
            .iter()
            .filter(|it| render::has_status(it, "Admitted", "True"));
        let admitted = admitted.map(|it| {
            let job = text(&it["metadata"]["ownerReferences"][0]["name"]);
            let state = [&it["metadata"]["uid"], &it["status"]["admission"]];
            (job, state.map(Value::clone))
        });
        Self {
            pods: pods.collect(),
            workloads: admitted.collect(),
        }
    }

    /// Fails unless all of them but the first `finished` still run, with the same pod and admission.
    #[track_caller]
    fn expect_unchanged(&self, site: &ControllerFixture<'_>, finished: u32, way: &str) {
        let now = Self::observe(site);
        for number in finished + 1..=RUNNING {
            let job = format!("running-{number}");
            assert!(self.pods.contains_key(&job) && self.workloads.contains_key(&job));
            assert_eq!(now.pods.get(&job), self.pods.get(&job), "{way}: {job}");
            assert_eq!(
                now.workloads.get(&job),
                self.workloads.get(&job),
                "{way}: {job}"
            );
        }
    }
}
