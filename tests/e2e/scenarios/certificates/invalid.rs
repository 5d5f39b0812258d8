//! Command lines, settings and folders without usable certificates.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::{SECRET, text};
use crate::fixture::Fixture;
use crate::lockkeeper::{self, Protocol};

/// The server reports invalid settings before it serves.
pub fn invalid_certificates(stage: &mut Fixture, _: Protocol) {
    let folder = stage.new_folder();
    fs::create_dir_all(&folder).unwrap();
    let kubeconfig = stage.cluster().server().to_str().unwrap().to_owned();
    let usage: [(&[&str], &str); 6] = [
        (
            &["--tls-secret", "lockkeeper-tls"],
            "such as lockkeeper-system/lockkeeper-tls",
        ),
        (
            &["--tls-secret", SECRET, "--inject", "services/lockkeeper"],
            "customresourcedefinitions/NAME",
        ),
        (
            &[
                "--tls-secret",
                SECRET,
                "--inject",
                "customresourcedefinitions",
            ],
            "its kind and its name",
        ),
        (&["--tls-secret", SECRET], "set --kubeconfig"),
        (
            &["--tls-secret", SECRET, "--tls-dir", "tls"],
            "cannot be used with",
        ),
        (
            &[
                "--tls-secret",
                SECRET,
                "--kubeconfig",
                &kubeconfig,
                "--tls-name",
                "*.a",
            ],
            "wildcards",
        ),
    ];
    for (flags, part) in usage {
        assert_fails(&lockkeeper::run(&[&["serve"], flags].concat()), 2, part);
    }
    let config = folder.join("config.yaml");
    for (yaml, part) in [
        (
            "secret: lockkeeper-tls",
            "config.yaml:1:34: \"lockkeeper-tls\" is not of the form namespace/name",
        ),
        (
            "inject: [pods/a]",
            "\"pods/a\" is not a kind with a CA bundle",
        ),
        ("overlapSeconds: 0", "not in the range from 1 to 3600"),
        ("caDays: 36501", "not in the range from 1 to 36500"),
        ("servingDays: 0", "not in the range from 1 to 3650"),
    ] {
        fs::write(&config, format!("webhook: {{certificates: {{{yaml}}}}}\n")).unwrap();
        let run = lockkeeper::run(&["serve", "--config", config.to_str().unwrap()]);
        assert_fails(&run, 2, part);
    }
    folders(&folder);
}

/// A file in place of the directory, a directory that other users may read, and a full disk.
#[track_caller]
fn folders(folder: &Path) {
    let file = folder.join("file");
    fs::write(&file, "").unwrap();
    let inside = file.join("tls");
    let run = lockkeeper::run(&["serve", "--tls-dir", inside.to_str().unwrap()]);
    assert_fails(&run, 1, "cannot make the directory");
    let open = folder.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = lockkeeper::run(&["serve", "--tls-dir", open.to_str().unwrap()]);
    assert_fails(&run, 1, "run: chmod 700");
    let full = folder.join("full");
    let run = Command::new("sh")
        // A limit on the size of files: the write fails as on a full disk.
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"])
        .arg(lockkeeper::binary().get_program())
        .args(["serve", "--tls-dir", full.to_str().unwrap()])
        .output()
        .unwrap();
    assert_fails(
        &run,
        1,
        "check its owner and free space, or name another directory",
    );
    assert_eq!(
        fs::read_dir(&full).unwrap().count(),
        0,
        "nothing is left behind"
    );
}

#[track_caller]
fn assert_fails(output: &Output, code: i32, part: &str) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    // clap breaks lines.
    let flat = stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(part), "{part} is not in:\n{stderr}");
}
