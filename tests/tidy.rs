//! The tree as a reader meets it: file sizes, words, pages and papers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use cargo_metadata::{MetadataCommand, Package};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The longest file, without its tests, in lines.
const FILE_LINES_MAX: usize = 500;

/// The longest rule, in lines.
const RULE_LINES_MAX: usize = 200;

/// Files that contain forbidden words on purpose: the list of these words, and decisions as they were written.
const WORD_EXCEPTIONS: &[&str] = &["docs/glossary.md", "tests/tidy.rs", "docs/adr/"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

fn files(folder: &Path, extension: &str, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, out);
        } else if path.extension().is_some_and(|e| e == extension) {
            out.push(path);
        }
    }
}

/// The folders of all crates of the workspace, those under `tests` left out.
fn crates() -> Vec<String> {
    let metadata = MetadataCommand::new()
        .no_deps()
        .exec()
        .expect("cargo metadata");
    let folder = |package: &Package| {
        let path = package.manifest_path.parent().unwrap();
        path.strip_prefix(&metadata.workspace_root)
            .unwrap()
            .to_string()
    };
    let folders = metadata.packages.iter().map(folder);
    folders
        .filter(|folder| !folder.starts_with("tests"))
        .collect()
}

fn sources(extension: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for name in crates() {
        for part in ["src", "tests", "benches", "examples"] {
            let folder = root().join(&name).join(part);
            if folder.exists() {
                files(&folder, extension, &mut out);
            }
        }
    }
    files(&root().join("tests"), extension, &mut out);
    assert!(!out.is_empty());
    out
}

#[test]
fn source_files_stay_below_line_limit() {
    for path in sources("rs") {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap();
        let lines = code.lines().count();
        assert!(lines <= FILE_LINES_MAX, "{}: {lines} lines", path.display());
        if path.with_extension("md").exists() {
            assert!(lines <= RULE_LINES_MAX, "{}: {lines} lines", path.display());
        }
    }
}

#[test]
fn suppressions_are_read_only_by_check() {
    for path in sources("rs") {
        let text = fs::read_to_string(&path).unwrap();
        let of = path.strip_prefix(root()).unwrap();
        let may = ["check", "cli", "policies", "tests"]
            .iter()
            .any(|it| of.starts_with(it));
        let reads = text.contains("suppression") || text.contains("lockkeeper.dev/ignore");
        assert!(may || !reads, "{}: it knows of suppressions", of.display());
    }
}

/// The rows of the table under "Forbidden words" of the glossary: the word, and the word to use.
fn forbidden_words() -> Vec<(String, String)> {
    let glossary = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let section = glossary
        .split("## Forbidden words")
        .nth(1)
        .expect("the section");
    let rows = section
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| word |"));
    let words: Vec<_> = rows
        .map(|row| {
            let mut cells = row.split('|').map(str::trim).skip(1);
            (
                cells.next().unwrap().to_owned(),
                cells.next().unwrap().to_owned(),
            )
        })
        .collect();
    assert!(words.len() >= 10, "{words:?}");
    words
}

/// Whether `text` has `word` with no letter or digit beside it, also as a part of an identifier.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        !is_part(before) && (word.ends_with('_') || !is_part(after))
    })
}

/// Removes code spans: the changelog quotes the old names.
fn without_code(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let parts = line.split('`').step_by(2);
        parts.collect::<Vec<_>>().join("``")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn words_are_matched_as_whole_words() {
    assert!(has_word("a crew, then", "crew"));
    assert!(!has_word("a screw", "crew"));
    assert!(has_word("crew_member", "crew"));
    assert!(has_word("let wl_name = 1;", "wl_"));
    assert_eq!(without_code("`old crew` → `pool`, crew"), "`` → ``, crew");
}

#[test]
fn sources_and_docs_have_no_forbidden_words() {
    let words = forbidden_words();
    let mut paths = sources("rs");
    paths.extend(sources("md"));
    files(&root().join("docs"), "md", &mut paths);
    for page in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ] {
        paths.push(root().join(page));
    }
    let mut faults = Vec::new();
    for path in paths {
        let relative = path.strip_prefix(root()).unwrap().display().to_string();
        if WORD_EXCEPTIONS
            .iter()
            .any(|exception| relative.starts_with(exception))
        {
            continue;
        }
        let mut text = fs::read_to_string(&path).unwrap().to_lowercase();
        if relative == "CHANGELOG.md" {
            text = without_code(&text);
        }
        for (number, line) in text.lines().enumerate() {
            for (word, better) in &words {
                if has_word(line, word) {
                    faults.push(format!("{relative}:{}: {word}; use: {better}", number + 1));
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "words that docs/glossary.md forbids:\n{}",
        faults.join("\n")
    );
}

#[test]
fn every_rule_page_belongs_to_a_rule() {
    // A rule for several kinds has one page.
    let pages: BTreeSet<&str> = lockkeeper_policies::registry::all()
        .iter()
        .map(|rule| rule.doc)
        .collect();
    let mut found = Vec::new();
    files(&root().join("policies/src"), "md", &mut found);
    for path in &found {
        let text = fs::read_to_string(path).unwrap();
        assert!(
            pages.contains(text.as_str()),
            "{}: no rule has this page",
            path.display()
        );
    }
    assert_eq!(found.len(), pages.len());
}

/// The relative link targets of a Markdown page, without anchors. Code is left out.
fn relative_links(page: &str) -> Vec<String> {
    let mut prose = String::new();
    let mut in_block = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            prose.push_str(&without_code(line));
            prose.push('\n');
        }
    }
    let targets = prose.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split([')', '#', ' ']).next());
    targets
        .filter(|target| !target.is_empty() && !target.contains(':'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn links_between_documents_are_not_broken() {
    let mut pages = Vec::new();
    for folder in ["docs", "charts", "tests"] {
        files(&root().join(folder), "md", &mut pages);
    }
    let top = fs::read_dir(root()).unwrap();
    let top = top.map(|entry| entry.unwrap().path());
    pages.extend(top.filter(|path| path.extension().is_some_and(|e| e == "md")));
    let mut broken = Vec::new();
    let mut links = 0;
    for page in pages {
        for link in relative_links(&fs::read_to_string(&page).unwrap()) {
            links += 1;
            if !page.parent().unwrap().join(&link).exists() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(links > 100, "{links} links were found");
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

#[test]
fn project_documents_are_complete() {
    let read = |name: &str| fs::read_to_string(root().join(name)).expect(name);
    let architecture = read("ARCHITECTURE.md");
    for name in crates() {
        let start = architecture.find(&format!("### {name}/")).expect(&name);
        let section = &architecture[start..];
        let end = section[1..].find("\n### ").unwrap_or(section.len() - 1);
        assert!(
            section[..=end].contains("Must not know"),
            "{name} says what it must not know"
        );
    }
    assert!(read("CHANGELOG.md").contains("## Unreleased"));
    assert!(read("LICENSE").contains("Apache License"));
    assert!(read("README.md").contains("cargo run --release -- serve"));
    assert!(read("README.md").contains("tests/run"));
    assert!(read("CONTRIBUTING.md").contains("first rule in fifteen minutes"));
}

/// The README shows what kubectl prints: the end-to-end tests hold the snapshot, this the copy.
#[test]
fn readme_shows_actual_output() {
    let snapshot = root().join("tests/e2e/snapshots/bad--cq001-borrow-without-reclaim.snap");
    let snapshot = fs::read_to_string(snapshot).unwrap();
    let printed = snapshot.lines().last().unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains(printed), "{printed}");
}
