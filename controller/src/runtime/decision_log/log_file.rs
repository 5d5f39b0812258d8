//! The files of a decision log.

use super::target::DecisionLogTarget;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Stdout, Write, stdout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A file is not full before it has this many times the size of the objects at its start.
const START_SHARE: u64 = 4;

/// The current file, and how to begin the next.
#[derive(Debug)]
pub(super) struct LogFile {
    path: Option<PathBuf>,
    bytes_max: u64,
    files_max: usize,
    output: Option<Output>,
    bytes_at_start: u64,
    /// The bytes that [`Self::take_new_bytes`] has returned.
    counted_bytes: u64,
    has_asked: bool,
    is_dirty: bool,
    flushed_at: Instant,
}

#[derive(Debug)]
enum Output {
    Stdout(Counted<Stdout>),
    Plain(BufWriter<Counted<File>>),
    Gzip(Box<GzEncoder<BufWriter<Counted<File>>>>),
}

/// Counts the bytes that are written.
#[derive(Debug)]
struct Counted<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        let more = u64::try_from(count).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(more);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl LogFile {
    /// No file yet.
    ///
    /// # Errors
    ///
    /// If files cannot be written there: better at the start than at the first decision.
    pub(super) fn new(target: &DecisionLogTarget) -> io::Result<Self> {
        if let Some(path) = &target.file {
            private_file().append(true).open(path)?;
        }
        Ok(Self {
            path: target.file.clone(),
            bytes_max: target.file_bytes_max,
            files_max: target.files_max,
            output: None,
            bytes_at_start: 0,
            counted_bytes: 0,
            has_asked: false,
            is_dirty: false,
            flushed_at: Instant::now(),
        })
    }

    /// Renames the files before, deletes the oldest, and begins a new one.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.output = Some(match &self.path {
            None => Output::Stdout(Counted {
                inner: stdout(),
                bytes: 0,
            }),
            Some(path) => {
                rename_files(path, self.files_max)?;
                let file = Counted {
                    inner: private_file().write(true).truncate(true).open(path)?,
                    bytes: 0,
                };
                let file = BufWriter::new(file);
                if path.extension().is_some_and(|it| it == "gz") {
                    Output::Gzip(Box::new(GzEncoder::new(file, Compression::fast())))
                } else {
                    Output::Plain(file)
                }
            }
        });
        self.bytes_at_start = 0;
        self.counted_bytes = 0;
        self.has_asked = false;
        Ok(())
    }

    pub(super) fn write(&mut self, lines: &str) -> io::Result<()> {
        self.is_dirty = true;
        match &mut self.output {
            Some(Output::Stdout(it)) => it.write_all(lines.as_bytes()),
            Some(Output::Plain(it)) => it.write_all(lines.as_bytes()),
            Some(Output::Gzip(it)) => it.write_all(lines.as_bytes()),
            None => Ok(()),
        }
    }

    /// Whether lines have been in memory for this long.
    pub(super) fn is_flush_due(&self, after: Duration) -> bool {
        self.is_dirty && self.flushed_at.elapsed() >= after
    }

    /// Writes what is in memory, so that a reader sees it.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_dirty) {
            match &mut self.output {
                Some(Output::Stdout(it)) => it.flush()?,
                Some(Output::Plain(it)) => it.flush()?,
                Some(Output::Gzip(it)) => it.flush()?,
                None => {}
            }
        }
        self.flushed_at = Instant::now();
        Ok(())
    }

    /// Ends the file.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self.output.take() {
            Some(Output::Gzip(it)) => it.finish()?.flush(),
            Some(Output::Plain(mut it)) => it.flush(),
            Some(Output::Stdout(mut it)) => it.flush(),
            None => Ok(()),
        }
    }

    /// The bytes of the file since the last call, without those in memory.
    pub(super) fn take_new_bytes(&mut self) -> u64 {
        let bytes = self.bytes();
        let before = std::mem::replace(&mut self.counted_bytes, bytes);
        bytes.saturating_sub(before)
    }

    /// The bytes of the file, without those in memory.
    fn bytes(&self) -> u64 {
        match &self.output {
            Some(Output::Stdout(it)) => it.bytes,
            Some(Output::Plain(it)) => it.get_ref().bytes,
            Some(Output::Gzip(it)) => it.get_ref().get_ref().bytes,
            None => 0,
        }
    }

    /// All objects are written.
    pub(super) fn mark_start(&mut self) {
        self.bytes_at_start = self.bytes();
    }

    /// Whether a new file should begin. Never for standard output.
    pub(super) fn is_full(&self) -> bool {
        let bytes_max = self
            .bytes_max
            .max(self.bytes_at_start.saturating_mul(START_SHARE));
        self.path.is_some() && self.bytes() >= bytes_max
    }

    /// Whether a new file was asked for; true from the second call on.
    pub(super) fn has_asked(&mut self) -> bool {
        std::mem::replace(&mut self.has_asked, true)
    }
}

/// Options that create a file for the owner and the group only: it has names and sizes of all tenants.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
    options
}

/// `FILE` becomes `FILE.1`, `FILE.1` becomes `FILE.2`, and so on. The oldest is deleted.
fn rename_files(path: &Path, files_max: usize) -> io::Result<()> {
    // An empty file, as the process creates it at its start, is not kept.
    let is_kept = fs::metadata(path).is_ok_and(|it| it.len() > 0);
    if !is_kept {
        return Ok(());
    }
    let numbered = |number: usize| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let oldest = files_max.saturating_sub(1);
    if oldest == 0 {
        return Ok(());
    }
    for number in (1..oldest).rev() {
        rename_if_exists(&numbered(number), &numbered(number.saturating_add(1)))?;
    }
    rename_if_exists(path, &numbered(1))
}

fn rename_if_exists(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
