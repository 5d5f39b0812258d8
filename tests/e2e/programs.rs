//! The programs of the test cluster.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::ROOT;

/// The source of the control plane's programs.
#[derive(Clone)]
pub enum Programs {
    /// Binaries whose first argument is the name of the program.
    Minicluster {
        /// All programs of the newest Kubernetes.
        newest: PathBuf,
        /// The control plane of an older Kubernetes, in place of the newest one.
        older: Option<OlderControlPlane>,
    },
    /// A folder with one binary for each.
    Folder(PathBuf),
}

/// The control plane of an older Kubernetes: `tests/minicluster/build.sh VERSION`.
#[derive(Clone)]
pub struct OlderControlPlane {
    binary: PathBuf,
    /// The helps of the API server and the controller manager, which name the feature gates and controllers that they know.
    helps: String,
}

impl OlderControlPlane {
    /// Its programs; etcd and kwok are of the newest Kubernetes.
    const PROGRAMS: [&str; 4] = [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kubectl",
    ];

    fn new(binary: PathBuf) -> Result<Self, String> {
        let help = |program| {
            let output = Command::new(&binary).args([program, "--help"]).output();
            let output = output.map_err(|e| format!("{} does not start: {e}", binary.display()))?;
            Ok::<_, String>(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let helps = help("kube-apiserver")? + &help("kube-controller-manager")?;
        Ok(Self { binary, helps })
    }
}

impl Programs {
    /// The programs that the environment names, or those built here.
    pub fn find() -> Result<Self, String> {
        let older = env::var_os("LOCKKEEPER_CONTROL_PLANE")
            .map(|path| OlderControlPlane::new(path.into()))
            .transpose()?;
        if let Some(path) = env::var_os("LOCKKEEPER_MINICLUSTER") {
            let newest = path.into();
            return Ok(Self::Minicluster { newest, older });
        }
        if let Some(path) = env::var_os("KUBEBUILDER_ASSETS") {
            return Ok(Self::Folder(path.into()));
        }
        let output = Command::new("tests/minicluster/build.sh")
            .current_dir(ROOT)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|e| format!("tests/minicluster/build.sh does not start: {e}"))?;
        let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() && !path.is_empty() {
            let newest = path.into();
            Ok(Self::Minicluster { newest, older })
        } else {
            Err(format!(
                "tests/minicluster/build.sh ended with {}",
                output.status
            ))
        }
    }

    /// An error with the remedy, unless all of `programs` exist.
    pub fn require(&self, programs: &[&str]) -> Result<(), String> {
        let Self::Folder(path) = self else {
            return Ok(());
        };
        let is_missing = |program: &&&str| !path.join(program).is_file();
        let missing: Vec<&str> = programs.iter().filter(is_missing).copied().collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!(
            "KUBEBUILDER_ASSETS has no {}; put them there too, or unset it, and \
             tests/minicluster/build.sh builds all programs",
            missing.join(", ")
        ))
    }

    /// The file with the CRD of `JobSet`.
    pub fn jobset(&self) -> Result<PathBuf, String> {
        self.require(&["jobset.yaml"])?;
        let path = match self {
            Self::Minicluster { newest, .. } => {
                let mut path = newest.clone().into_os_string();
                path.push("-jobset.yaml");
                path.into()
            }
            Self::Folder(folder) => folder.join("jobset.yaml"),
        };
        if path.is_file() {
            Ok(path)
        } else {
            Err(format!(
                "no {}; tests/minicluster/build.sh fetches it",
                path.display()
            ))
        }
    }

    /// A command that runs `program`.
    pub fn command(&self, program: &str) -> Command {
        match self {
            Self::Minicluster { newest, older } => {
                let older = older
                    .as_ref()
                    .filter(|_| OlderControlPlane::PROGRAMS.contains(&program));
                let mut command = Command::new(older.map_or(newest, |older| &older.binary));
                command.arg(program);
                command
            }
            Self::Folder(path) => Command::new(path.join(program)),
        }
    }

    /// Those of `features` that the API server knows, as the value of `--feature-gates`.
    pub fn feature_gates(&self, features: &[&str]) -> String {
        let known = features
            .iter()
            .filter(|feature| self.knows(&format!("{feature}=true|false")));
        let enabled: Vec<String> = known.map(|feature| format!("{feature}=true")).collect();
        enabled.join(",")
    }

    /// Those of `controllers` that the controller manager knows.
    pub fn known_controllers(&self, controllers: &[&str]) -> String {
        let known = controllers.iter().filter(|it| self.knows(it));
        known.copied().collect::<Vec<_>>().join(",")
    }

    fn knows(&self, word: &str) -> bool {
        match self {
            Self::Minicluster {
                older: Some(older), ..
            } => older.helps.contains(word),
            _ => true,
        }
    }
}

/// Whether the API server has mutating admission policies.
pub fn has_mutating_policies() -> bool {
    OLDER_MINOR.is_none_or(|minor| minor >= 36)
}

/// The minor release of the older Kubernetes that the environment names; `None` with the newest one.
pub static OLDER_MINOR: LazyLock<Option<u32>> = LazyLock::new(|| {
    let binary = env::var_os("LOCKKEEPER_CONTROL_PLANE")?;
    let output = Command::new(&binary)
        .args(["kubectl", "version", "--client", "--output=json"])
        .output()
        .unwrap_or_else(|e| panic!("{} does not start: {e}", binary.display()));
    let version: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let minor = version["clientVersion"]["minor"].as_str();
    Some(minor.unwrap_or_default().parse().unwrap())
});
