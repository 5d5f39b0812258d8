//! etcd and kube-apiserver on free ports, for one run of the tests, and workers where asked for.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;
use crate::https::Endpoint;
use crate::kubectl::Kubectl;
use crate::nodes::{self, Nodes};
use crate::process::Process;
use crate::programs::Programs;
use crate::watcher::WatchServer;
use crate::workers::Workers;

/// The administrator's token.
const TOKEN: &str = "minicluster";

/// The token of the account that `examples/install/server.yaml` gives rights to.
const SERVER_TOKEN: &str = "lockkeeper";
pub const SERVER_ACCOUNT: &str = "system:serviceaccount:lockkeeper-system:lockkeeper";

/// The token of the account that the controller has.
const CONTROLLER_TOKEN: &str = "lockkeeper-controller";

/// The name of that account.
pub const CONTROLLER_ACCOUNT: &str =
    "system:serviceaccount:lockkeeper-system:lockkeeper-controller";

/// The token of an account that nobody has given rights to.
const UNPRIVILEGED_TOKEN: &str = "stranger";

/// The name of that account.
pub const UNPRIVILEGED_ACCOUNT: &str = "system:serviceaccount:lockkeeper-system:stranger";

/// Where it is said what is written down of requests, and where that is.
const AUDIT_POLICY: &str = "audit-policy.json";
const AUDIT_LOG: &str = "audit.log";

/// What the API server has that is off by default: all that Workloads and PodGroups of Kubernetes may ask for.
pub const FEATURES: [&str; 5] = [
    "GenericWorkload",
    "TopologyAwareWorkloadScheduling",
    "DRAWorkloadResourceClaims",
    "PodGroupPreemptionPolicy",
    "CompositePodGroup",
];

/// A running control plane. Dropping it ends it and removes what it stored.
pub struct Cluster {
    programs: Programs,
    kubectl: Kubectl,
    server: PathBuf,
    controller: PathBuf,
    unprivileged: PathBuf,
    /// The ports of etcd and of the API server.
    ports: [u16; 2],
    has_jobset: bool,
    // Dropped in this order: who asks the API server, itself, what it writes to, their files.
    workers: Option<Workers>,
    api_server: Option<Process>,
    _etcd: Process,
    folder: TempDir,
}

impl Cluster {
    /// Starts the control plane and waits until it can be used.
    pub fn start() -> Result<Self, String> {
        Self::start_in(new_folder()?)
    }

    /// The same, and what the accounts of an installation ask for is written down.
    pub fn start_audited() -> Result<Self, String> {
        let folder = new_folder()?;
        let policy = folder.path().join(AUDIT_POLICY);
        fs::write(policy, audit_policy().to_string()).map_err(|e| e.to_string())?;
        Self::start_in(folder)
    }

    fn start_in(folder: TempDir) -> Result<Self, String> {
        let programs = Programs::find()?;
        let [client, peer, secure] = free_ports().map_err(|e| format!("no free port: {e}"))?;

        let etcd = start_etcd(&programs, folder.path(), client, peer)?;
        write_credentials(folder.path()).map_err(|e| e.to_string())?;
        let api_server = start_api_server(&programs, folder.path(), client, secure)?;
        let kubectl = Kubectl::new(
            programs.clone(),
            write_kubeconfig(folder.path(), "admin", TOKEN, secure)?,
            folder.path().join("home"),
        );
        let account = |name, token| write_kubeconfig(folder.path(), name, token, secure);
        let server = account("server", SERVER_TOKEN)?;
        let controller = account("controller", CONTROLLER_TOKEN)?;
        let stranger = account("stranger", UNPRIVILEGED_TOKEN)?;
        Ok(Self {
            programs,
            kubectl,
            server,
            controller,
            unprivileged: stranger,
            ports: [client, secure],
            has_jobset: false,
            workers: None,
            api_server: Some(api_server),
            _etcd: etcd,
            folder,
        })
    }

    /// kubectl as the administrator of this cluster.
    pub fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// The credentials of the server: no more rights than an installation gives it.
    pub fn server(&self) -> &Path {
        &self.server
    }

    /// The credentials of the controller: no more rights than an installation gives it.
    pub fn controller(&self) -> &Path {
        &self.controller
    }

    /// The credentials of an account that has no rights until a trial gives it some.
    pub fn unprivileged(&self) -> &Path {
        &self.unprivileged
    }

