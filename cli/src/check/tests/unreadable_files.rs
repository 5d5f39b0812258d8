//! Files that cannot be read.

use super::{QUEUE, run};

#[test]
fn check_unreadable_file_keeps_other_findings() {
    let (text, code) = run(&[("a.yaml", "a: [1\n"), ("b.yaml", QUEUE)], &[]);
    assert!(text.starts_with("a.yaml:"), "{text}");
    assert!(text.contains("b.yaml:6:3: error[SC005]"), "{text}");
    assert_eq!(code, 2);
}
