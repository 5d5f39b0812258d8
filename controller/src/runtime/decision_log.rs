//! Writes the decision log on a thread of its own: a slow disk delays no decision.

mod log_file;
mod target;
#[cfg(test)]
mod tests;

use crate::EventBatch;
use lockkeeper_decision_log::Encoder;
use log_file::LogFile;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel,
};
use std::thread;
use std::time::{Duration, Instant};
pub use target::DecisionLogTarget;

/// The most batches that wait for the thread. Then the log has a gap: it is not allowed to delay decisions, or to use any
/// amount of memory.
const BATCHES_MAX: usize = 1024;

/// How long written lines may stay in memory.
const FLUSH_AFTER: Duration = Duration::from_secs(1);

/// The pause after all waiting batches are written. Each batch that the thread waits for wakes it, which takes the sender longer
/// than to put the batch into the channel.
const PAUSE: Duration = Duration::from_millis(50);

/// The memory for lines that is kept between batches.
const LINES_KEPT_BYTES: usize = 1 << 20;

/// How long the end of the process waits for the last lines.
const END_MAX: Duration = Duration::from_secs(2);

/// The pause after an error, before a new file is begun.
const RETRY_AFTER: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
struct Shared {
    /// Whether the next batch should be a start: the file is full, or has a gap.
    wants_start: AtomicBool,
    written_bytes: AtomicU64,
    gaps: AtomicU64,
}

/// A batch, and whether batches before it were dropped.
#[derive(Debug)]
struct Message {
    batch: EventBatch,
    is_after_gap: bool,
}

/// The decision log of a running controller. Dropping it writes what is left.
#[derive(Debug)]
pub(super) struct DecisionLog {
    batches: Option<SyncSender<Message>>,
    shared: Arc<Shared>,
    /// Closed when the thread has ended.
    ended: Receiver<()>,
    /// Whether batches are dropped until the next start.
    has_gap: bool,
}

impl DecisionLog {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started, or the file cannot be written.
    pub(super) fn start(target: DecisionLogTarget) -> io::Result<Self> {
        let (batches, received) = sync_channel(BATCHES_MAX);
        let shared = Arc::new(Shared::default());
        let mut writer = LogWriter {
            file: LogFile::new(&target)?,
            encoder: Encoder::new(target.header),
            shared: Arc::clone(&shared),
            failed_at: None,
            is_writing: false,
            lines: String::new(),
        };
        let (running, ended) = channel();
        thread::Builder::new()
            .name("decision-log".to_owned())
            .spawn(move || {
                writer.run(&received);
                drop(running);
            })?;
        Ok(Self {
            batches: Some(batches),
            shared,
            ended,
            has_gap: false,
        })
    }

    /// Writes batches, without waiting. If the thread is too slow, they are dropped until the next start.
    pub(super) fn send(&mut self, batches: Vec<EventBatch>) {
        let Some(sender) = &self.batches else {
            return;
        };
        for batch in batches {
            if self.has_gap && !batch.is_start {
                continue;
            }
            let is_after_gap = self.has_gap;
            match sender.try_send(Message {
                batch,
                is_after_gap,
            }) {
                Ok(()) => self.has_gap = false,
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                    if !self.has_gap {
                        self.shared.gaps.fetch_add(1, Ordering::Relaxed);
                        tracing::warn!(
                            "the decision log has a gap: it cannot be written fast enough"
                        );
                    }
                    self.has_gap = true;
                    self.shared.wants_start.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    /// Whether the events should begin again with all objects. True once for each reason.
    pub(super) fn take_wants_start(&self) -> bool {
        self.shared.wants_start.swap(false, Ordering::Relaxed)
    }

    /// The bytes written since the start of the process.
    pub(super) fn written_bytes(&self) -> u64 {
        self.shared.written_bytes.load(Ordering::Relaxed)
    }

    /// How often decisions are missing in the log.
    pub(super) fn gaps(&self) -> u64 {
        self.shared.gaps.load(Ordering::Relaxed)
    }
}

impl Drop for DecisionLog {
    fn drop(&mut self) {
        // The thread ends with the channel; a reader that has stopped reading must not keep the process.
        self.batches = None;
        if self.ended.recv_timeout(END_MAX) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("the end of the decision log is missing: it cannot be written");
        }
    }
}

/// The thread's state.
struct LogWriter {
    file: LogFile,
    encoder: Encoder,
    shared: Arc<Shared>,
    failed_at: Option<Instant>,
    /// Whether batches are written; not before the first start, and not after an error.
    is_writing: bool,
    /// The lines of a batch. Kept for its memory.
    lines: String,
}

impl LogWriter {
    fn run(&mut self, batches: &Receiver<Message>) {
        loop {
            let done = match batches.recv_timeout(FLUSH_AFTER) {
                Ok(message) => self.write_waiting(&message, batches),
                Err(RecvTimeoutError::Timeout) => self.flush(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Err(error) = done {
                self.fail(&error);
            }
            let written = &self.shared.written_bytes;
            written.fetch_add(self.file.take_new_bytes(), Ordering::Relaxed);
            self.retry_if_due();
            thread::sleep(PAUSE);
        }
        if self.is_writing
            && let Err(error) = self.file.finish()
        {
            self.fail(&error);
        }
    }

    /// Writes a batch, and those that wait behind it.
    fn write_waiting(&mut self, first: &Message, batches: &Receiver<Message>) -> io::Result<()> {
        self.write(first)?;
        // Not more than the channel holds: a sender that never pauses must not keep the thread from its other work.
        batches
            .try_iter()
            .take(BATCHES_MAX)
            .try_for_each(|it| self.write(&it))
    }

    fn write(&mut self, message: &Message) -> io::Result<()> {
        let batch = &message.batch;
        let lines = &mut self.lines;
        lines.clear();
        if batch.is_start {
            if self.is_writing {
                self.file.finish()?;
            }
            self.file.begin()?;
            let continues = self.is_writing && !message.is_after_gap;
            self.encoder.begin_file(continues, lines)?;
            self.is_writing = true;
        }
        if !self.is_writing {
            return Ok(());
        }
        for event in &batch.events {
            self.encoder.encode(event, lines)?;
        }
        self.file.write(lines)?;
        if self.file.is_flush_due(FLUSH_AFTER) {
            self.file.flush()?;
        }
        // A start has the lines of all objects.
        lines.shrink_to(LINES_KEPT_BYTES);
        if batch.is_start {
            self.file.mark_start();
        } else if self.file.is_full() && !self.file.has_asked() {
            self.shared.wants_start.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_writing {
            self.file.flush()?;
        }
        Ok(())
    }

    fn fail(&mut self, error: &io::Error) {
        tracing::error!(%error, "cannot write the decision log; a new file is begun in 30 s");
        self.shared.gaps.fetch_add(1, Ordering::Relaxed);
        self.failed_at = Some(Instant::now());
        self.is_writing = false;
    }

    fn retry_if_due(&mut self) {
        if self.failed_at.is_some_and(|it| it.elapsed() >= RETRY_AFTER) {
            self.failed_at = None;
            self.shared.wants_start.store(true, Ordering::Relaxed);
        }
    }
}
