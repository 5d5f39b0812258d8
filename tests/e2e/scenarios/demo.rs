//! The demo, as the README shows it.

use std::fs;
use std::process::Command;

use super::Scenario;
use crate::ROOT;
use crate::lockkeeper::Protocol;

pub fn scenarios() -> Vec<Scenario> {
    let demo = Scenario::new("the demo shows what the README describes", |_, _| {
        matches_readme();
    });
    // One protocol is enough, because it has its own cluster.
    vec![demo.only(Protocol::Http1)]
}

fn matches_readme() {
    let output = Command::new("examples/demo/run")
        .current_dir(ROOT)
        .env("LOCKKEEPER", env!("CARGO_BIN_EXE_lockkeeper"))
        .env_remove("KUBECONFIG")
        .output()
        .unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    let printed: Vec<String> = stdout.lines().map(masked).collect();

    let readme = fs::read_to_string(format!("{ROOT}/README.md")).unwrap();
    let promised = readme_transcript(&readme);
    assert!(promised.len() >= 6, "the README shows less: {promised:?}");
    for line in promised {
        let is_there = printed.contains(&masked(&line));
        assert!(is_there, "the demo does not print\n{line}\nbut\n{stdout}");
    }
    // No pod that replaces a victim is preempted, too.
    let preempted = stdout
        .lines()
        .filter(|it| it.contains("due to prioritization on nodes"));
    assert_eq!(preempted.count(), 3, "{stdout}");
    assert!(
        stdout
            .trim_end()
            .ends_with("The demo ends, and its cluster is removed"),
        "{stdout}"
    );
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The demo's lines in the README: the blocks without a language of its section.
fn readme_transcript(readme: &str) -> Vec<String> {
    let (_, section) = readme.split_once("## Watch a preemption").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let blocks = section.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(|it| it.trim_start_matches('\n').lines());
    lines.map(str::to_owned).collect()
}

/// A line without the parts that differ between runs: ages, uids and name suffixes.
fn masked(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '…';
        let core = word.trim_matches(|c: char| !is_part(c));
        word.replace(core, &masked_word(core))
    });
    words.collect::<Vec<_>>().join(" ")
}

fn masked_word(word: &str) -> String {
    let is_hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
    let digits = word.strip_suffix('s').unwrap_or_default();
    if !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()) {
        return "Ns".to_owned();
    }
    if word.len() == 36 && word.split('-').count() == 5 && word.split('-').all(is_hex) {
        return "…".to_owned();
    }
    match word.rsplit_once('-') {
        Some((name, end)) if end.len() == 16 && is_hex(end) => format!("{name}-…"),
        _ => word.to_owned(),
    }
}
