//! Atomic replacement of files.

use anyhow::Error;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process;

/// Writes a file atomically: a temporary file in the same folder, then a rename. A file that exists keeps its permissions,
/// a symbolic link remains. After an error or a crash the file has its old text, or does not exist as before.
///
/// # Errors
///
/// Those of the file system, for instance if the disk is full.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    let (path, permissions) = match fs::canonicalize(path) {
        // A rename onto a symbolic link would replace the link, not its target.
        Ok(path) => {
            let metadata = fs::metadata(&path)?;
            if !metadata.is_file() {
                return write_special_file(&path, metadata.is_dir(), text);
            }
            (path, Some(metadata.permissions()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => (path.to_owned(), None),
        Err(error) => return Err(error.into()),
    };
    let beside = temporary_path(&path);
    let done = write_and_rename(&path, &beside, permissions, text);
    if done.is_err() {
        // The write error is returned, not an error of the cleanup.
        let _ = fs::remove_file(&beside);
    }
    done
}

/// Writes to a pipe or a device such as `/dev/stdout`, which cannot be replaced.
fn write_special_file(path: &Path, is_folder: bool, text: &str) -> Result<(), Error> {
    if is_folder {
        return Err(std::io::Error::from(ErrorKind::IsADirectory).into());
    }
    let mut file = fs::File::options().write(true).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}

fn temporary_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.tmp", process::id()))
}

fn write_and_rename(
    path: &Path,
    beside: &Path,
    permissions: Option<Permissions>,
    text: &str,
) -> Result<(), Error> {
    // Fails if the file exists, such as a link of another user in a shared folder.
    let mut file = fs::File::create_new(beside)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.write_all(text.as_bytes())?;
    // Before the rename: after a crash the file has either text, and is never empty.
    file.sync_all()?;
    Ok(fs::rename(beside, path)?)
}

#[cfg(test)]
mod tests {
    use super::write_file;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    #[test]
    fn write_file_is_atomic_and_keeps_permissions() {
        let folder = TempDir::new().unwrap();
        let (file, link) = (folder.path().join("a.yaml"), folder.path().join("b.yaml"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        write_file(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(write_file(folder.path(), "new").is_err());
    }

    #[test]
    fn write_file_creates_file_or_leaves_none() {
        let folder = TempDir::new().unwrap();
        write_file(&folder.path().join("new.html"), "text").unwrap();
        assert!(write_file(&folder.path().join("none/new.html"), "text").is_err());
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1);
    }
}
