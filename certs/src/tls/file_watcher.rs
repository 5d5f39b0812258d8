//! When to look at the files again: events of their directories, and a clock.
//!
//! The directories are watched and not the files. A kubelet replaces what a
//! file is by renaming a symbolic link beside it (`..data`): a watch of the
//! file itself sees the old one vanish and never anything again.

use lockkeeper_api::config::WebhookSettings;
use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::warn;

/// After an event the files are left alone until there was none for this long:
/// a certificate and its key are two files.
const QUIET_PERIOD: Duration = Duration::from_millis(100);

/// Longest wait for that quiet, where something else is busy in the directory.
const QUIET_WAIT_MAX: Duration = Duration::from_secs(1);

/// How a change of the files is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchMode {
    /// Watch the directories of the files.
    pub events: bool,
    /// Look at the files this often in any case. For what no watch sees: a network's
    /// file system, a directory that was replaced as a whole, a link into a
    /// directory elsewhere, a system that is out of watches.
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

/// Tells when the files may have changed.
pub(super) struct FileChanges {
    watch_mode: WatchMode,
    directories: Vec<PathBuf>,
    watcher: Mutex<Option<RecommendedWatcher>>,
    failure: LastFailure,
    event_received: Arc<Notify>,
}

impl FileChanges {
    /// Watches the directories of these files, from the first [`Self::arm`] on.
    pub(super) fn new(files: &[PathBuf], watch_mode: WatchMode) -> Self {
        let mut directories: Vec<PathBuf> = files
            .iter()
            .filter_map(|file| file.parent())
            .map(|directory| {
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

    /// Begins to watch, or makes sure of it: a directory that was removed and made
    /// again has lost its watch. To be called before each look at the files, so
    /// that no change falls between the two. Blocks on the file system.
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
        for directory in &self.directories {
            // One that cannot be watched is no reason not to watch the others.
            result = result.and(watcher.watch(directory, RecursiveMode::NonRecursive));
        }
        result
    }

    fn new_watcher(&self) -> notify::Result<RecommendedWatcher> {
        let seen = Arc::clone(&self.event_received);
        notify::recommended_watcher(move |event: notify::Result<Event>| {
            // After an error too: events may have been lost.
            if event.map_or(true, |event| is_change(event.kind)) {
                seen.notify_one();
            }
        })
    }

    /// Completes when it is time for a look.
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
        // Busy or quiet, it is time then.
        let _ = timeout(QUIET_WAIT_MAX, quiet).await;
    }
}

/// Reading is no change. Our own looks would wake us for ever.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

/// The failure that was logged last, so that one that stays is logged once.
#[derive(Debug, Default)]
pub(crate) struct LastFailure(Mutex<Option<String>>);

impl LastFailure {
    /// Remembers a failure; true if it is another than the last one.
    pub(crate) fn is_new(&self, reason: &str) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = last.as_deref() != Some(reason);
        *last = Some(reason.to_owned());
        is_new
    }

    /// Forgets it: all is well.
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
