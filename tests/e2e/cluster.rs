//! etcd and kube-apiserver on free ports for one test run, and workers for trials that need them.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

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

/// The token of the service account that `examples/install/server.yaml` grants rights to.
const SERVER_TOKEN: &str = "lockkeeper";
pub const SERVER_ACCOUNT: &str = "system:serviceaccount:lockkeeper-system:lockkeeper";

/// The token of the controller's service account.
const CONTROLLER_TOKEN: &str = "lockkeeper-controller";

/// The name of that service account.
pub const CONTROLLER_ACCOUNT: &str =
    "system:serviceaccount:lockkeeper-system:lockkeeper-controller";

/// The token of a service account without any rights.
const UNPRIVILEGED_TOKEN: &str = "stranger";

/// The name of that service account.
pub const UNPRIVILEGED_ACCOUNT: &str = "system:serviceaccount:lockkeeper-system:stranger";

/// The audit policy and the audit log.
const AUDIT_POLICY: &str = "audit-policy.json";
const AUDIT_LOG: &str = "audit.log";

/// The file of admission plugins, if the API server has one.
pub const ADMISSION_CONFIG: &str = "admission.json";

/// Feature gates that are off by default: Kubernetes' Workload and PodGroup need them, and tokens of API servers.
pub const FEATURES: [&str; 6] = [
    "GenericWorkload",
    "TopologyAwareWorkloadScheduling",
    "DRAWorkloadResourceClaims",
    "PodGroupPreemptionPolicy",
    "CompositePodGroup",
    "APIServerWebhookAuthenticationToken",
];

/// A running control plane. Dropping it stops the processes and removes their data.
pub struct Cluster {
    programs: Programs,
    kubectl: Kubectl,
    server: PathBuf,
    controller: PathBuf,
    unprivileged: PathBuf,
    /// The client port of etcd and the secure port of the API server.
    ports: [u16; 2],
    has_jobset: bool,
    // Dropped in this order: clients of the API server, the API server, etcd, and their files.
    workers: Option<Workers>,
    api_server: Option<Process>,
    _etcd: Process,
    folder: TempDir,
}

impl Cluster {
    /// Starts the control plane and waits until it is ready.
    pub fn start() -> Result<Self, String> {
        Self::start_in(new_folder()?)
    }

    /// Starts the control plane with an audit log of the requests of lockkeeper's accounts.
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

    /// The kubeconfig of the webhook, with the rights that an installation grants.
    pub fn server(&self) -> &Path {
        &self.server
    }

    /// The kubeconfig of the controller, with the rights that an installation grants.
    pub fn controller(&self) -> &Path {
        &self.controller
    }

    /// The kubeconfig of an account without rights; a trial may grant some.
    pub fn unprivileged(&self) -> &Path {
        &self.unprivileged
    }

    /// A client of the API server with the administrator's token.
    pub fn client(&self) -> Client {
        Client::new(self.ports[1], certificate(self.folder.path()), TOKEN)
    }

    /// The API server for a watch by the administrator.
    pub fn watch_server(&self) -> WatchServer {
        WatchServer {
            port: self.ports[1],
            ca: certificate(self.folder.path()),
            token: TOKEN,
        }
    }

    /// The API server for the proxy in front of it, with the controller's token.
    pub fn controller_server(&self) -> WatchServer {
        WatchServer {
            token: CONTROLLER_TOKEN,
            ..self.watch_server()
        }
    }

    /// Stops the API server gracefully. Its data stays in etcd.
    pub fn stop_api_server(&mut self) -> Result<(), String> {
        match self.api_server.take() {
            Some(server) => server.terminate().map(drop),
            None => Ok(()),
        }
    }

    /// Kills the API server.
    pub fn kill_api_server(&mut self) {
        self.api_server = None;
    }

    /// Starts the API server on the same port and with the same data.
    pub fn start_api_server(&mut self) -> Result<(), String> {
        let [etcd, secure] = self.ports;
        let server = start_api_server(&self.programs, self.folder.path(), etcd, secure)?;
        self.api_server = Some(server);
        Ok(())
    }

