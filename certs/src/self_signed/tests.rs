#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::directory::{CA_CERTIFICATE, CA_KEY, CERTIFICATE, KEY};
use super::*;
use crate::tls::{self, TlsError};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::ServerName;
use rustls::pki_types::UnixTime;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Barrier;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// A new directory with mode 0700.
fn private() -> TempDir {
    let mode = fs::Permissions::from_mode(0o700);
    tempfile::Builder::new()
        .permissions(mode)
        .tempdir()
        .unwrap()
}

/// The fixed time of the tests: 2026-01-01.
fn day(days: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_767_225_600 + days * DAY_S)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Calls `ensure` for localhost.
fn local(directory: &TempDir, now: SystemTime) -> Result<CertificatePaths, SelfSignedError> {
    ensure(directory.path(), &names(&["localhost"]), now)
}

/// Returns the content of all four files.
fn content(directory: &TempDir) -> Vec<Vec<u8>> {
    [CA_CERTIFICATE, CA_KEY, CERTIFICATE, KEY]
        .iter()
        .map(|name| fs::read(directory.path().join(name)).unwrap())
        .collect()
}

/// Returns true if a client that trusts `ca.crt` accepts `tls.crt` for `name` on that day.
fn trusted(files: &CertificatePaths, name: &str, at: SystemTime) -> bool {
    let mut roots = RootCertStore::empty();
    for ca in tls::read_certificates(&files.ca).unwrap() {
        roots.add(ca).unwrap();
    }
    let chain = tls::certified_key(&files.certificate, &files.key)
        .unwrap()
        .cert;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let at = UnixTime::since_unix_epoch(at.duration_since(UNIX_EPOCH).unwrap());
    WebPkiServerVerifier::builder_with_provider(roots.into(), tls::provider())
        .build()
        .unwrap()
        .verify_server_cert(&chain[0], &chain[1..], &name, &[], at)
        .is_ok()
}

/// Checks that the CA stays, and that the serving certificate and its key are new.
#[track_caller]
fn assert_only_serving_renewed(before: &[Vec<u8>], after: &[Vec<u8>]) {
    assert_eq!(before[..2], after[..2]);
    assert_ne!(before[2], after[2]);
    assert_ne!(before[3], after[3]);
}

#[test]
fn empty_directory_gets_trusted_certificate() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("a/b");
    let all = names(&["localhost", "Webhook.lockkeeper.svc.", "127.0.0.1", "::1"]);
    let files = ensure(&directory, &all, day(0)).unwrap();
    for name in ["localhost", "webhook.lockkeeper.svc", "127.0.0.1", "::1"] {
        assert!(trusted(&files, name, day(0)), "{name}");
        assert!(trusted(&files, name, day(364)), "{name}");
        assert!(!trusted(&files, name, day(366)), "{name}");
    }
    assert!(!trusted(&files, "example.com", day(0)));
    assert_eq!(files.ca, directory.join("ca.crt"));
}

#[test]
fn key_files_are_private() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("tls");
    ensure(&directory, &names(&["localhost"]), day(0)).unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(directory.clone()), 0o700);
    assert_eq!(mode(directory.join(CA_KEY)), 0o600);
    assert_eq!(mode(directory.join(KEY)), 0o600);
    assert_eq!(
        fs::read_dir(&directory).unwrap().count(),
        4,
        "nothing is left over"
    );
}

#[test]
fn certificates_have_expected_key_usages() {
    let directory = private();
    let files = local(&directory, day(0)).unwrap();
    let ca = tls::read_certificates(&files.ca).unwrap().remove(0);
    let (_, ca) = X509Certificate::from_der(&ca).unwrap();
    let constraints = ca.basic_constraints().unwrap().unwrap();
    assert!(constraints.critical && constraints.value.ca);
    assert_eq!(constraints.value.path_len_constraint, Some(0));
    assert!(ca.key_usage().unwrap().unwrap().value.key_cert_sign());

    let serving = tls::read_certificates(&files.certificate)
        .unwrap()
        .remove(0);
    let (_, serving) = X509Certificate::from_der(&serving).unwrap();
    assert!(!serving.is_ca());
    let usage = serving.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && !usage.client_auth && !usage.any);
    assert!(
        serving
            .key_usage()
            .unwrap()
            .unwrap()
            .value
            .digital_signature()
    );
    let begins_s = serving.validity().not_before.timestamp();
    assert_eq!(
        begins_s,
        i64::try_from(unix_seconds(day(0)).unwrap()).unwrap() - 3_600
    );
}

