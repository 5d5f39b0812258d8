//! Runs helm and kubeconform, which `tests/tool` builds, and returns their output.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::ROOT;
use crate::programs::OLDER_MINOR;

/// The folder of the chart, relative to the root of the repository.
pub const CHART: &str = "charts/lockkeeper";

/// The name and the namespace of the release.
pub const RELEASE: &str = "lockkeeper";
pub const NAMESPACE: &str = "lockkeeper-system";

/// The path of a tool; `tests/tool` builds it if necessary.
#[track_caller]
fn tool(name: &str, path: &'static OnceLock<PathBuf>) -> &'static Path {
    path.get_or_init(|| {
        let output = Command::new("tests/tool")
            .arg(name)
            .current_dir(ROOT)
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "tests/tool {name}");
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
    })
}

/// The output of one run.
pub struct ToolOutput {
    pub ok: bool,
    pub stdout: String,
    pub stderr: String,
}

impl ToolOutput {
    #[track_caller]
    fn run(mut command: Command) -> Self {
        let output = command.current_dir(ROOT).output().unwrap();
        Self {
            ok: output.status.success(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Returns the output if the run succeeded without messages on stderr, where helm prints warnings of the API
    /// server.
    #[track_caller]
    pub fn assert_silent(self) -> Self {
        assert!(self.ok, "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stderr, "");
        self
    }

    /// The error message of a failed run.
    #[track_caller]
    pub fn expect_rejected(self) -> String {
        assert!(!self.ok, "{}", self.stdout);
        self.stderr
    }
}

/// helm with its own home folder, and optionally a cluster.
pub struct Helm {
    home: PathBuf,
    kubeconfig: Option<PathBuf>,
}

impl Helm {
    /// Without a cluster.
    pub fn without_cluster(home: &Path) -> Self {
        Self {
            home: home.to_owned(),
            kubeconfig: None,
        }
    }

    /// With the credentials of a cluster.
    pub fn on_cluster(home: &Path, kubeconfig: &Path) -> Self {
        Self {
            home: home.to_owned(),
            kubeconfig: Some(kubeconfig.to_owned()),
        }
    }

    /// Runs helm at the root of the repository.
    #[track_caller]
    pub fn run(&self, arguments: &[impl AsRef<OsStr>]) -> ToolOutput {
        static PATH: OnceLock<PathBuf> = OnceLock::new();
        let mut command = Command::new(tool("helm", &PATH));
        for (name, folder) in [("CACHE", "cache"), ("CONFIG", "config"), ("DATA", "data")] {
            command.env(format!("HELM_{name}_HOME"), self.home.join(folder));
        }
        // Without a kubeconfig helm must not reach a cluster by accident.
        let none = self.home.join("no-kubeconfig");
        command.env("KUBECONFIG", self.kubeconfig.as_ref().unwrap_or(&none));
        command.env_remove("HELM_NAMESPACE").args(arguments);
        ToolOutput::run(command)
    }

    /// Renders the chart with these values.
    #[track_caller]
    pub fn template(&self, values: &str) -> ToolOutput {
        self.render(values, &[])
    }

    /// Renders the chart with these values for the version of Kubernetes that the tests run on.
    #[track_caller]
    pub fn template_for_cluster(&self, values: &str) -> ToolOutput {
        let version = OLDER_MINOR.map(|minor| format!("--kube-version=1.{minor}.0"));
        self.render(values, version.as_slice())
    }

    #[track_caller]
    fn render(&self, values: &str, more: &[String]) -> ToolOutput {
        let path = self.values(values);
        let path = path.to_str().unwrap();
        let mut flags = vec!["template", RELEASE, CHART, "--namespace", NAMESPACE];
        flags.extend(["--values", path]);
        flags.extend(more.iter().map(String::as_str));
        self.run(&flags)
    }

    /// Writes these values to a file.
    #[track_caller]
    pub fn values(&self, values: &str) -> PathBuf {
        std::fs::create_dir_all(&self.home).unwrap();
        let path = self.home.join("values.yaml");
        std::fs::write(&path, values).unwrap();
        path
    }
}

/// Runs kubeconform on a file with the schemas of this folder.
#[track_caller]
pub fn kubeconform(schemas: &Path, skipped: &[&str], file: &Path) -> ToolOutput {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let mut command = Command::new(tool("kubeconform", &PATH));
    let location = format!(
        "{}/{{{{.ResourceKind}}}}-{{{{.Group}}}}-{{{{.ResourceAPIVersion}}}}.json",
        schemas.display()
    );
    command.args(["-strict", "-summary", "-output=text", "-schema-location"]);
    command.arg(location).arg("-skip").arg(skipped.join(","));
    command.arg(file);
    ToolOutput::run(command)
}

/// Parses the objects of a YAML text.
#[track_caller]
pub fn objects(yaml: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    all.into_iter().filter(Value::is_object).collect()
}