    /// The API server as the administrator's programs see it.
    pub fn client(&self) -> Client {
        Client::new(self.ports[1], certificate(self.folder.path()), TOKEN)
    }

    /// The same for a watch.
    pub fn watch_server(&self) -> WatchServer {
        WatchServer {
            port: self.ports[1],
            ca: certificate(self.folder.path()),
            token: TOKEN,
        }
    }

    /// The same for who stands between the controller and the API server.
    pub fn controller_server(&self) -> WatchServer {
        WatchServer {
            token: CONTROLLER_TOKEN,
            ..self.watch_server()
        }
    }

    /// Asks the API server to end, and waits until it has. What it stored stays in etcd.
    pub fn stop_api_server(&mut self) -> Result<(), String> {
        match self.api_server.take() {
            Some(server) => server.terminate().map(drop),
            None => Ok(()),
        }
    }

    /// Ends the API server in the middle of whatever it does.
    pub fn kill_api_server(&mut self) {
        self.api_server = None;
    }

    /// Starts the API server again, on its port and with what it stored.
    pub fn start_api_server(&mut self) -> Result<(), String> {
        let [etcd, secure] = self.ports;
        let server = start_api_server(&self.programs, self.folder.path(), etcd, secure)?;
        self.api_server = Some(server);
        Ok(())
    }

    /// Starts what makes and runs the pods of Jobs, if it does not run, and waits until it can be
    /// used. There are no nodes until `add_nodes`.
    pub fn start_workers(&mut self) -> Result<(), String> {
        if let Some(workers) = &mut self.workers {
            return workers.check();
        }
        let admin = self.kubectl.kubeconfig();
        let workers = Workers::start(&self.programs, admin, self.folder.path())?;
        self.workers = Some(workers);
        Ok(())
    }

    /// Ends the workers. What they have not done yet stays undone.
    pub fn stop_workers(&mut self) {
        self.workers = None;
    }

    /// Whether workers were started, and not stopped since.
    pub fn has_workers(&self) -> bool {
        self.workers.is_some()
    }

    /// Adds fake nodes and waits until they are ready. It takes workers.
    #[track_caller]
    pub fn add_nodes(&self, nodes: &Nodes<'_>) {
        assert!(self.has_workers(), "without workers no node gets ready");
        nodes::add(&self.kubectl, nodes);
    }

    /// Installs the CRD of `JobSet` and waits until it is served. Nothing acts on its objects.
    #[track_caller]
    pub fn install_jobset(&mut self) {
        let crd = self.programs.jobset().unwrap_or_else(|e| panic!("{e}"));
        let crd = crd.to_str().unwrap();
        let apply = ["apply", "--server-side", "-f", crd];
        self.kubectl.run(&apply).expect_accepted_without_warning();
        let wait = [
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            "-f",
            crd,
        ];
        self.kubectl.run(&wait).expect_accepted();
        self.has_jobset = true;
    }

    /// Whether the CRD of `JobSet` was installed.
    pub fn has_jobset(&self) -> bool {
        self.has_jobset
    }

    /// What was asked for, one event a line, where it is written down. The API server writes before it answers.
    pub fn audit_log(&self) -> Result<String, String> {
        let path = self.folder.path().join(AUDIT_LOG);
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Where the cluster's files are, and those of the servers tested on it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn new_folder() -> Result<TempDir, String> {
    TempDir::with_prefix("lockkeeper-e2e-").map_err(|e| e.to_string())
}

/// Whose requests are written down, and of these what was asked, not what was sent.
fn audit_policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [
            {"level": "Metadata", "users": [SERVER_ACCOUNT, CONTROLLER_ACCOUNT]},
            {"level": "None"},
        ],
    })
}

fn start_etcd(
    programs: &Programs,
    folder: &Path,
    client: u16,
    peer: u16,
) -> Result<Process, String> {
    let client_url = format!("http://127.0.0.1:{client}");
    let peer_url = format!("http://127.0.0.1:{peer}");
    let mut command = programs.command("etcd");
    command
        .env("MINICLUSTER_EXIT_WITH_STDIN", "1")
        .arg("--name=e2e")
        .arg(format!("--data-dir={}", folder.join("etcd").display()))
        .arg(format!("--listen-client-urls={client_url}"))
        .arg(format!("--advertise-client-urls={client_url}"))
        .arg(format!("--listen-peer-urls={peer_url}"))
        .arg(format!("--initial-advertise-peer-urls={peer_url}"))
        .arg(format!("--initial-cluster=e2e={peer_url}"))
        .arg("--log-level=warn")
        .arg("--unsafe-no-fsync");
    let mut etcd = Process::start("etcd", command, &folder.join("etcd.log"), None)?;
    etcd.wait_ready(|| TcpStream::connect((Ipv4Addr::LOCALHOST, client)).ok())?;
    Ok(etcd)
}