    /// Starts the controller manager, the scheduler and kwok unless they run, and waits until they are ready. There
    /// are no nodes until `add_nodes`.
    pub fn start_workers(&mut self) -> Result<(), String> {
        if let Some(workers) = &mut self.workers {
            return workers.check();
        }
        let admin = self.kubectl.kubeconfig();
        let workers = Workers::start(&self.programs, admin, self.folder.path())?;
        self.workers = Some(workers);
        Ok(())
    }

    /// Stops the workers. Their unfinished work stays unfinished.
    pub fn stop_workers(&mut self) {
        self.workers = None;
    }

    /// Whether workers are running.
    pub fn has_workers(&self) -> bool {
        self.workers.is_some()
    }

    /// Adds fake nodes and waits until they are ready. Requires workers.
    #[track_caller]
    pub fn add_nodes(&self, nodes: &Nodes<'_>) {
        assert!(self.has_workers(), "nodes get ready only with workers");
        nodes::add(&self.kubectl, nodes);
    }

    /// Installs the CRD of `JobSet` and waits until it is served. No controller acts on JobSets.
    #[track_caller]
    pub fn install_jobset(&mut self) {
        let crd = self.programs.jobset().unwrap_or_else(|e| panic!("{e}"));
        self.kubectl.install_crds(&crd);
        self.has_jobset = true;
    }

    /// Whether the CRD of `JobSet` is installed.
    pub fn has_jobset(&self) -> bool {
        self.has_jobset
    }

    /// The audit log, one event per line. The API server writes an event before it sends the response.
    pub fn audit_log(&self) -> Result<String, String> {
        let path = self.folder.path().join(AUDIT_LOG);
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// The folder with the files of the cluster and of the servers under test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn new_folder() -> Result<TempDir, String> {
    TempDir::with_prefix("lockkeeper-e2e-").map_err(|e| e.to_string())
}

/// Logs the requests of lockkeeper's accounts, without request and response bodies.
fn audit_policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [
            {
                "level": "Metadata",
                "users": [SERVER_ACCOUNT, CONTROLLER_ACCOUNT, UNPRIVILEGED_ACCOUNT],
            },
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
            programs.feature_gates(&FEATURES)
        ))
        // Without workers no controller creates service accounts, and no controller ever removes the taints of nodes.
        .arg("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition");
    if folder.join(ADMISSION_CONFIG).is_file() {
        let config = file(ADMISSION_CONFIG);
        command.arg(format!("--admission-control-config-file={config}"));
    }
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
        // A post-start loop creates the namespace; readiness does not wait for it.
        let populated = endpoint.get("/api/v1/namespaces/default")?.0 == 200;
        (ready && populated).then_some(())
    })?;
    Ok(server)
}

/// Writes the tokens of the accounts and the signing key of service accounts.
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

/// The API server creates this file itself; the last certificate in it is its CA.
fn certificate(folder: &Path) -> PathBuf {
    folder.join("certificates").join("apiserver.crt")
}

/// Returns free ports. Of one process, they differ from all that were returned before.
///
/// They are below the ports that the kernel gives to connections: one that the kernel chooses is often taken by
/// another connection before the program listens.
pub fn free_ports<const COUNT: usize>() -> std::io::Result<[u16; COUNT]> {
    const FIRST: u32 = 12_000;
    const COUNT_OF_PORTS: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes that run at once start at different ports.
    let start = std::process::id().wrapping_mul(1_009);
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let mut ports = [0; COUNT];
    for port in &mut ports {
        let mut candidates = (0..COUNT_OF_PORTS).map(|_| {
            let number = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
            u16::try_from(FIRST + number % COUNT_OF_PORTS).unwrap_or(u16::MAX)
        });
        *port = candidates
            .find(|port| is_free(*port))
            .ok_or_else(|| std::io::Error::other("all ports are taken"))?;
    }
    Ok(ports)
}
