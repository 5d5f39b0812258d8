//! The structure inside each crate: no file cycles, no type with too many methods or spread over too many files.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

mod files;
mod source;
mod types;

use cargo_metadata::MetadataCommand;
use source::Target;
use std::collections::BTreeSet;
use std::fs;
use std::sync::LazyLock;
use types::Size;

/// The most inherent methods of a type.
const METHODS_MAX: usize = 30;

/// The most files with inherent `impl` blocks of a type.
const IMPL_FILES_MAX: usize = 3;

/// The parent modules that define items their children use, one path a line. Remove a line when you have moved the
/// items into a file of their own; no line may be added.
const PARENTS: &str = include_str!("parents.txt");

/// The facts about the workspace; the syntax trees themselves cannot be shared between test threads.
struct Facts {
    cycles: Vec<String>,
    parents: BTreeSet<String>,
    sizes: Vec<(String, Size)>,
}

static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    let metadata = MetadataCommand::new()
        .no_deps()
        .exec()
        .expect("cargo metadata");
    let targets = source::targets(&metadata);
    assert!(targets.len() >= metadata.workspace_members.len());
    let mut facts = Facts {
        cycles: Vec::new(),
        parents: BTreeSet::new(),
        sizes: Vec::new(),
    };
    for target in &targets {
        let cycles = files::cycles(target).into_iter();
        facts
            .cycles
            .extend(cycles.map(|cycle| format!("{}: {}", target.name, cycle.join(" "))));
        facts
            .parents
            .extend(files::parents_with_shared_items(target));
        facts.sizes.extend(types::sizes(target));
    }
    facts
});

#[test]
fn crates_have_no_file_cycles() {
    assert!(
        FACTS.cycles.is_empty(),
        "files import each other; move what both use into a file of its own:\n{}",
        FACTS.cycles.join("\n")
    );
}

#[test]
fn parents_with_shared_items_are_listed() {
    let listed: BTreeSet<String> = PARENTS.lines().map(str::to_owned).collect();
    let new: Vec<_> = FACTS.parents.difference(&listed).collect();
    let fixed: Vec<_> = listed.difference(&FACTS.parents).collect();
    assert!(
        new.is_empty(),
        "a parent module wires its children; move the items that they use into a file of their own: {new:#?}"
    );
    assert!(
        fixed.is_empty(),
        "remove these lines from tests/structure/parents.txt: {fixed:#?}"
    );
}

#[test]
fn types_have_a_bounded_number_of_methods_and_files() {
    let faults: Vec<String> = FACTS
        .sizes
        .iter()
        .filter(|(_, size)| size.methods > METHODS_MAX || size.files.len() > IMPL_FILES_MAX)
        .map(|(name, size)| {
            let (methods, files) = (size.methods, size.files.len());
            format!("{name}: {methods} methods (at most {METHODS_MAX}) in {files} files (at most {IMPL_FILES_MAX})")
        })
        .collect();
    assert!(
        faults.is_empty(),
        "types with too many methods or files:\n{}",
        faults.join("\n")
    );
}

/// Writes a crate of two files that need each other and one that does not.
fn sample(children: &[(&str, &str)]) -> (tempfile::TempDir, Target) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in children {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let target = Target::load(
        "sample".to_owned(),
        &folder.path().join("lib.rs"),
        folder.path(),
    );
    (folder, target)
}

#[test]
fn cycle_of_two_files_is_found() {
    let (_folder, target) = sample(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        (
            "b.rs",
            "pub struct B; impl B { fn a(&self) -> Option<super::a::A> { None } }",
        ),
        ("c.rs", "use crate::{a::A, b::B}; struct C(A, B);"),
    ]);
    assert_eq!(files::cycles(&target), [["a.rs", "b.rs"]]);
}

#[test]
fn parent_with_items_that_its_children_use_is_found() {
    let (_folder, target) = sample(&[
        ("lib.rs", "mod parent;"),
        (
            "parent.rs",
            "mod child; pub struct Shared; pub fn run() { child::run(); }",
        ),
        (
            "parent/child.rs",
            "use super::Shared; pub fn run() -> Option<Shared> { None }",
        ),
    ]);
    assert_eq!(files::cycles(&target), Vec::<Vec<String>>::new());
    assert_eq!(
        files::parents_with_shared_items(&target),
        BTreeSet::from(["parent.rs".to_owned()])
    );
}

#[test]
fn visibility_of_a_child_is_no_import() {
    let (_folder, target) = sample(&[
        ("lib.rs", "mod parent;"),
        ("parent.rs", "mod child; pub fn run() { child::run(); }"),
        ("parent/child.rs", "pub(super) fn run() {}"),
    ]);
    assert_eq!(files::parents_with_shared_items(&target), BTreeSet::new());
}

#[test]
fn re_exports_and_tests_are_no_imports() {
    let (_folder, target) = sample(&[
        ("lib.rs", "mod parent;"),
        (
            "parent.rs",
            "mod leaf; mod user; pub use leaf::Leaf; pub use user::User;",
        ),
        (
            "parent/leaf.rs",
            "pub struct Leaf; #[cfg(test)] mod tests { use crate::parent::user::User; }",
        ),
        ("parent/user.rs", "use super::Leaf; pub struct User(Leaf);"),
    ]);
    assert_eq!(files::cycles(&target), Vec::<Vec<String>>::new());
}

#[test]
fn paths_in_macro_arguments_are_imports() {
    let (_folder, target) = sample(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub fn a() { println!(\"{}\", crate::b::b()); }"),
        ("b.rs", "pub fn b() -> u8 { crate::a::a(); 0 }"),
    ]);
    assert_eq!(files::cycles(&target), [["a.rs", "b.rs"]]);
}

#[test]
fn methods_are_counted_by_type_over_files() {
    let (_folder, target) = sample(&[
        ("lib.rs", "mod a; mod b;"),
        (
            "a.rs",
            "pub struct A; impl A { fn x(&self) {} fn y(&self) {} } struct Local; impl Local { fn x() {} }",
        ),
        (
            "b.rs",
            "use crate::a::A; impl A { fn z(&self) {} } impl Clone for A { fn clone(&self) -> Self { A } } struct Local; impl Local { fn x() {} }",
        ),
    ]);
    let sizes = types::sizes(&target);
    let a = &sizes["a.rs A"];
    assert_eq!((a.methods, a.files.len()), (3, 2));
    assert_eq!(sizes["a.rs Local"].methods, 1);
    assert_eq!(sizes["b.rs Local"].methods, 1);
}
