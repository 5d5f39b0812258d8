//! The folders with rules that users wrote (`--rules`).

use anyhow::{Context, Error, anyhow, bail};
use clap::Args;
use lockkeeper_policies::registry::Registration;
use lockkeeper_policies::rule::Operation;
use lockkeeper_policies::user::{KindName, PAGE_MAX_BYTES, RULES_MAX, Rules, Source};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The flag.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Folders {
    /// Folder with rules of your own, one page (.md) each; may be repeated (docs/user-rules.md)
    #[arg(long = "rules", value_name = "DIR")]
    folders: Vec<PathBuf>,
}

impl Folders {
    /// These folders.
    pub(crate) fn of(folders: Vec<PathBuf>) -> Self {
        Self { folders }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// The pages, in the order of the folders and of their names.
    pub(crate) fn pages(&self) -> Result<Vec<Source>, Error> {
        let mut out = Vec::new();
        for folder in &self.folders {
            for path in files(folder)? {
                // One more is enough to say that there are too many.
                if out.len() > RULES_MAX {
                    break;
                }
                out.push(page(&path)?);
            }
        }
        Ok(out)
    }
}

/// Compiles pages. The error has a line for each that is wrong.
pub(crate) fn compile(pages: &[Source]) -> Result<Arc<Rules>, Error> {
    let rules = Rules::read(pages).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow!("{}", lines.join("\n"))
    })?;
    Ok(Arc::new(rules))
}

/// The pages of a folder. A `README.md` is none.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let shown = folder.display();
    let read = || format!("cannot read the folder {shown}; --rules takes one with pages of rules");
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).with_context(read)? {
        let path = entry.with_context(read)?.path();
        let is_page = path.extension().is_some_and(|it| it == "md");
        let is_readme = path.file_name().is_some_and(|it| it == "README.md");
        if is_page && !is_readme {
            out.push(path);
        }
    }
    if out.is_empty() {
        bail!("{shown} has no pages of rules: files that end in .md");
    }
    out.sort();
    Ok(out)
}

fn page(path: &Path) -> Result<Source, Error> {
    let name = path.display().to_string();
    let mut text = String::new();
    // One more byte, and the page is told to be too large.
    let most = u64::try_from(PAGE_MAX_BYTES)?.saturating_add(1);
    let read = File::open(path).and_then(|file| file.take(most).read_to_string(&mut text));
    read.with_context(|| format!("cannot read {name}"))?;
    Ok(Source { name, text })
}

/// What of these rules the webhook is never asked about, unless somebody registers it: kinds and operations for
/// which lockkeeper's own webhook configurations have nothing.
pub(crate) fn unregistered(rules: &Rules, registered: &[Registration]) -> Vec<String> {
    let is_sent = |kind: KindName<'_>, operation: &Operation| {
        registered.iter().any(|it| {
            let is_version = kind.version == "*" || it.version == kind.version;
            let is_kind = it.kind == kind.kind && it.group == kind.group && is_version;
            is_kind && it.validated_on.contains(operation)
        })
    };
    let mut out = Vec::new();
    for rule in rules.iter() {
        for kind in &rule.kinds {
            let name = KindName {
                group: &kind.group,
                version: &kind.version,
                kind: &kind.kind,
            };
            let operations = rule.operations.iter();
            let missing: Vec<&str> = operations
                .filter(|it| !is_sent(name, it))
                .map(|it| it.as_str())
                .collect();
            if !missing.is_empty() {
                out.push(format!("{}: {} of {kind}", rule.id, missing.join(", ")));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use lockkeeper_policies::registry;
    use lockkeeper_policies::settings::Settings;
    use std::collections::BTreeSet;
    use tempfile::TempDir;

    const PAGE: &str = "---\nid: TEAM001\nname: a\nkinds: [{version: v1, kind: Pod}, {version: v1, kind: Node}]\noperations: [CREATE, DELETE]\nvalidations: [{expression: 'true'}]\n---\n";

    #[test]
    fn pages_are_read_in_their_order() {
        let folder = TempDir::new().unwrap();
        let path = folder.path();
        for name in ["b.md", "a.md", "README.md", "c.yaml"] {
            fs::write(path.join(name), PAGE).unwrap();
        }
        let pages = Folders::of(vec![path.to_owned()]).pages().unwrap();
        let names: Vec<&str> = pages
            .iter()
            .filter_map(|it| it.name.rsplit('/').next())
            .collect();
        assert_eq!(names, ["a.md", "b.md"]);
        let error = compile(&pages).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 2, "{error}");
        assert!(error.contains("b.md:1:1: "), "{error}");
        fs::write(path.join("a.md"), "x".repeat(PAGE_MAX_BYTES + 2)).unwrap();
        let pages = Folders::of(vec![path.to_owned()]).pages().unwrap();
        let error = compile(&pages).unwrap_err().to_string();
        assert!(
            error.contains("a.md:1:1: the page has more than"),
            "{error}"
        );
    }

    #[test]
    fn a_folder_without_pages_is_an_error() {
        let folder = TempDir::new().unwrap();
        let of = |path: &Path| {
            Folders::of(vec![path.to_owned()])
                .pages()
                .unwrap_err()
                .to_string()
        };
        assert!(of(folder.path()).contains("has no pages of rules"));
        assert!(of(&folder.path().join("x")).contains("cannot read the folder"));
    }

    #[test]
    fn what_no_webhook_configuration_has_is_named() {
        let source = Source {
            name: "a.md".to_owned(),
            text: PAGE.to_owned(),
        };
        let rules = compile(&[source]).unwrap();
        assert_eq!(
            unregistered(
                &rules,
                &registry::registrations(&BTreeSet::new(), &Settings::default())
            ),
            [
                "TEAM001: DELETE of v1 Pod",
                "TEAM001: CREATE, DELETE of v1 Node"
            ]
        );
    }
}
