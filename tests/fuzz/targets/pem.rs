//! Files that are no certificate, key or CA are refused, and the refusal does not repeat them.
//!
//! An input is a whole PEM file; or, when it begins with C or K, the DER of a certificate or a key,
//! which is put into a section here: nobody finds base64 by chance.
#![no_main]

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use libfuzzer_sys::fuzz_target;
use lockkeeper_webhook::bootstrap::{self, Files};
use lockkeeper_webhook::tls::{ClientVerification, Serving, TlsOptions};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::time::SystemTime;
use tempfile::TempDir;

/// The longest refusal: two paths and a sentence, in bytes.
const REFUSAL_BYTES_MAX: usize = 1_000;

/// A folder with a good pair.
static GOOD: LazyLock<(TempDir, Files)> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    let directory = folder.path().join("tls");
    let names = ["localhost".to_owned()];
    let files = bootstrap::ensure(&directory, &names, SystemTime::now()).expect("certificates");
    (folder, files)
});

fuzz_target!(|input: &[u8]| {
    let (folder, good) = &*GOOD;
    let file = folder.path().join("input.pem");
    fs::write(&file, in_pem(input)).expect("a file");
    check(&file, &good.key, None);
    check(&good.certificate, &file, None);
    check(&file, &file, None);
    check(&good.certificate, &good.key, Some(&file));
});

/// Loads these files. It may succeed: the file may hold a good pair.
fn check(certificate: &Path, key: &Path, ca: Option<&Path>) {
    let clients = ca.map(|ca| ClientVerification { ca: ca.to_owned(), names: Vec::new() });
    let loaded = Serving::load(certificate, key, &TlsOptions::default(), clients.as_ref());
    if let Err(error) = loaded {
        assert!(error.to_string().len() < REFUSAL_BYTES_MAX, "{error}");
    }
}

fn in_pem(input: &[u8]) -> Vec<u8> {
    let (label, der) = match input {
        [b'C', der @ ..] => ("CERTIFICATE", der),
        [b'K', der @ ..] => ("PRIVATE KEY", der),
        whole => return whole.to_vec(),
    };
    let body = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n").into_bytes()
}
