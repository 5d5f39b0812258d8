//! Certificates with real files and real handshakes: serving certificates that change while the server runs, and
//! certificates of clients.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod client_certificates;
mod server;

use std::fs;
use std::time::SystemTime;

use hyper::StatusCode;
use lockkeeper_certs::tls::WatchMode;
use lockkeeper_testkit::{SecretVolume, TestCa, replace_file};

use crate::server::{CERTIFICATE, EVENTS, KEY, POLLING, Server, until};

#[tokio::test]
async fn rewritten_files_are_reloaded() {
    let (server, first) = Server::start(EVENTS).await;
    assert_eq!(server.served_certificate().await, first.der);
    for rotation in 1..=2 {
        let next = server.authority.server();
        next.write(server.path());
        server.until_served(&next).await;
        assert_eq!(server.status.reloads(), rotation);
    }
}

#[tokio::test]
async fn renamed_files_are_reloaded() {
    let (server, _) = Server::start(EVENTS).await;
    for _ in 0..2 {
        let next = server.authority.server();
        next.rename_over(server.path());
        server.until_served(&next).await;
    }
    assert_eq!(server.status.reloads(), 2);
}

#[tokio::test]
async fn kubelet_volume_swaps_are_reloaded() {
    let (authority, directory) = (TestCa::new("CA"), tempfile::tempdir().unwrap());
    let first = authority.server();
    let mut volume = SecretVolume::mount(directory.path().to_owned(), &authority, &first);
    let server = Server::start_on(authority, directory, EVENTS, None).await;
    assert_eq!(server.served_certificate().await, first.der);
    for _ in 0..2 {
        let next = server.authority.server();
        volume.write(&next.certificate, &next.key);
        server.until_served(&next).await;
    }
    assert_eq!(server.status.reloads(), 2);
}

#[tokio::test]
async fn polling_reloads_without_file_events() {
    let (authority, directory) = (TestCa::new("CA"), tempfile::tempdir().unwrap());
    let folder = directory.path().to_owned();
    let mut volume = SecretVolume::mount(folder, &authority, &authority.server());
    let server = Server::start_on(authority, directory, POLLING, None).await;
    for _ in 0..2 {
        let next = server.authority.server();
        volume.write(&next.certificate, &next.key);
        server.until_served(&next).await;
    }
    assert_eq!(server.status.reloads(), 2);
}

#[tokio::test]
async fn partial_file_is_ignored_until_complete() {
    let (server, first) = Server::start(EVENTS).await;
    let next = server.authority.server();
    let half = &next.certificate[..next.certificate.len() / 2];
    server
        .assert_failure_after(|| fs::write(server.path().join(CERTIFICATE), half).unwrap())
        .await;
    assert_eq!(server.served_certificate().await, first.der);
    server
        .assert_failure_after(|| {
            fs::write(server.path().join(CERTIFICATE), &next.certificate).unwrap();
        })
        .await;
    assert_eq!(
        server.served_certificate().await,
        first.der,
        "its key is not there yet"
    );
    assert_eq!(server.status.reloads(), 0);
    fs::write(server.path().join(KEY), &next.key).unwrap();
    server.until_served(&next).await;
}

#[tokio::test]
async fn mismatched_key_keeps_old_certificate() {
    let (server, first) = Server::start(EVENTS).await;
    let other = server.authority.server();
    server
        .assert_failure_after(|| replace_file(&server.path().join(KEY), &other.key))
        .await;
    assert_eq!(server.served_certificate().await, first.der);
    replace_file(&server.path().join(KEY), &first.key);
    // This change has no visible result, so the test waits for the next one.
    let next = server.authority.server();
    next.rename_over(server.path());
    server.until_served(&next).await;
    assert_eq!(server.status.reloads(), 1);
}

#[tokio::test]
async fn missing_file_keeps_old_certificate() {
    let (server, first) = Server::start(EVENTS).await;
    server
        .assert_failure_after(|| fs::remove_file(server.path().join(KEY)).unwrap())
        .await;
    assert_eq!(server.served_certificate().await, first.der);
    first.rename_over(server.path());
    let next = server.authority.server();
    next.rename_over(server.path());
    server.until_served(&next).await;
    assert_eq!(server.status.reloads(), 1);
}

#[tokio::test]
async fn missing_directory_keeps_old_certificate() {
    let (authority, directory) = (TestCa::new("CA"), tempfile::tempdir().unwrap());
    authority.server().write(directory.path());
    let watching = WatchMode {
        events: true,
        ..POLLING
    };
    let server = Server::start_on(authority, directory, watching, None).await;
    server
        .assert_failure_after(|| fs::remove_dir_all(server.path()).unwrap())
        .await;
    fs::create_dir(server.path()).unwrap();
    let next = server.authority.server();
    next.write(server.path());
    server.until_served(&next).await;
}

#[tokio::test]
async fn unchanged_content_does_not_count_as_reload() {
    let (server, first) = Server::start(EVENTS).await;
    first.rename_over(server.path());
    let (next, last) = (server.authority.server(), server.authority.server());
    next.rename_over(server.path());
    server.until_served(&next).await;
    next.rename_over(server.path());
    last.rename_over(server.path());
    server.until_served(&last).await;
    assert_eq!(server.status.reloads(), 2);
}

#[tokio::test]
async fn persistent_failure_is_counted_each_poll() {
    let (server, _) = Server::start(POLLING).await;
    fs::write(server.path().join(KEY), "").unwrap();
    until("it is counted again", async || server.status.failures() > 3).await;
}

#[tokio::test]
async fn open_connection_survives_rotation() {
    let (server, first) = Server::start(EVENTS).await;
    let mut old = server.open().await;
    assert_eq!(old.get("/validate").await, Some(StatusCode::OK));
    let next = server.authority.server();
    next.rename_over(server.path());
    server.until_served(&next).await;
    assert_eq!(old.get("/validate").await, Some(StatusCode::OK));
    assert_eq!(old.served, first.der);
}

#[tokio::test]
async fn status_reports_not_after_of_served_certificate() {
    let (server, _) = Server::start(EVENTS).await;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now_s = now.unwrap().as_secs();
    let ends_in_days = || (server.status.not_after() + 60 - now_s) / (24 * 60 * 60);
    assert_eq!(ends_in_days(), 1);
    let next = server
        .authority
        .sign("server", &["localhost"], false, -10..30);
    next.rename_over(server.path());
    server.until_reloads(1).await;
    assert_eq!(ends_in_days(), 30);
}