fn start_api_server(
    programs: &Programs,
    folder: &Path,
    etcd: u16,
    port: u16,
) -> Result<Process, String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut command = programs.command("kube-apiserver");
    command
        .env("MINICLUSTER_EXIT_WITH_STDIN", "1")
        .arg(format!("--etcd-servers=http://127.0.0.1:{etcd}"))
        .arg(format!("--secure-port={port}"))
        .arg("--bind-address=127.0.0.1")
        .arg("--advertise-address=127.0.0.1")
        // A loopback address cannot be an endpoint of the `kubernetes` service.
        .arg("--endpoint-reconciler-type=none")
        .arg(format!("--cert-dir={}", file("certificates")))
        .arg("--authorization-mode=RBAC")
        .arg(format!("--token-auth-file={}", file("tokens.csv")))
        .arg("--service-account-issuer=https://e2e.invalid")
        .arg(format!(
            "--service-account-key-file={}",
            file("account.pub")
        ))
        .arg(format!(
            "--service-account-signing-key-file={}",
            file("account.key")
        ))
        .arg("--service-cluster-ip-range=10.0.0.0/24")
        .arg("--runtime-config=api/all=true")
        .arg(format!(
            "--feature-gates={}",
            FEATURES.join("=true,") + "=true"
        ))
        // Nobody makes service accounts while there are no workers, nor unmarks nodes ever.
        .arg("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition");
    if folder.join(AUDIT_POLICY).is_file() {
        command
            .arg(format!("--audit-policy-file={}", file(AUDIT_POLICY)))
            .arg(format!("--audit-log-path={}", file(AUDIT_LOG)));
    }
    let log = folder.join("kube-apiserver.log");
    let mut server = Process::start("kube-apiserver", command, &log, None)?;

    let certificate = certificate(folder);
    let endpoint = Endpoint {
        port,
        ca: &certificate,
        token: Some(TOKEN),
    };
    server.wait_ready(|| {
        let ready = endpoint.get("/readyz")? == (200, "ok".to_owned());
        // Made by a loop of the server that readiness does not wait for.
        let populated = endpoint.get("/api/v1/namespaces/default")?.0 == 200;
        (ready && populated).then_some(())
    })?;
    Ok(server)
}

/// The tokens of the accounts and the key of service accounts.
fn write_credentials(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let key = rcgen::KeyPair::generate()?;
    fs::write(folder.join("account.key"), key.serialize_pem())?;
    fs::write(folder.join("account.pub"), key.public_key_pem())?;
    fs::write(
        folder.join("tokens.csv"),
        format!(
            "{TOKEN},admin,admin,system:masters\n{SERVER_TOKEN},{SERVER_ACCOUNT},server\n\
             {CONTROLLER_TOKEN},{CONTROLLER_ACCOUNT},controller\n\
             {UNPRIVILEGED_TOKEN},{UNPRIVILEGED_ACCOUNT},stranger\n"
        ),
    )?;
    Ok(())
}

fn write_kubeconfig(folder: &Path, user: &str, token: &str, port: u16) -> Result<PathBuf, String> {
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": {
            "server": format!("https://127.0.0.1:{port}"),
            "certificate-authority": certificate(folder),
        }}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": user}}],
        "current-context": "e2e",
    });
    let path = folder.join(format!("kubeconfig-{user}"));
    fs::write(&path, format!("{kubeconfig:#}\n")).map_err(|e| e.to_string())?;
    Ok(path)
}

/// The API server makes this file itself; the last certificate in it is its CA.
fn certificate(folder: &Path) -> PathBuf {
    folder.join("certificates").join("apiserver.crt")
}

/// Ports that were free a moment ago. All are held until the last is known, so
/// that they differ.
pub fn free_ports<const COUNT: usize>() -> std::io::Result<[u16; COUNT]> {
    let mut ports = [0; COUNT];
    let mut held = Vec::with_capacity(COUNT);
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}
