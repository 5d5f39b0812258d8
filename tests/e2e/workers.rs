//! The workers, which create and run the pods of Jobs: the controller manager, the scheduler, and kwok in
//! place of kubelets.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;

use crate::ROOT;
use crate::cluster::free_ports;
use crate::https::Endpoint;
use crate::process::Process;
use crate::programs::Programs;

const CONTROLLER_MANAGER: &str = "kube-controller-manager";
const SCHEDULER: &str = "kube-scheduler";
const KWOK: &str = "kwok";

/// The controllers that Jobs, Deployments, `StatefulSets` and namespaces need, and those that migrate stored objects and
/// aggregate roles. The node controllers are left
/// out: nodes stay as kwok creates them.
const CONTROLLERS: [&str; 12] = [
    "job-controller",
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "disruption-controller",
    "ttl-after-finished-controller",
    "podgroup-protection-controller",
    "storage-version-migrator-controller",
    "clusterrole-aggregation-controller",
];

/// Without client-side rate limits: they would be measured instead of the controller.
const REQUESTS_PER_SECOND: u32 = 2000;

/// The number of Jobs that are processed at once.
const JOB_SYNCS: u32 = 20;

/// The three programs. Dropping it stops them.
pub struct Workers {
    processes: [Process; 3],
}

impl Workers {
    /// Starts them as the administrator of a cluster, and waits until they are ready.
    pub fn start(programs: &Programs, admin: &Path, folder: &Path) -> Result<Self, String> {
        programs.require(&[CONTROLLER_MANAGER, SCHEDULER, KWOK])?;
        let ports = free_ports().map_err(|e| format!("no free port: {e}"))?;
        let [manager_port, scheduler_port, kwok_port] = ports;
        let start = |name: &'static str, mut command: Command| {
            command.env("MINICLUSTER_EXIT_WITH_STDIN", "1");
            let log = folder.join(name).with_extension("log");
            Process::start(name, command, &log, None)
        };
        // All start at once; then the test waits for each.
        let manager = controller_manager(programs, admin, folder, manager_port);
        let mut manager = start(CONTROLLER_MANAGER, manager)?;
        let scheduler = scheduler(programs, admin, folder, scheduler_port)?;
        let mut scheduler = start(SCHEDULER, scheduler)?;
        let mut kwok = start(KWOK, kwok(programs, admin, kwok_port))?;

        manager.wait_ready(|| is_healthy(folder, CONTROLLER_MANAGER, manager_port, "/healthz"))?;
        scheduler.wait_ready(|| is_healthy(folder, SCHEDULER, scheduler_port, "/readyz"))?;
        // It listens once its watches are started.
        kwok.wait_ready(|| TcpStream::connect((Ipv4Addr::LOCALHOST, kwok_port)).ok())?;
        Ok(Self {
            processes: [manager, scheduler, kwok],
        })
    }

    /// An error with the end of the log, if a program has exited.
    pub fn check(&mut self) -> Result<(), String> {
        for process in &mut self.processes {
            process.wait_ready(|| Some(()))?;
        }
        Ok(())
    }
}

fn controller_manager(programs: &Programs, admin: &Path, folder: &Path, port: u16) -> Command {
    let mut command = programs.command(CONTROLLER_MANAGER);
    serving(programs, &mut command, folder, CONTROLLER_MANAGER, port);
    command
        .arg(format!("--kubeconfig={}", admin.display()))
        .arg("--leader-elect=false")
        .arg(format!(
            "--controllers={}",
            programs.known_controllers(&CONTROLLERS)
        ))
        .arg(format!("--concurrent-job-syncs={JOB_SYNCS}"))
        .arg(format!("--kube-api-qps={REQUESTS_PER_SECOND}"))
        .arg(format!("--kube-api-burst={REQUESTS_PER_SECOND}"));
    command
}

fn scheduler(
    programs: &Programs,
    admin: &Path,
    folder: &Path,
    port: u16,
) -> Result<Command, String> {
    let configuration = serde_json::json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {
            "kubeconfig": admin,
            "qps": REQUESTS_PER_SECOND,
            "burst": REQUESTS_PER_SECOND,
        },
        "leaderElection": {"leaderElect": false},
    });
    let path = folder.join("kube-scheduler.json");
    fs::write(&path, configuration.to_string()).map_err(|e| e.to_string())?;
    let mut command = programs.command(SCHEDULER);
    serving(programs, &mut command, folder, SCHEDULER, port);
    command.arg(format!("--config={}", path.display()));
    Ok(command)
}

/// The flags that the controller manager and the scheduler have in common.
fn serving(programs: &Programs, command: &mut Command, folder: &Path, name: &str, port: u16) {
    command
        .arg("--bind-address=127.0.0.1")
        .arg(format!("--secure-port={port}"))
        .arg(format!("--cert-dir={}", folder.join(name).display()))
        // Only the health endpoints are used, which need no authorization.
        .arg("--authentication-skip-lookup=true")
        // The same feature gate as the API server: pod groups.
        .arg(format!(
            "--feature-gates={}",
            programs.feature_gates(&["GenericWorkload"])
        ));
}

fn kwok(programs: &Programs, admin: &Path, port: u16) -> Command {
    let mut command = programs.command(KWOK);
    command
        .current_dir(ROOT)
        .arg(format!("--kubeconfig={}", admin.display()))
        .arg("--config=tests/minicluster/stages.yaml")
        .arg("--manage-all-nodes")
        .arg(format!("--server-address=127.0.0.1:{port}"));
    command
}

/// Whether a program's health endpoint at `path` returns 200. The program generates its certificate itself, as the API
/// server does.
fn is_healthy(folder: &Path, name: &str, port: u16, path: &str) -> Option<()> {
    let ca = folder.join(name).join(name).with_extension("crt");
    let endpoint = Endpoint {
        port,
        ca: &ca,
        token: None,
    };
    (endpoint.get(path)?.0 == 200).then_some(())
}
