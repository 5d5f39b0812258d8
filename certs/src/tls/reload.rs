//! Reloads objects that are built from files.

use super::error::TlsError;
use super::file_watcher::{FileChanges, LastFailure};
use super::status::CertificateStatus;
use std::path::PathBuf;
use std::sync::Arc;
use tracing::{info, warn};

/// An object that is built from files and can be reloaded.
pub(super) trait Reloadable: Send + Sync {
    /// The name for log messages.
    fn name(&self) -> &'static str;

    /// The files that it is built from.
    fn files(&self) -> Vec<PathBuf>;

    /// Loads the current content of the files. Returns false if it is unchanged.
    ///
    /// An error keeps the loaded state.
    fn refresh(&self) -> Result<bool, TlsError>;
}

/// Reloads objects when their files change.
pub(super) struct Reloader {
    pub(super) sources: Vec<ReloadTarget>,
    pub(super) changes: FileChanges,
    pub(super) status: CertificateStatus,
}

impl Reloader {
    pub(super) fn reload_changed(&self) {
        // Before the files are read, or a change between the two would be missed.
        self.changes.arm();
        for watched in &self.sources {
            watched.reload_if_changed(&self.status);
        }
    }
}

/// An object and its last failure.
pub(super) struct ReloadTarget {
    pub(super) source: Arc<dyn Reloadable>,
    failure: LastFailure,
}

impl ReloadTarget {
    pub(super) fn new(source: Arc<dyn Reloadable>) -> Self {
        Self {
            source,
            failure: LastFailure::default(),
        }
    }

    fn reload_if_changed(&self, status: &CertificateStatus) {
        let what = self.source.name();
        match self.source.refresh() {
            Ok(changed) => {
                if changed {
                    status.count_reload();
                    let not_after = status.not_after();
                    info!(what, not_after, "loaded new files");
                }
                self.failure.clear();
            }
            Err(error) => {
                status.count_failure();
                let reason = error.to_string();
                if self.failure.is_new(&reason) {
                    warn!(
                        what,
                        reason, "cannot use the files as they are; the old ones are kept"
                    );
                }
            }
        }
    }
}
