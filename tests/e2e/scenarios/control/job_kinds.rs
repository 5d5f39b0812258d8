//! Kinds of jobs that `JobKind` objects declare. The test writes the status that the kind's own controller would write.

mod adoption;
mod fields;
mod kueue_scenarios;
mod mismatch;
mod policies;
mod running_jobs;
mod shipped;
mod training_run;
mod undeclared;
mod webhook;

use self::adoption::running_declared_job_is_adopted;
use self::fields::fields_have_effects;
use self::kueue_scenarios::kueue_scenarios;
use self::mismatch::definition_mismatch_is_reported;
use self::policies::{emitted_policies_guard_jobs, emitted_policies_require_suspension};
use self::shipped::{Shipped, shipped};
use self::training_run::{
    apply, conditions, declaration, definition, install, remove, run, spot_queue, wait_for_start,
};
use self::undeclared::undeclared_kinds_queue;
use self::webhook::webhook_suspends_new_jobs;
use super::explain::{self, json_answer};
use super::fixture::ControllerFixture;
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::objects::collection;
use crate::wait;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub const TRIALS: [Trial; 11] = [
    (
        "a declared job is queued, preempted and resumed",
        life_of_a_declared_job,
    ),
    ("a declaration changes and goes", declaration_changes),
    (
        "a declaration without rights stops no queue",
        declaration_without_rights,
    ),
    (
        "the fields of a declaration have effects",
        fields_have_effects,
    ),
    ("the shipped declarations", shipped_declarations),
    (
        "the scenarios of Kueue's tests for the shipped kinds",
        kueue_scenarios,
    ),
    (
        "kinds without a declaration queue by what they create",
        undeclared_kinds_queue,
    ),
    (
        "a declaration is compared with its definition",
        definition_mismatch_is_reported,
    ),
    (
        "the webhook suspends new jobs of declared kinds",
        webhook_suspends_new_jobs,
    ),
    (
        "a running job of a declared kind is adopted",
        running_declared_job_is_adopted,
    ),
    (
        "without mutating policies a new declared job must be suspended",
        emitted_policies_require_suspension,
    ),
];

/// They need mutating policies.
pub const POLICY_TRIALS: [Trial; 1] = [(
    "the emitted policies guard declared jobs",
    emitted_policies_guard_jobs,
)];

