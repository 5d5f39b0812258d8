//! The files that paths name.

use super::file_identity::FileIdentity;
use super::name_pattern::NamePattern;
use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// A file to read.
#[derive(Debug, PartialEq, Eq)]
pub enum ListedFile {
    /// A file, which may be unreadable.
    File(PathBuf),
    /// A folder or a link that cannot be followed.
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// Lists files. Each file and folder is listed once, also if it has several names: links may form loops.
#[derive(Debug, Default)]
pub struct FileList {
    excluded: Vec<NamePattern>,
    seen: BTreeSet<FileIdentity>,
}

/// The state of listing one folder.
#[derive(Default)]
struct Walk {
    folders: BTreeSet<PathBuf>,
    /// Symbolic links are followed last, so that a file is listed by the name without links.
    links: BTreeSet<PathBuf>,
    found: Vec<ListedFile>,
}

impl ListedFile {
    fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Unreadable { path, .. } => path,
        }
    }
}

impl FileList {
    /// A list without the files and folders that match one of these patterns.
    #[must_use]
    pub fn new(excluded: Vec<NamePattern>) -> Self {
        Self {
            excluded,
            seen: BTreeSet::new(),
        }
    }

    /// The file of this path with any extension, or the manifests in the folder and below, in the order of their names.
    /// Pipes, sockets and devices in folders are skipped; a pipe that the caller names is listed.
    pub fn list(&mut self, path: &Path) -> Vec<ListedFile> {
        if self.is_excluded(path) {
            return Vec::new();
        }
        match fs::metadata(path) {
            Ok(data) if data.is_dir() => self.list_folder(path, &data),
            Ok(data) if data.is_file() && !self.is_new(path, &data) => Vec::new(),
            // Reading it reports the error, if there is one.
            _ => vec![ListedFile::File(path.to_owned())],
        }
    }

    fn list_folder(&mut self, path: &Path, data: &Metadata) -> Vec<ListedFile> {
        let mut walk = Walk::default();
        if self.is_new(path, data) {
            walk.folders.insert(path.to_owned());
        }
        loop {
            if let Some(folder) = walk.folders.pop_first() {
                if let Err(error) = self.read_folder(&folder, &mut walk) {
                    walk.add_unreadable(folder, &error);
                }
            } else if let Some(link) = walk.links.pop_first() {
                match fs::metadata(&link) {
                    Ok(data) => self.add(link, &data, &mut walk),
                    Err(error) if is_manifest(&link) => walk.add_unreadable(link, &error),
                    Err(_) => {}
                }
            } else {
                break;
            }
        }
        walk.found.sort_by(|a, b| a.path().cmp(b.path()));
        walk.found
    }

    fn read_folder(&mut self, folder: &Path, walk: &mut Walk) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder)? {
            entries.push(entry?.path());
        }
        // Of several names of a file, the first one is listed.
        entries.sort();
        for path in entries {
            // A file that was removed since the folder was read is not there any more.
            let Ok(data) = fs::symlink_metadata(&path) else {
                continue;
            };
            if self.is_excluded(&path) {
                // Nor is it listed by the name of a link.
                self.is_new(&path, &data);
            } else if data.is_symlink() {
                walk.links.insert(path);
            } else {
                self.add(path, &data, walk);
            }
        }
        Ok(())
    }

    fn add(&mut self, path: PathBuf, data: &Metadata, walk: &mut Walk) {
        if data.is_dir() {
            if self.is_new(&path, data) {
                walk.folders.insert(path);
            }
        } else if data.is_file() && is_manifest(&path) && self.is_new(&path, data) {
            walk.found.push(ListedFile::File(path));
        }
    }

    fn is_new(&mut self, path: &Path, data: &Metadata) -> bool {
        self.seen.insert(FileIdentity::new(path, data))
    }

    fn is_excluded(&self, path: &Path) -> bool {
        self.excluded.iter().any(|it| it.matches(path))
    }
}

impl Walk {
    fn add_unreadable(&mut self, path: PathBuf, error: &io::Error) {
        let reason = error.to_string();
        self.found.push(ListedFile::Unreadable { path, reason });
    }
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str());
    matches!(extension, Some("yaml" | "yml" | "json"))
}

#[cfg(test)]
mod tests {
    use super::{FileList, ListedFile, NamePattern};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::path::Path;
    use tempfile::TempDir;

    /// The names of the listed files relative to the folder.
    fn names(folder: &Path, excluded: &[&str], paths: &[&str]) -> Vec<String> {
        let excluded = excluded.iter().map(|it| NamePattern::parse(it).unwrap());
        let mut list = FileList::new(excluded.collect());
        let files = paths.iter().flat_map(|it| list.list(&folder.join(it)));
        files
            .map(|it| match it {
                ListedFile::File(path) => {
                    let path = path.strip_prefix(folder).unwrap();
                    path.display().to_string()
                }
                ListedFile::Unreadable { path, .. } => format!("unreadable {}", path.display()),
            })
            .collect()
    }

    #[test]
    fn file_list_lists_each_file_once() {
        let folder = TempDir::new().unwrap();
        let path = folder.path();
        fs::create_dir_all(path.join("site/examples")).unwrap();
        fs::write(path.join("site/examples/q.yaml"), "").unwrap();
        fs::write(path.join("b.json"), "").unwrap();
        fs::write(path.join("c.txt"), "").unwrap();
        // Two loops, a second name of a folder that sorts first, of a file, and a hard link.
        symlink(".", path.join("x")).unwrap();
        symlink(".", path.join("y")).unwrap();
        symlink("site/examples", path.join("a")).unwrap();
        symlink("b.json", path.join("a.json")).unwrap();
        fs::hard_link(path.join("b.json"), path.join("z.json")).unwrap();
        let all = ["b.json", "site/examples/q.yaml"];
        assert_eq!(names(path, &[], &["."]).len(), 2);
        assert_eq!(names(path, &[], &[""]), all);
        assert_eq!(names(path, &[], &["b.json", "z.json", ""]), all);
        assert_eq!(names(path, &[], &["c.txt"]), ["c.txt"]);
        assert_eq!(names(path, &["examples"], &[""]), ["b.json"]);
        assert_eq!(names(path, &["b.json", "*.json"], &["b.json"]), [""; 0]);
    }

    #[test]
    fn file_list_skips_special_files_in_folders() {
        let folder = TempDir::new().unwrap();
        let path = folder.path();
        let _socket = UnixListener::bind(path.join("s.yaml")).unwrap();
        symlink("/dev/zero", path.join("zero.yaml")).unwrap();
        symlink("missing", path.join("m.yaml")).unwrap();
        let shown = format!("unreadable {}", path.join("m.yaml").display());
        assert_eq!(names(path, &[], &[""]), [shown]);
        assert_eq!(names(path, &[], &["s.yaml"]), ["s.yaml"]);
    }
}
