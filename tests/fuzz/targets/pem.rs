//! Files that are no certificate and key are refused, and the refusal does not repeat them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockkeeper_webhook::tls::{TlsOptions, server_config};
use std::sync::LazyLock;
use std::{fs, path::PathBuf};
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder"));

fuzz_target!(|halves: (&[u8], &[u8])| {
    let write = |name: &str, content: &[u8]| -> PathBuf {
        let path = FOLDER.path().join(name);
        fs::write(&path, content).expect("a file");
        path
    };
    let (certificate, key) = (write("tls.crt", halves.0), write("tls.key", halves.1));
    if let Err(error) = server_config(&certificate, &key, &TlsOptions::default()) {
        assert!(error.to_string().len() < 1_000);
    }
});
