//! Snapshots of output, stored beside the tests.

/// Compares `text` with `snapshots/<name>.snap`.
#[track_caller]
pub fn check(name: &str, text: &str) {
    let mut settings = insta::Settings::new();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    // Parts that differ between runs.
    settings.add_filter(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT");
    settings.add_filter(r"(/[^\s/]+)*/lockkeeper-e2e-\w+", "FOLDER");
    settings.add_filter(
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "UID",
    );
    // The name of a workload ends with a digest of its job's uid.
    settings.add_filter(r"\b(job(?:set)?-[a-z0-9-]+)-[0-9a-f]{16}\b", "$1-DIGEST");
    settings.add_filter(r"\b\d+ s after creation", "SECONDS s after creation");
    settings.add_filter(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME");
    settings.add_filter(r"\brevision=\d+", "revision=REVISION");
    settings.bind(|| insta::assert_snapshot!(name, text));
}
