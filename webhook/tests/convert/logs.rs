//! Log lines about conversions.

use crate::log::Log;
use crate::{Server, api_version, older, review};
use lockkeeper_conversion::PRESERVED_ANNOTATION_PREFIX;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn failures_are_logged_once_per_interval_and_cut() {
    let (log, _guard) = Log::take();
    let server = Server::new();
    let mut wrong = older("a");
    wrong["metadata"]["name"] = format!("a\n{}", "x".repeat(100_000)).into();
    wrong["spec"]["mode"] = "unknown".into();
    let failing = review(&api_version("v1"), &json!([wrong]));
    for _ in 0..3 {
        let answer = server.review(&failing).await;
        assert_eq!(answer["result"]["status"], "Failure");
    }
    let text = log.text();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("not converted") && text.contains("failed=1"));
    assert!(text.len() < 1_000, "{} bytes", text.len());
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    server.review(&failing).await;
    assert_eq!(log.count_lines("failed=4"), 1, "{}", log.text());
}

#[tokio::test(start_paused = true)]
async fn ignored_annotations_are_logged_once_per_interval() {
    let (log, _guard) = Log::take();
    let server = Server::new();
    let mut object = older("a");
    object["metadata"]["annotations"] =
        json!({format!("{PRESERVED_ANNOTATION_PREFIX}a"): "garbage"});
    let objects = json!(vec![object; 50]);
    server
        .review(&review(&api_version("v1beta1"), &objects))
        .await;
    assert_eq!(log.count_lines("ignored an annotation"), 1);
}
