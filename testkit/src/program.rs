//! Runs a program of the workspace.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a program in a folder, with no environment and no input. Returns the exit code, standard output and standard error.
#[must_use]
pub fn run_program(program: &str, folder: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder);
    command.env_clear().stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}
