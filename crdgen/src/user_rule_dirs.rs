//! The folders with rules of users (`--rules`).

use clap::Args;
use lockkeeper_policies::user_rules::{
    PAGE_MAX_BYTES, RULES_MAX, Source, UserRules, UserRulesError,
};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An error of reading or compiling rules of users.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder cannot be read.
    #[error("cannot read the folder {path}; --rules takes one with pages of rules")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// There is no page in a folder.
    #[error("{path} has no pages of rules: files that end in .md")]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// A page cannot be read.
    #[error("cannot read {name}")]
    Page {
        /// The file.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Invalid rules, one line for each error.
    #[error("{}", lines(.0))]
    Invalid(Vec<UserRulesError>),
}

fn lines(errors: &[UserRulesError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The flag.
#[derive(Args, Clone, Debug, Default)]
pub struct RuleDirs {
    /// Folder with rules of your own, one page (.md) each; may be repeated (docs/user-rules.md)
    #[arg(long = "rules", value_name = "DIR")]
    folders: Vec<PathBuf>,
}

impl RuleDirs {
    /// These folders.
    #[must_use]
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// The pages, in the order of the folders and of their names.
    ///
    /// # Errors
    ///
    /// When a folder or a page cannot be read, or a folder has none.
    pub fn pages(&self) -> Result<Vec<Source>, Error> {
        let mut out = Vec::new();
        for folder in &self.folders {
            for path in files(folder)? {
                // The compiler rejects more than the limit; one more is enough for its error.
                if out.len() > RULES_MAX {
                    break;
                }
                out.push(read_page(&path)?);
            }
        }
        Ok(out)
    }
}

/// Compiles pages.
///
/// # Errors
///
/// All errors of the pages.
pub fn compile(pages: &[Source]) -> Result<Arc<UserRules>, Error> {
    UserRules::parse(pages, &lockkeeper_policies::registry::all())
        .map(Arc::new)
        .map_err(Error::Invalid)
}

/// The pages of a folder, without `README.md`.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let unread = |source| Error::Folder {
        path: folder.to_owned(),
        source,
    };
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        let is_page = path.extension().is_some_and(|it| it == "md");
        let is_readme = path.file_name().is_some_and(|it| it == "README.md");
        // A pipe would block; a link to a page is followed, as in a volume of a ConfigMap.
        if is_page && !is_readme && path.is_file() {
            out.push(path);
        }
    }
    if out.is_empty() {
        return Err(Error::Empty {
            path: folder.to_owned(),
        });
    }
    out.sort();
    Ok(out)
}

fn read_page(path: &Path) -> Result<Source, Error> {
    let name = path.display().to_string();
    let mut text = String::new();
    // One byte more than the limit is enough for the compiler to reject the page.
    let most = u64::try_from(PAGE_MAX_BYTES).map_or(u64::MAX, |it| it.saturating_add(1));
    match File::open(path).and_then(|file| file.take(most).read_to_string(&mut text)) {
        Ok(_) => Ok(Source { name, text }),
        Err(source) => Err(Error::Page { name, source }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use tempfile::TempDir;

    const PAGE: &str = "---\nid: TEAM001\nname: a\nkinds: [{version: v1, kind: Pod}, {version: v1, kind: Node}]\noperations: [CREATE, DELETE]\nvalidations: [{expression: 'true'}]\n---\n";

    #[test]
    fn rule_pages_are_read_in_order() {
        let folder = TempDir::new().unwrap();
        let path = folder.path();
        for name in ["b.md", "a.md", "README.md", "c.yaml"] {
            fs::write(path.join(name), PAGE).unwrap();
        }
        let pages = RuleDirs::new(vec![path.to_owned()]).pages().unwrap();
        let names: Vec<&str> = pages
            .iter()
            .filter_map(|it| it.name.rsplit('/').next())
            .collect();
        assert_eq!(names, ["a.md", "b.md"]);
        let error = compile(&pages).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 2, "{error}");
        assert!(error.contains("b.md:1:1: "), "{error}");
        fs::write(path.join("a.md"), "x".repeat(PAGE_MAX_BYTES + 2)).unwrap();
        let pages = RuleDirs::new(vec![path.to_owned()]).pages().unwrap();
        let error = compile(&pages).unwrap_err().to_string();
        assert!(
            error.contains("a.md:1:1: the page has more than"),
            "{error}"
        );
    }

    #[test]
    fn rule_dir_without_pages_is_rejected() {
        let folder = TempDir::new().unwrap();
        let of = |path: &Path| {
            RuleDirs::new(vec![path.to_owned()])
                .pages()
                .unwrap_err()
                .to_string()
        };
        assert!(of(folder.path()).contains("has no pages of rules"));
        assert!(of(&folder.path().join("x")).contains("cannot read the folder"));
    }
}
