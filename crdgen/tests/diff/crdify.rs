//! What crdify says of the same changes, and why it is something else where it is. `docs/crd-diff.md` has the tables.

use crate::cases;
use lockkeeper_crdgen::diff::{CODES, ChangeClass, compare};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CrdifyRecord {
    verdicts: Vec<CrdifyVerdict>,
    why: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CrdifyVerdict {
    case: String,
    crdify: Crdify,
    why: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Crdify {
    Passes,
    Fails,
}

impl Crdify {
    const fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Fails => "fails",
        }
    }
}

fn read_record() -> CrdifyRecord {
    serde_saphyr::from_str(include_str!("../crdify/verdicts.yaml")).unwrap()
}

fn our_classes() -> BTreeMap<String, ChangeClass> {
    let cases = cases::all().into_iter();
    let classes = cases.map(|case| {
        let changes = compare(&[case.before()], &[case.after()]);
        let worst = changes.iter().map(|it| it.class).max();
        (case.name, worst.unwrap_or(ChangeClass::Compatible))
    });
    classes.collect()
}

#[test]
fn differences_from_crdify_have_reasons() {
    let (recorded, ours) = (read_record(), our_classes());
    let mut used = BTreeSet::new();
    for verdict in &recorded.verdicts {
        let (case, class) = (&verdict.case, ours[&verdict.case]);
        let is_other = (class == ChangeClass::Breaking) != (verdict.crdify == Crdify::Fails);
        assert_eq!(
            is_other,
            verdict.why.is_some(),
            "{case}: {class}, crdify {:?}",
            verdict.crdify
        );
        if let Some(why) = &verdict.why {
            assert!(recorded.why.contains_key(why), "{case}: {why}");
            used.insert(why);
        }
    }
    assert_eq!(
        used.len(),
        recorded.why.len(),
        "each reason is one of something"
    );
    assert_eq!(recorded.verdicts.len(), ours.len());
}

/// `tests/crdify/run` names the program.
#[test]
fn crdify_verdicts_match_record() {
    let Some(program) = env::var_os("LOCKKEEPER_CRDIFY") else {
        println!("skipped: LOCKKEEPER_CRDIFY names no program");
        return;
    };
    let folder = TempDir::new().unwrap();
    let cases: BTreeMap<_, _> = cases::all()
        .into_iter()
        .map(|it| (it.name.clone(), it))
        .collect();
    let mut wrong = Vec::new();
    for verdict in read_record().verdicts {
        let case = &cases[&verdict.case];
        let write = |name: &str, definition| {
            let path = folder.path().join(name);
            fs::write(&path, serde_json::to_string(&definition).unwrap()).unwrap();
            format!("file://{}", path.display())
        };
        let (old, new) = (
            write("old.json", case.before()),
            write("new.json", case.after()),
        );
        let status = Command::new(&program)
            .args([old, new])
            .stdout(Stdio::null())
            .status();
        let said = if status.unwrap().success() {
            Crdify::Passes
        } else {
            Crdify::Fails
        };
        if said != verdict.crdify {
            wrong.push(format!("{}: {}", verdict.case, said.name()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The part of the page below this line is made from the code and the cases.
const PAGE_HEADER: &str =
    "<!-- Made by UPDATE_DOCS=1 cargo test -p lockkeeper-crdgen --test diff -->\n";

#[test]
fn crdify_page_is_current() {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/crd-diff.md");
    let page = fs::read_to_string(&path).unwrap();
    let (written, _) = page
        .split_once(PAGE_HEADER)
        .expect("the page says where the tables begin");
    let made = format!("{written}{PAGE_HEADER}{}", tables());
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let page = fs::read_to_string(&path).unwrap();
    assert!(
        page == made,
        "docs/crd-diff.md is behind; UPDATE_DOCS=1 cargo test -p lockkeeper-crdgen --test diff"
    );
}

fn tables() -> String {
    let mut out = "\n## The kinds of changes\n\n| id | name | class | means | do |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for row in CODES {
        let (id, name, class) = (row.id, row.name, row.class);
        writeln!(
            out,
            "| {id} | {name} | {class} | {} | {} |",
            row.meaning, row.advice
        )
        .unwrap();
    }
    let (recorded, ours) = (read_record(), our_classes());
    let differing = recorded
        .verdicts
        .iter()
        .filter(|it| it.why.is_some())
        .count();
    let all = recorded.verdicts.len();
    writeln!(
        out,
        "\n## Beside crdify\n\nOf {all} changes crdify judges {} as this does, and {differing} otherwise. Its verdicts are \
         those of v0.5.0; `crdgen/tests/crdify/run` holds them to it. Breaking stands beside an error of crdify.\n\n| change | here | crdify | why |\n| --- | --- | --- | --- |",
        all - differing
    )
    .unwrap();
    for verdict in &recorded.verdicts {
        let why = verdict.why.as_ref().map_or("", |it| &recorded.why[it]);
        let (case, class) = (&verdict.case, ours[&verdict.case]);
        writeln!(
            out,
            "| {case} | {class} | {} | {why} |",
            verdict.crdify.name()
        )
        .unwrap();
    }
    out
}
