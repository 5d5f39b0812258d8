#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use tempfile::TempDir;

use super::*;
use crate::bootstrap;

/// A directory with a good pair in it, and the paths of the pair.
fn pair() -> (TempDir, PathBuf, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let names = ["localhost".to_owned()];
    let files =
        bootstrap::ensure(&directory.path().join("tls"), &names, SystemTime::now()).unwrap();
    (directory, files.certificate, files.key)
}

fn error(certificate: &Path, key: &Path) -> TlsError {
    server_config(certificate, key, &TlsOptions::default()).unwrap_err()
}

#[test]
fn offers_http2_first_unless_told_not_to() {
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
fn offers_the_post_quantum_hybrid() {
    let provider = provider();
    let mut names = provider.kx_groups.iter().map(|group| group.name());
    assert!(names.any(|name| name == rustls::NamedGroup::X25519MLKEM768));
}

#[test]
fn a_chain_and_text_between_sections_are_accepted() {
    let (directory, certificate, key) = pair();
    let leaf = fs::read_to_string(&certificate).unwrap();
    let ca = fs::read_to_string(directory.path().join("tls/ca.crt")).unwrap();
    fs::write(&certificate, format!("subject=one\n{leaf}issuer=two\n{ca}")).unwrap();
    assert_eq!(read_certificates(&certificate).unwrap().len(), 2);
    server_config(&certificate, &key, &TlsOptions::default()).unwrap();
}

#[test]
fn a_missing_file_is_named() {
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
fn a_file_that_is_not_pem_is_named() {
    let (_directory, certificate, key) = pair();
    fs::write(&certificate, [0x30, 0x82, 0x01]).unwrap();
    assert!(matches!(error(&certificate, &key), TlsError::NotPem { path } if path == certificate));
}

#[test]
fn a_file_without_the_right_section_is_named() {
    let (_directory, certificate, key) = pair();
    assert!(matches!(error(&key, &key), TlsError::NoCertificate { path } if path == key));
    let swapped = error(&certificate, &certificate);
    assert!(matches!(swapped, TlsError::NoKey { path } if path == certificate));
}

#[test]
fn a_damaged_key_is_named_and_not_quoted() {
    let (_directory, certificate, key) = pair();
    let good = fs::read_to_string(&key).unwrap();
    let secret = good.lines().nth(1).unwrap();

    fs::write(&key, &good[..good.len() / 2]).unwrap();
    let cut = error(&certificate, &key);
    assert!(matches!(&cut, TlsError::DamagedPem { path } if *path == key));

    fs::write(&key, good.replacen(secret, "AAAA", 1)).unwrap();
    let garbled = error(&certificate, &key);
    assert!(matches!(&garbled, TlsError::BadKey { path } if *path == key));

    for error in [cut, garbled] {
        assert!(!format!("{error} {error:?}").contains(&secret[..8]));
    }
}

#[test]
fn a_section_that_is_no_certificate_is_named() {
    let (_directory, certificate, key) = pair();
    let text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fs::write(&certificate, text).unwrap();
    let error = error(&certificate, &key);
    assert!(matches!(error, TlsError::BadCertificate { path, .. } if path == certificate));
}

#[test]
fn the_key_of_another_certificate_is_refused() {
    let (_directory, certificate, _) = pair();
    let (_other, _, key) = pair();
    let error = error(&certificate, &key);
    assert!(matches!(&error, TlsError::KeyMismatch { .. }));
    let text = error.to_string();
    assert!(text.contains(certificate.to_str().unwrap()), "{text}");
    assert!(text.contains(key.to_str().unwrap()), "{text}");
}
