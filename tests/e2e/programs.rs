//! The programs of the test cluster.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::ROOT;

/// The source of the control plane's programs.
#[derive(Clone)]
pub enum Programs {
    /// One binary; its first argument is the name of the program.
    Minicluster(PathBuf),
    /// A folder with one binary for each.
    Folder(PathBuf),
}

impl Programs {
    /// The programs that the environment names, or those built here.
    pub fn find() -> Result<Self, String> {
        if let Some(path) = env::var_os("LOCKKEEPER_MINICLUSTER") {
            return Ok(Self::Minicluster(path.into()));
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
            Ok(Self::Minicluster(path.into()))
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
            Self::Minicluster(binary) => {
                let mut path = binary.clone().into_os_string();
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
            Self::Minicluster(path) => {
                let mut command = Command::new(path);
                command.arg(program);
                command
            }
            Self::Folder(path) => Command::new(path.join(program)),
        }
    }
}