fn life_of_a_declared_job(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    install(&mut site, &definition());
    spot_queue(&site);
    // A user has started it: it is stopped first.
    site.objects.create(&run("train", false));
    apply(&mut site, &declaration("item.replicas").to_string());
    let started = site.objects.wait_until("TrainingRun", "train", |it| {
        let selector = it.pointer("/spec/roles/1/template/spec/nodeSelector");
        it["spec"]["suspend"] == false && selector.is_some()
    });
    for at in 0..2 {
        let spec = &started["spec"]["roles"][at]["template"]["spec"];
        assert_eq!(
            spec["nodeSelector"],
            json!({"test.lockkeeper.dev/kind": "spot"})
        );
        assert!(spec["tolerations"].to_string().contains("spot"));
    }
    let running = conditions(&[("Suspended", "False"), ("Running", "True")]);
    site.objects.patch_status("TrainingRun", "train", &running);
    let name = site.workload_of("TrainingRun", "train");
    assert!(name.starts_with("trainingrun-train-"), "{name}");
    let workload = site.objects.wait_until("Workload", &name, |it| {
        render::has_status(it, "PodsReady", "True")
    });
    let counts: Vec<&Value> = workload["spec"]["podSets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["count"])
        .collect();
    assert_eq!(counts, [&json!(1), &json!(3)]);

    manifest_is_explained(&mut site);
    site.job("first", "q", 4, "high", &json!({}));
    site.objects
        .wait_until("TrainingRun", "train", |it| it["spec"]["suspend"] == true);
    let workload = site.objects.get("Workload", &name);
    assert!(
        render::has_status(&workload, "QuotaReserved", "True"),
        "its pods still run"
    );
    let stopped = conditions(&[("Suspended", "True"), ("Running", "False")]);
    site.objects.patch_status("TrainingRun", "train", &stopped);
    site.wait_until_running("first");
    let after = site.objects.get("TrainingRun", "train");
    assert_eq!(
        after["spec"],
        run("train", true)["spec"],
        "the original spec"
    );

    site.finish("first");
    wait_for_start(&site, "train");
    let ended = conditions(&[("Suspended", "False"), ("Succeeded", "True")]);
    site.objects.patch_status("TrainingRun", "train", &ended);
    let workload = site.objects.wait_until("Workload", &name, |it| {
        render::has_status(it, "Finished", "True")
    });
    assert_eq!(render::reason(&workload, "Finished"), "Succeeded");
    site.wait_for_counts("ClusterQueue", "q", 0, 0);
    remove(&site, "TrainingRun", "trainingruns.training.example.com");
    site.stop();
}

/// `explain -f` and `dump` read the declaration of the cluster.
fn manifest_is_explained(site: &mut ControllerFixture<'_>) {
    let file = site.stage.cluster().folder().join("another-run.json");
    std::fs::write(&file, run("another", true).to_string()).unwrap();
    let answer = json_answer(site, &["explain", "-f", file.to_str().unwrap()]);
    assert_eq!(answer["workload"]["job"], "TrainingRun/another");
    assert_eq!(answer["quota"][0]["requested"], "4", "{answer:#}");
    assert_eq!(answer["forecast"]["decision"], "Waits", "{answer:#}");
    let dump = explain::run(site, &["dump"]);
    let dump: Value = serde_json::from_slice(&dump.stdout).unwrap();
    let items = dump["items"].as_array().unwrap();
    assert!(items.iter().any(|it| it["kind"] == "JobKind"), "{dump:#}");
}

/// A change of the declaration changes pending workloads. When it is deleted, the jobs of the kind are stopped, and their quota is
/// released.
fn declaration_changes(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    install(&mut site, &definition());
    spot_queue(&site);
    let twice = declaration("item.replicas * 2").to_string();
    apply(&mut site, &twice);
    site.objects.create(&run("train", true));
    let name = site.workload_of("TrainingRun", "train");
    site.objects.wait_until("Workload", &name, |it| {
        render::condition(it, "QuotaReserved").is_some_and(|it| it["status"] == "False")
    });
    // 4 pods fit, 8 do not.
    apply(&mut site, &declaration("item.replicas").to_string());
    wait_for_start(&site, "train");
    let running = conditions(&[("Suspended", "False"), ("Running", "True")]);
    site.objects.patch_status("TrainingRun", "train", &running);
    site.objects.wait_until("Workload", &name, |it| {
        render::has_status(it, "PodsReady", "True")
    });

    // The webhook rejects a mistake, and names the field.
    let kubectl = site.stage.cluster().kubectl();
    let wrong = declaration("items.replicas")
        .to_string()
        .replace("spec.roles", "roles");
    let output = kubectl.apply(&wrong, &[]).expect_rejected();
    assert!(output.stderr.contains("JK001"), "{}", output.stderr);
    assert!(
        output.stderr.contains("spec.podSets[0].forEach"),
        "{}",
        output.stderr
    );

    site.objects
        .delete("JobKind", "trainingruns.training.example.com");
    site.objects
        .wait_until("TrainingRun", "train", |it| it["spec"]["suspend"] == true);
    assert!(
        site.objects.find("Workload", &name).is_some(),
        "its pods still run"
    );
    let stopped = conditions(&[("Suspended", "True"), ("Running", "False")]);
    site.objects.patch_status("TrainingRun", "train", &stopped);
    site.objects.wait_until_gone("Workload", &name);
    site.wait_for_counts("ClusterQueue", "q", 0, 0);
    remove(&site, "TrainingRun", "trainingruns.training.example.com");
    site.stop();
}

/// The controller may not list the kind. Everything else goes on, and the kind is managed as soon as its role is there.
fn declaration_without_rights(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    let renamed = |object: &Value| {
        object
            .to_string()
            .replace("training.example.com", "other.example.com")
    };
    install(
        &mut site,
        &serde_json::from_str(&renamed(&definition())).unwrap(),
    );
    spot_queue(&site);
    let items = declaration("item.replicas")["items"].clone();
    apply(&mut site, &renamed(&items[0]));
    let is_forbidden = wait::until(
        || {
            let log = site.controller().log();
            Ok(log.contains("cannot list resource").then_some(()))
        },
        || "the kind is not listed".to_owned(),
    );
    is_forbidden.unwrap_or_else(|e| panic!("{e}"));
    site.job("first", "q", 4, "low", &json!({}));
    site.wait_until_running("first");
    site.finish("first");

    apply(
        &mut site,
        &renamed(&items[1]).replace("kind-trainingruns", "kind-others"),
    );
    let object: Value = serde_json::from_str(&renamed(&run("train", true))).unwrap();
    let path = "/apis/other.example.com/v1/namespaces/default/trainingruns";
    site.objects.create_at(path, &object);
    let started = wait::until(
        || {
            Ok(
                (site.objects.read_at(&format!("{path}/train"))["spec"]["suspend"] == false)
                    .then_some(()),
            )
        },
        || "the job is not started".to_owned(),
    );
    started.unwrap_or_else(|e| panic!("{e}"));
    site.objects
        .delete("JobKind", "trainingruns.other.example.com");
    site.stop();
}

/// The folder with definitions of other projects.
fn definitions() -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let given = std::env::var_os("LOCKKEEPER_CONFORMANCE_DIR").map(PathBuf::from);
    let folder = given.unwrap_or_else(|| repository.join("../shared/data"));
    let folder = folder.join("jobkinds/crds");
    folder.is_dir().then_some(folder)
}

