//! Files that are no certificate, key or CA are rejected, and the error does not contain their text.
//!
//! An input is a whole PEM file; or, when it begins with C or K, the DER of a certificate or a key,
//! which is encoded here: a fuzzer rarely finds valid base64.

use crate::pem_input::in_pem;
use lockkeeper_certs::self_signed::{self, CertificatePaths};
use lockkeeper_certs::tls::{ClientVerification, ServerTls, TlsOptions};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::time::SystemTime;
use tempfile::TempDir;

/// The longest error text: two paths and a sentence, in bytes.
const ERROR_BYTES_MAX: usize = 1_000;

/// A folder with a valid certificate and key.
static GOOD: LazyLock<(TempDir, CertificatePaths)> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    let directory = folder.path().join("tls");
    let names = ["localhost".to_owned()];
    let files = self_signed::ensure(&directory, &names, SystemTime::now()).expect("certificates");
    (folder, files)
});

pub fn run(input: &[u8]) {
    let (folder, good) = &*GOOD;
    let file = folder.path().join("input.pem");
    fs::write(&file, in_pem(input)).expect("a file");
    check(&file, &good.key, None);
    check(&good.certificate, &file, None);
    check(&file, &file, None);
    check(&good.certificate, &good.key, Some(&file));
}

/// Loads these files. Success is possible: the input may be a valid certificate and key.
fn check(certificate: &Path, key: &Path, ca: Option<&Path>) {
    let clients = ca.map(|ca| ClientVerification { ca: ca.to_owned(), names: Vec::new() });
    let loaded = ServerTls::load(certificate, key, &TlsOptions::default(), clients.as_ref());
    if let Err(error) = loaded {
        assert!(error.to_string().len() < ERROR_BYTES_MAX, "{error}");
    }
}