#[test]
fn valid_directory_is_unchanged() {
    let directory = private();
    let all = names(&["localhost", "127.0.0.1"]);
    ensure(directory.path(), &all, day(0)).unwrap();
    let before = content(&directory);
    // A certificate with more names is kept, and day 335 is the last one with 30 days left.
    local(&directory, day(335)).unwrap();
    assert_eq!(before, content(&directory));
}

#[test]
fn expiring_serving_certificate_is_renewed_under_same_ca() {
    for days in [336, 400] {
        let directory = private();
        local(&directory, day(0)).unwrap();
        let before = content(&directory);
        let files = local(&directory, day(days)).unwrap();
        assert_only_serving_renewed(&before, &content(&directory));
        assert!(trusted(&files, "localhost", day(days + 364)));
    }
}

#[test]
fn expiring_ca_renews_all_files() {
    let directory = private();
    local(&directory, day(0)).unwrap();
    let before = content(&directory);

    local(&directory, day(3_620)).unwrap();
    let last = content(&directory);
    assert_only_serving_renewed(&before, &last);
    let files = tls::read_certificates(&directory.path().join(CERTIFICATE)).unwrap();
    let (_, serving) = X509Certificate::from_der(&files[0]).unwrap();
    let ends_s = i64::try_from(unix_seconds(day(3_650)).unwrap()).unwrap();
    assert_eq!(
        serving.validity().not_after.timestamp(),
        ends_s,
        "not after its CA"
    );

    let files = local(&directory, day(3_621)).unwrap();
    assert!(
        content(&directory)
            .iter()
            .zip(&last)
            .all(|(new, old)| new != old)
    );
    assert!(trusted(&files, "localhost", day(3_621)));
}

#[test]
fn added_name_reissues_serving_certificate() {
    let directory = private();
    local(&directory, day(0)).unwrap();
    let before = content(&directory);
    let files = ensure(directory.path(), &names(&["localhost", "10.0.0.1"]), day(0)).unwrap();
    assert_only_serving_renewed(&before, &content(&directory));
    assert!(trusted(&files, "10.0.0.1", day(0)));
}

#[test]
fn mismatched_key_reissues_serving_certificate() {
    let directory = private();
    let other = private();
    local(&directory, day(0)).unwrap();
    let foreign = local(&other, day(0)).unwrap();
    fs::copy(&foreign.key, directory.path().join(KEY)).unwrap();
    let before = content(&directory);
    local(&directory, day(0)).unwrap();
    assert_only_serving_renewed(&before, &content(&directory));
}

#[test]
fn foreign_ca_signature_reissues_serving_certificate() {
    let directory = private();
    let other = private();
    local(&directory, day(0)).unwrap();
    let foreign = local(&other, day(0)).unwrap();
    fs::copy(&foreign.certificate, directory.path().join(CERTIFICATE)).unwrap();
    fs::copy(&foreign.key, directory.path().join(KEY)).unwrap();
    let before = content(&directory);
    local(&directory, day(0)).unwrap();
    assert_only_serving_renewed(&before, &content(&directory));
}

#[test]
fn missing_certificate_or_key_is_reissued() {
    for missing in [CERTIFICATE, KEY] {
        let directory = private();
        local(&directory, day(0)).unwrap();
        let before = content(&directory);
        fs::remove_file(directory.path().join(missing)).unwrap();
        local(&directory, day(0)).unwrap();
        assert_only_serving_renewed(&before, &content(&directory));
    }
}

#[test]
fn ca_key_is_required_only_for_renewal() {
    let directory = private();
    local(&directory, day(0)).unwrap();
    fs::remove_file(directory.path().join(CA_KEY)).unwrap();
    local(&directory, day(1)).unwrap();
    for days in [350, 3_640] {
        let error = local(&directory, day(days)).unwrap_err();
        let missing = directory.path().join(CA_KEY);
        assert!(
            matches!(error, SelfSignedError::Incomplete { missing: path, .. } if path == missing)
        );
    }
}