fn shipped_declarations(stage: &mut Fixture) {
    let Some(folder) = definitions() else {
        println!(
            "skipped: no definitions of job kinds; LOCKKEEPER_CONFORMANCE_DIR names the folder with jobkinds/"
        );
        return;
    };
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    spot_queue(&site);
    for of in shipped() {
        let (plural, group) = of.resource.split_once('.').unwrap();
        let cluster = site.stage.cluster();
        cluster
            .kubectl()
            .install_crds(&folder.join(format!("{group}_{plural}.yaml")));
        let example = format!(
            "{}/../examples/job-kinds/{plural}.yaml",
            env!("CARGO_MANIFEST_DIR")
        );
        apply(&mut site, &std::fs::read_to_string(&example).unwrap());
        let policies = running_jobs::install_policies(&mut site, &example, &job(&of));
        life(&mut site, &of);
        remove(&site, of.kind, of.resource);
        let kubectl = site.stage.cluster().kubectl();
        kubectl
            .with_input(&["delete", "-f", "-"], &policies)
            .expect_accepted();
    }
    site.stop();
}

/// A queued job of a shipped kind.
fn job(of: &Shipped) -> Value {
    let path = collection(of.kind);
    let version = path
        .trim_start_matches("/apis/")
        .split("/namespaces")
        .next()
        .unwrap();
    json!({
        "apiVersion": version, "kind": of.kind,
        "metadata": {"name": "train", "namespace": "default", "labels": {
            "lockkeeper.dev/queue-name": "q", "lockkeeper.dev/priority-class": "low",
        }},
        "spec": of.spec,
    })
}

/// A job is queued, started on the nodes of its flavor, preempted, resumed and finished.
fn life(site: &mut ControllerFixture<'_>, of: &Shipped) {
    let (kind, objects) = (of.kind, &site.objects);
    objects.create(&job(of));
    let before = objects.get(kind, "train")["spec"].clone();
    let is_suspended = |it: &Value| it.pointer(of.suspend) == Some(&json!(true));
    let started = objects.wait_until(kind, "train", |it| !is_suspended(it));
    for path in of.selectors {
        let selector = started.pointer(path);
        assert_eq!(
            selector,
            Some(&json!({"test.lockkeeper.dev/kind": "spot"})),
            "{kind} {path}"
        );
    }
    objects.patch_status(kind, "train", &of.running);
    let name = site.workload_of(kind, "train");
    objects.wait_until("Workload", &name, |it| {
        render::has_status(it, "PodsReady", "True")
    });

    running_jobs::keeps_its_pods(site, of);
    let objects = &site.objects;

    site.job("first", "q", 4, "high", &json!({}));
    objects.wait_until(kind, "train", is_suspended);
    objects.patch_status(kind, "train", &of.stopped);
    site.wait_until_running("first");
    assert_eq!(
        objects.get(kind, "train")["spec"],
        before,
        "{kind}: the original spec"
    );
    site.finish("first");
    objects.delete("Job", "first");
    objects.wait_until(kind, "train", |it| !is_suspended(it));
    if let Some(ended) = &of.ended {
        objects.patch_status(kind, "train", ended);
        let workload = objects.wait_until("Workload", &name, |it| {
            render::has_status(it, "Finished", "True")
        });
        assert_eq!(render::reason(&workload, "Finished"), "Succeeded", "{kind}");
    }
    objects.delete(kind, "train");
    let gone = wait::until(
        || Ok(objects.find("Workload", &name).is_none().then_some(())),
        || format!("{kind}: the workload stays"),
    );
    gone.unwrap_or_else(|e| panic!("{e}"));
}
