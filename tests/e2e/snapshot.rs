//! What is printed, kept beside the tests.

/// Compares `text` with `snapshots/<name>.snap`.
#[track_caller]
pub fn check(name: &str, text: &str) {
    let mut settings = insta::Settings::new();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    // What differs from run to run.
    settings.add_filter(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT");
    settings.add_filter(r"(/[^\s/]+)*/lockkeeper-e2e-\w+", "FOLDER");
    settings.add_filter(
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "UID",
    );
    settings.bind(|| insta::assert_snapshot!(name, text));
}
