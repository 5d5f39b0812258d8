//! The private directory: its permissions, its lock and atomic writes.

use super::error::SelfSignedError;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) const CA_CERTIFICATE: &str = "ca.crt";
pub(super) const CA_KEY: &str = "ca.key";
pub(super) const CERTIFICATE: &str = "tls.crt";
pub(super) const KEY: &str = "tls.key";

/// Any permission of the group or of other users.
const GROUP_AND_OTHERS_MASK: u32 = 0o077;

const DIRECTORY_MODE: u32 = 0o700;

/// Mode of a key: only its owner can read it, wherever the file is moved.
pub(super) const KEY_MODE: u32 = 0o600;

/// Mode of a certificate, which is public.
pub(super) const CERTIFICATE_MODE: u32 = 0o644;

/// The longest wait for another process, which needs some milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(10);

const LOCK_RETRY: Duration = Duration::from_millis(20);

/// A directory that only this user can enter, locked by this process until it is dropped.
pub(super) struct CertificateDirectory {
    path: PathBuf,
    /// Has the lock, and is used to sync renames.
    handle: File,
}

impl CertificateDirectory {
    /// Creates the directory if it is missing, checks its permissions, and takes its lock.
    pub(super) fn open(path: &Path) -> Result<Self, SelfSignedError> {
        DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(path)
            .map_err(io_error("make the directory", path))?;
        let handle = File::open(path).map_err(io_error("open", path))?;
        let metadata = handle.metadata().map_err(io_error("examine", path))?;
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & GROUP_AND_OTHERS_MASK != 0 {
            return Err(SelfSignedError::InsecurePermissions {
                directory: path.into(),
                mode,
            });
        }
        lock(&handle, path)?;
        Ok(Self {
            path: path.into(),
            handle,
        })
    }

    /// Returns the path of a file in the directory.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns true if the file exists.
    pub(super) fn has_file(&self, name: &str) -> Result<bool, SelfSignedError> {
        let path = self.file(name);
        path.try_exists().map_err(io_error("examine", &path))
    }

    /// Errors if `missing`, which belongs to `found`, does not exist.
    pub(super) fn require_file(&self, missing: &str, found: &str) -> Result<(), SelfSignedError> {
        if self.has_file(missing)? {
            return Ok(());
        }
        Err(SelfSignedError::Incomplete {
            missing: self.file(missing),
            found: self.file(found),
        })
    }

    /// Replaces a file atomically: readers get the old or the new content, also after a power loss.
    pub(super) fn write(
        &self,
        name: &str,
        mode: u32,
        content: &str,
    ) -> Result<(), SelfSignedError> {
        let path = self.file(name);
        let temporary = self.file(&format!(".{name}.new"));
        let written = self.replace(&path, &temporary, mode, content);
        if written.is_err() {
            // The first error is reported; a temporary file that remains is removed at the next
            // write.
            let _ = remove_leftover(&temporary);
        }
        written.map_err(io_error("write", &path))
    }

    fn replace(&self, path: &Path, temporary: &Path, mode: u32, content: &str) -> io::Result<()> {
        remove_leftover(temporary)?;
        // `create_new`, so that the file gets exactly this mode.
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(temporary)?;
        file.write_all(content.as_bytes())?;
        // Before the rename, or a power loss could leave a renamed file without its content.
        file.sync_all()?;
        std::fs::rename(temporary, path)?;
        // Makes the rename durable.
        self.handle.sync_all()
    }
}

/// Removes the temporary file of an interrupted write.
fn remove_leftover(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Waits for the lock of the directory, with a timeout.
fn lock(handle: &File, path: &Path) -> Result<(), SelfSignedError> {
    let started = Instant::now();
    loop {
        // Polled, because a blocking lock has no timeout.
        match handle.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(reason)) => return Err(io_error("lock", path)(reason)),
            Err(TryLockError::WouldBlock) if started.elapsed() > LOCK_WAIT => {
                return Err(SelfSignedError::Locked {
                    directory: path.into(),
                });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY),
        }
    }
}

/// Returns a function that wraps the error of a system call.
fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SelfSignedError {
    move |reason| SelfSignedError::Io {
        action,
        path: path.into(),
        reason,
    }
}
