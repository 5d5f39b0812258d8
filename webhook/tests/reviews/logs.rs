//! Log lines about denied reviews.

use crate::log::Log;
use crate::{create, queue, quota, review, server};

/// The most lines at once.
const BURST: usize = 20;

/// Captures a server's log of this number of denied reviews.
async fn log_of_denials(count: usize, name: &str) -> Log {
    let (log, _guard) = Log::take();
    let server = server();
    let mut denied = create(&queue(&quota("5")));
    denied["request"]["name"] = name.into();
    for _ in 0..count {
        assert_eq!(
            review(&server, "/validate", &denied).await["allowed"],
            false
        );
    }
    log
}

#[tokio::test(start_paused = true)]
async fn denial_is_logged_with_identity_and_rules() {
    let log = log_of_denials(1, "example").await;
    let text = log.text();
    for part in [
        "denied",
        r#"kind="ClusterQueue""#,
        r#"name="example""#,
        r#"rules="CQ007""#,
        "denied=1",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn denials_are_logged_up_to_burst() {
    let log = log_of_denials(3 * BURST, "example").await;
    assert_eq!(log.count_lines("denied"), BURST);
    assert_eq!(log.count_lines("denied=20"), 1);
}

#[tokio::test(start_paused = true)]
async fn denial_of_long_name_is_one_short_line() {
    let name = format!("a\n\u{1b}[31m2026-01-01 forged line{}", "x".repeat(100_000));
    let text = log_of_denials(1, &name).await.text();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.len() < 1_000, "{} bytes", text.len());
    assert!(!text.contains('\u{1b}'), "{text}");
}