#[test]
fn files_without_ca_are_left_unchanged() {
    for name in [CA_KEY, CERTIFICATE, KEY] {
        let directory = private();
        let file = directory.path().join(name);
        fs::write(&file, "mine").unwrap();
        let error = local(&directory, day(0)).unwrap_err();
        assert!(matches!(error, SelfSignedError::Incomplete { found, .. } if found == file));
        assert_eq!(fs::read(&file).unwrap(), b"mine");
    }
}

#[test]
fn invalid_file_is_reported_and_unchanged() {
    for name in [CA_CERTIFICATE, CERTIFICATE, KEY] {
        let directory = private();
        local(&directory, day(0)).unwrap();
        let file = directory.path().join(name);
        fs::write(&file, "garbage").unwrap();
        let error = local(&directory, day(0)).unwrap_err();
        assert!(
            matches!(&error, SelfSignedError::Tls(TlsError::NotPem { path }) if *path == file),
            "{error}"
        );
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"garbage");
    }
}

#[test]
fn non_ca_certificate_is_rejected() {
    let directory = private();
    let files = local(&directory, day(0)).unwrap();
    fs::copy(&files.certificate, &files.ca).unwrap();
    let error = local(&directory, day(0)).unwrap_err();
    assert!(matches!(error, SelfSignedError::NotCa { path } if path == files.ca));
}

#[test]
fn mismatched_ca_key_is_rejected() {
    let directory = private();
    let other = private();
    local(&directory, day(0)).unwrap();
    local(&other, day(0)).unwrap();
    fs::copy(other.path().join(CA_KEY), directory.path().join(CA_KEY)).unwrap();
    let error = local(&directory, day(350)).unwrap_err();
    assert!(matches!(error, SelfSignedError::CaKeyMismatch { .. }));
}

#[test]
fn insecure_directory_error_shows_chmod_command() {
    for mode in [0o777, 0o770, 0o755, 0o750, 0o710, 0o701] {
        let directory = private();
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(directory.path(), permissions).unwrap();
        let error = local(&directory, day(0)).unwrap_err();
        assert!(matches!(error, SelfSignedError::InsecurePermissions { .. }));
        let command = format!("chmod 700 {}", directory.path().display());
        assert!(error.to_string().ends_with(&command), "{error}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}

#[test]
fn file_instead_of_directory_is_rejected() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    fs::write(&file, "").unwrap();
    let error = ensure(&file, &names(&["localhost"]), day(0)).unwrap_err();
    assert!(matches!(error, SelfSignedError::Io { path, .. } if path == file));
}

#[test]
fn invalid_server_name_is_rejected() {
    let directory = private();
    let error = ensure(directory.path(), &[], day(0)).unwrap_err();
    assert!(matches!(error, SelfSignedError::NoNames));
    for bad in [
        "",
        ".",
        "*.example.com",
        "a b",
        "https://a",
        "[::1]",
        "a:443",
        "ä.example",
    ] {
        let error = ensure(directory.path(), &names(&["localhost", bad]), day(0)).unwrap_err();
        assert!(matches!(error, SelfSignedError::InvalidName { name } if name == bad));
    }
}

#[test]
fn clock_out_of_range_is_reported() {
    let directory = private();
    for now in [UNIX_EPOCH - Duration::from_secs(1), day(4_000_000)] {
        let error = local(&directory, now).unwrap_err();
        assert!(matches!(error, SelfSignedError::ClockOutOfRange));
    }
    local(&directory, day(1)).unwrap();
    let before = content(&directory);
    let error = local(&directory, day(0)).unwrap_err();
    assert!(matches!(error, SelfSignedError::NotYetValid { .. }));
    assert_eq!(before, content(&directory));
}

#[test]
fn leftover_temporary_file_is_ignored() {
    let directory = private();
    for name in [CA_KEY, CA_CERTIFICATE, KEY, CERTIFICATE] {
        fs::write(directory.path().join(format!(".{name}.new")), "half").unwrap();
    }
    let files = local(&directory, day(0)).unwrap();
    assert!(trusted(&files, "localhost", day(0)));
    let mode = fs::metadata(&files.key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn concurrent_starts_share_certificates() {
    let directory = private();
    let together = Barrier::new(4);
    let seen = std::thread::scope(|scope| {
        let start = || {
            together.wait();
            local(&directory, day(0)).unwrap();
            content(&directory)
        };
        let starts: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
        starts
            .into_iter()
            .map(|start| start.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert!(seen.iter().all(|content| *content == seen[0]));
}
