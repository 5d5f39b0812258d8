#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::provider::{ALPN_H2, ALPN_HTTP1};
use super::*;
use crate::self_signed;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;

/// Returns a directory with a valid certificate and key, and their paths.
fn pair() -> (TempDir, PathBuf, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let names = ["localhost".to_owned()];
    let files =
        self_signed::ensure(&directory.path().join("tls"), &names, SystemTime::now()).unwrap();
    (directory, files.certificate, files.key)
}

fn error(certificate: &Path, key: &Path) -> TlsError {
    server_config(certificate, key, &TlsOptions::default()).unwrap_err()
}

#[test]
fn alpn_offers_http2_first_unless_disabled() {
    let (_directory, certificate, key) = pair();
    let options = TlsOptions::default();
    let config = server_config(&certificate, &key, &options).unwrap();
    assert_eq!(config.alpn_protocols, [ALPN_H2, ALPN_HTTP1]);
    assert_eq!(config.max_early_data_size, 0);

    let options = TlsOptions {
        http1_only: true,
        ..options
    };
    let config = server_config(&certificate, &key, &options).unwrap();
    assert_eq!(config.alpn_protocols, [ALPN_HTTP1]);
}

#[test]
fn tls_offers_post_quantum_hybrid() {
    let provider = provider();
    let mut names = provider.kx_groups.iter().map(|group| group.name());
    assert!(names.any(|name| name == rustls::NamedGroup::X25519MLKEM768));
}

#[test]
fn pem_chain_with_text_between_is_accepted() {
    let (directory, certificate, key) = pair();
    let leaf = fs::read_to_string(&certificate).unwrap();
    let ca = fs::read_to_string(directory.path().join("tls/ca.crt")).unwrap();
    fs::write(&certificate, format!("subject=one\n{leaf}issuer=two\n{ca}")).unwrap();
    assert_eq!(read_certificates(&certificate).unwrap().len(), 2);
    server_config(&certificate, &key, &TlsOptions::default()).unwrap();
}

#[test]
fn missing_file_error_names_path() {
    let (directory, certificate, key) = pair();
    let missing = directory.path().join("missing");
    for error in [error(&missing, &key), error(&certificate, &missing)] {
        assert!(matches!(&error, TlsError::Read { path, .. } if *path == missing));
        assert!(
            error.to_string().contains("missing: No such file"),
            "{error}"
        );
    }
}

#[test]
fn non_pem_file_error_names_path() {
    let (_directory, certificate, key) = pair();
    fs::write(&certificate, [0x30, 0x82, 0x01]).unwrap();
    assert!(matches!(error(&certificate, &key), TlsError::NotPem { path } if path == certificate));
}

#[test]
fn missing_pem_section_error_names_path() {
    let (_directory, certificate, key) = pair();
    assert!(matches!(error(&key, &key), TlsError::NoCertificate { path } if path == key));
    let swapped = error(&certificate, &certificate);
    assert!(matches!(swapped, TlsError::NoKey { path } if path == certificate));
}

#[test]
fn damaged_key_error_names_path_and_hides_content() {
    let (_directory, certificate, key) = pair();
    let good = fs::read_to_string(&key).unwrap();
    let secret = good.lines().nth(1).unwrap();

    fs::write(&key, &good[..good.len() / 2]).unwrap();
    let cut = error(&certificate, &key);
    assert!(matches!(&cut, TlsError::DamagedPem { path } if *path == key));

    fs::write(&key, good.replacen(secret, "AAAA", 1)).unwrap();
    let garbled = error(&certificate, &key);
    assert!(matches!(&garbled, TlsError::InvalidKey { path } if *path == key));

    for error in [cut, garbled] {
        assert!(!format!("{error} {error:?}").contains(&secret[..8]));
    }
}

#[test]
fn invalid_certificate_error_names_path() {
    let (_directory, certificate, key) = pair();
    let text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fs::write(&certificate, text).unwrap();
    let error = error(&certificate, &key);
    assert!(matches!(error, TlsError::InvalidCertificate { path, .. } if path == certificate));
}

#[test]
fn mismatched_key_is_rejected() {
    let (_directory, certificate, _) = pair();
    let (_other, _, key) = pair();
    let error = error(&certificate, &key);
    assert!(matches!(&error, TlsError::KeyMismatch { .. }));
    let text = error.to_string();
    assert!(text.contains(certificate.to_str().unwrap()), "{text}");
    assert!(text.contains(key.to_str().unwrap()), "{text}");
}
