//! Reads files from git revisions. Arguments are passed without a shell.

use super::error::Error;
use super::text::{Text, is_manifest_file};
use std::path::Path;
use std::process::Command;

/// The texts under a path in a revision, relative to a folder.
pub(super) fn show_texts(from: &Path, revision: &str, path: &str) -> Result<Vec<Text>, Error> {
    let place = format!("{revision}:{path}");
    // git would parse a leading hyphen as an option.
    if revision.is_empty() || revision.starts_with('-') {
        let message = "not a revision".to_owned();
        return Err(Error::Git { place, message });
    }
    // The object type, `blob` or `tree`, distinguishes a file from a folder.
    let sort = run_git(from, &["cat-file", "-t", &place], &place)?;
    if sort.trim() == "blob" {
        let text = run_git(from, &["cat-file", "blob", &place], &place)?;
        return Ok(vec![Text { place, text }]);
    }
    // `-z` separates names by NUL and quotes none.
    let listed = run_git(
        from,
        &["ls-tree", "-r", "-z", "--name-only", "--full-tree", &place],
        &place,
    )?;
    let names = listed
        .split('\0')
        .filter(|it| is_manifest_file(Path::new(it)));
    let texts = names.map(|name| {
        let folder = place.trim_end_matches('/');
        let separator = if folder.ends_with(':') { "" } else { "/" };
        let place = format!("{folder}{separator}{name}");
        let text = run_git(from, &["cat-file", "blob", &place], &place)?;
        Ok(Text { place, text })
    });
    texts.collect()
}

/// The texts of an existing path in a revision.
pub(super) fn revision_texts(revision: &str, path: &Path) -> Result<Vec<Text>, Error> {
    if path.is_dir() {
        // `./` is relative to the directory of `-C`; other paths start at the repository root.
        return show_texts(path, revision, "./");
    }
    let from = path.parent().filter(|it| !it.as_os_str().is_empty());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    show_texts(
        from.unwrap_or(Path::new(".")),
        revision,
        &format!("./{name}"),
    )
}

fn run_git(from: &Path, arguments: &[&str], place: &str) -> Result<String, Error> {
    let failed = |message: String| Error::Git {
        place: place.to_owned(),
        message,
    };
    let output = Command::new("git")
        .arg("-C")
        .arg(from)
        .args(arguments)
        .output();
    let output = output.map_err(|error| failed(format!("git cannot be run: {error}")))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        let message = message.lines().next().unwrap_or("it failed");
        let message = message.trim_start_matches("fatal: ").trim_end_matches('.');
        return Err(failed(message.to_owned()));
    }
    String::from_utf8(output.stdout).map_err(|_| failed("not UTF-8 text".to_owned()))
}
