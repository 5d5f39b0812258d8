//! The file that `lockkeeper explain --report` writes.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use lockkeeper_testkit::run_program;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const DUMP: [&str; 2] = ["--dump", "examples/explain/kueue.yaml"];

/// Returns the exit code, standard output and standard error.
fn explain(words: &[&str]) -> (i32, String, String) {
    let words = [&["explain"], words].concat();
    run_program(env!("CARGO_BIN_EXE_lockkeeper"), Path::new(ROOT), &words)
}

/// The page of a successful run.
#[track_caller]
fn page(words: &[&str]) -> String {
    let (code, page, error) = explain(&[words, &["--report", "-"]].concat());
    assert_eq!((code, error.as_str()), (0, ""));
    page
}

/// The cells of the rows of a table, without bars.
fn rows(page: &str, heading: &str) -> Vec<String> {
    let (_, table) = page.split_once(heading).unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    let rows = table.split("<tr>").skip(2).map(|row| {
        let mut text = String::new();
        for part in row.split('<').skip(1) {
            let (_, content) = part.split_once('>').unwrap();
            text.push_str(content);
            if part.starts_with("/td") || part.starts_with("/th") {
                text.push('|');
            }
        }
        text
    });
    rows.collect()
}

#[test]
fn report_has_victims_and_quota_before_and_after() {
    let words = [&["-f", "examples/explain/new-job.yaml"], &DUMP[..]].concat();
    let page = page(&words);
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert_eq!(
        rows(&page, "<h2>Victims</h2>"),
        ["team-a/job-eval-51b2e|team-a|0|InClusterQueue|"]
    );
    assert_eq!(
        rows(&page, "<h2 id=\"quota\">"),
        [
            "research|Cohort|a100|cpu|128|36| 28.1 %|36| 28.1 %|",
            "a100|nvidia.com/gpu|12|9| 75.0 %|12| 100.0 %|",
            "team-a|ClusterQueue|a100|cpu|64|4| 6.2 %|4| 6.2 %|",
            "a100|nvidia.com/gpu|8|1| 12.5 %|4| 50.0 %|",
            "team-b|ClusterQueue|a100|cpu|64|32| 50.0 %|32| 50.0 %|",
            "a100|nvidia.com/gpu|4|8| 200.0 %|8| 200.0 %|",
        ]
    );
    let (_, text, _) = explain(&words);
    let first = text.lines().next().unwrap();
    assert!(page.contains(first), "{first}");
    assert!(page.contains("Would preempt"));
}

#[test]
fn workloads_without_a_start_have_no_quota_after() {
    for subject in ["job/eval", "job/train"] {
        let page = page(&[&[subject], &DUMP[..]].concat());
        assert!(
            page.contains("id=\"quota\"") && !page.contains("Used after"),
            "{subject}"
        );
    }
    // It has enough quota, and does not fit on nodes.
    let page = page(&["job/gang", "--dump", "examples/explain/nodes.yaml"]);
    assert!(!page.contains("Used after") && !page.contains("Forecast"));
}

#[test]
fn report_is_reproducible_and_beside_the_text() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("out.html");
    let path = path.to_str().unwrap();
    let words = [&["job/train"], &DUMP[..]].concat();
    let expected = page(&words);
    for format in ["human", "json"] {
        let with = [&words[..], &["-o", format, "--report", path]].concat();
        let (code, text, error) = explain(&with);
        assert_eq!((code, error.as_str()), (0, ""));
        assert_eq!(text, explain(&[&words[..], &["-o", format]].concat()).1);
        assert_eq!(fs::read_to_string(path).unwrap(), expected);
    }
}

#[test]
fn mistakes_leave_the_file_as_it_was() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("old.html");
    fs::write(&path, "old").unwrap();
    let path = path.to_str().unwrap();
    let none = folder.path().join("none/new.html");
    for (words, expected_code, expected) in [
        (
            vec!["job/none", DUMP[0], DUMP[1], "--report", path],
            1,
            "job/none",
        ),
        (
            vec!["job/train", "--dump", "none", "--report", path],
            2,
            "cannot read none",
        ),
        (
            vec![
                "job/train",
                DUMP[0],
                DUMP[1],
                "--report",
                none.to_str().unwrap(),
            ],
            1,
            "cannot write the report",
        ),
        (
            vec!["--scenario", "none.yaml", "--report", path],
            2,
            "cannot be used with",
        ),
    ] {
        let (code, text, error) = explain(&words);
        assert_eq!((code, text.as_str()), (expected_code, ""), "{error}");
        assert!(error.contains(expected), "{error}");
        assert_eq!(fs::read_to_string(path).unwrap(), "old");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Names in a dump are untrusted.
#[test]
fn hostile_names_are_escaped() {
    let text = fs::read_to_string(Path::new(ROOT).join(DUMP[1])).unwrap();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("dump.yaml");
    let name = "<script>alert(1)</script>";
    fs::write(&path, text.replace("research", &format!("'{name}'"))).unwrap();
    let page = page(&["job/train", "--dump", path.to_str().unwrap()]);
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert!(!page.contains("<script"));
}
