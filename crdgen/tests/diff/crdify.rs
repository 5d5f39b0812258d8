//! The verdicts of crdify on the same changes, and the reasons for differences. `docs/crd-diff.md` has the tables.

use crate::cases;
use crate::crdify_record::{Crdify, read_record};
use lockkeeper_crdgen::diff::{CODES, ChangeClass, compare};
use lockkeeper_testkit::assert_file_is_current;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

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
    let command = "cargo test -p lockkeeper-crdgen --test diff";
    assert_file_is_current(&path, &made, command);
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
        "\n## Compared with crdify\n\nOf {all} changes crdify v0.5.0 classifies {} in the same way, and {differing} differently; \
         `crdgen/tests/crdify/run` checks this. Breaking corresponds to an error of crdify.\n\n| change | here | crdify | why |\n| --- | --- | --- | --- |",
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
