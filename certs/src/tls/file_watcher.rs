//! Detects changes of the files: by events of their directories, and by a timer.
//!
//! The directories are watched and not the files. A kubelet replaces the content of a file by renaming a
//! symbolic link beside it (`..data`): a watch of the file itself gets one delete event and nothing
//! afterwards.

use lockkeeper_api::config::WebhookSettings;
use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::warn;

/// Quiet time after the last event before the files are read: a certificate and its key are two files.
const QUIET_PERIOD: Duration = Duration::from_millis(100);

/// The longest wait for that quiet time, for directories with other activity.
const QUIET_WAIT_MAX: Duration = Duration::from_secs(1);

/// How changes of the files are detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchMode {
    /// Watch the directories of the files.
    pub events: bool,
    /// Read the files with this period as well. For changes without events: network file systems, a
    /// replaced directory, a link into another directory, an exhausted inotify limit.
    pub poll: Duration,
}

impl From<&WebhookSettings> for WatchMode {
    fn from(settings: &WebhookSettings) -> Self {
        Self {
            events: true,
            poll: settings.tls_poll_seconds.seconds(),
        }
    }
}

impl Default for WatchMode {
    fn default() -> Self {
        Self::from(&WebhookSettings::default())
    }
}

/// Signals that the files may have changed.
pub(super) struct FileChanges {
    watch_mode: WatchMode,
    directories: Vec<PathBuf>,
    watcher: Mutex<Option<RecommendedWatcher>>,
    failure: LastFailure,
    event_received: Arc<Notify>,
}

impl FileChanges {
    /// Watches the directories of these files, after the first [`Self::arm`].
    pub(super) fn new(files: &[PathBuf], watch_mode: WatchMode) -> Self {
        let mut directories: Vec<PathBuf> = files
            .iter()
            .filter_map(|file| file.parent())
            .map(|directory| {
                // The parent of a bare file name is an empty path, which cannot be watched.
                if directory.as_os_str().is_empty() {
                    PathBuf::from(".")
                } else {
                    directory.to_owned()
                }
            })
            .collect();
        directories.sort();
        directories.dedup();
        Self {
            watch_mode,
            directories,
            watcher: Mutex::new(None),
            failure: LastFailure::default(),
            event_received: Arc::default(),
        }
    }

    /// Starts or restores the watch. Must be called before each read of the files, so that no change is
    /// missed between the two. Blocks on the file system.
    pub(super) fn arm(&self) {
        if !self.watch_mode.events {
            return;
        }
        match self.try_arm() {
            Ok(()) => self.failure.clear(),
            Err(error) => {
                let reason = error.to_string();
                let poll_s = self.watch_mode.poll.as_secs();
                if self.failure.is_new(&reason) {
                    warn!(
                        reason,
                        poll_s,
                        "cannot watch for new certificates; looking at the files by the clock only"
                    );
                }
            }
        }
    }

    fn try_arm(&self) -> notify::Result<()> {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let watcher = match watcher.as_mut() {
            Some(watcher) => watcher,
            None => watcher.insert(self.new_watcher()?),
        };
        let mut result = Ok(());
        // Each time: a directory that was removed and created again has lost its watch.
        for directory in &self.directories {
            // A directory that cannot be watched does not prevent watching the others.
            result = result.and(watcher.watch(directory, RecursiveMode::NonRecursive));
        }
        result
    }

    fn new_watcher(&self) -> notify::Result<RecommendedWatcher> {
        let seen = Arc::clone(&self.event_received);
        notify::recommended_watcher(move |event: notify::Result<Event>| {
            // After an error too, because events may have been lost.
            if event.map_or(true, |event| is_change(event.kind)) {
                // An event during a read is not lost: `Notify` keeps it for the next wait.
                seen.notify_one();
            }
        })
    }

    /// Completes when the files must be read.
    pub(super) async fn changed(&self) {
        tokio::select! {
            () = self.event_received.notified() => {}
            () = sleep(self.watch_mode.poll) => return,
        }
        let quiet = async {
            while timeout(QUIET_PERIOD, self.event_received.notified())
                .await
                .is_ok()
            {}
        };
        // Both results mean that it is time to read.
        let _ = timeout(QUIET_WAIT_MAX, quiet).await;
    }
}

/// Ignores read events: otherwise reading the files would trigger the next read for ever.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

/// The last logged failure, so that a persistent failure is logged once.
#[derive(Debug, Default)]
pub(crate) struct LastFailure(Mutex<Option<String>>);

impl LastFailure {
    /// Stores a failure; returns true if it differs from the last one.
    pub(crate) fn is_new(&self, reason: &str) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = last.as_deref() != Some(reason);
        *last = Some(reason.to_owned());
        is_new
    }

    /// Clears the failure.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_failure_is_new_once() {
        let last = LastFailure::default();
        assert!(last.is_new("one"));
        assert!(!last.is_new("one"));
        assert!(last.is_new("two"));
        assert!(last.is_new("one"));
        last.clear();
        assert!(last.is_new("one"));
    }

    #[test]
    fn file_read_event_is_not_a_change() {
        let reads = [
            AccessKind::Read,
            AccessKind::Open(AccessMode::Any),
            AccessKind::Close(AccessMode::Read),
        ];
        assert!(!reads.map(EventKind::Access).into_iter().any(is_change));
        let written = AccessKind::Close(AccessMode::Write);
        assert!(is_change(EventKind::Access(written)));
    }

    #[test]
    fn shared_directory_is_watched_once() {
        let files = ["tls.crt", "a/tls.key", "a/tls.crt"].map(PathBuf::from);
        let changes = FileChanges::new(&files, WatchMode::default());
        assert_eq!(changes.directories, [".", "a"].map(PathBuf::from));
    }
}
