//! Reads the files of a decision log, line by line.

use anyhow::{Context, Error, bail};
use flate2::read::MultiGzDecoder;
use lockkeeper_decision_log::LINE_START;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, stdin};
use std::path::{Path, PathBuf};

/// The longest line, in bytes: more than the largest object that the API server stores.
const LINE_MAX_BYTES: u64 = 16 << 20;

/// The highest number of a renamed file: the most files that `controller.decisionLog.filesMax` allows.
const NUMBER_MAX: u32 = 1_000;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A line and where it is.
pub(super) struct LogLine<'a> {
    pub(super) file: &'a str,
    /// From 1.
    pub(super) number: u64,
    pub(super) text: &'a str,
}

/// The files of a log, from the oldest to the newest: those that were renamed come with the current one.
pub(super) fn with_renamed_files(files: &[PathBuf]) -> Vec<PathBuf> {
    let [current] = files else {
        return files.to_vec();
    };
    let numbered = |number: u32| {
        let mut name = current.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let numbered = (1..=NUMBER_MAX).map(numbered);
    let mut all: Vec<PathBuf> = numbered.take_while(|it| it.exists()).collect();
    all.reverse();
    all.push(current.clone());
    all
}

/// Calls `handle` with each line until it returns false. Returns whether the file ends within a line, as after a crash.
///
/// # Errors
///
/// If the file cannot be read.
pub(super) fn for_each_line(
    path: &Path,
    mut handle: impl FnMut(&LogLine<'_>) -> Result<bool, Error>,
) -> Result<bool, Error> {
    let name = path.display().to_string();
    let mut reader = open(path).with_context(|| format!("cannot read {name}"))?;
    let mut bytes = Vec::new();
    let mut number = 0_u64;
    loop {
        bytes.clear();
        match reader
            .by_ref()
            .take(LINE_MAX_BYTES)
            .read_until(b'\n', &mut bytes)
        {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            // The process ended before the file did.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(true),
            Err(error) => return Err(error).with_context(|| format!("cannot read {name}")),
        }
        number = number.saturating_add(1);
        let Some(line) = bytes.strip_suffix(b"\n") else {
            if u64::try_from(bytes.len()).is_ok_and(|it| it >= LINE_MAX_BYTES) {
                bail!("{name}:{number}: the line has more than {LINE_MAX_BYTES} bytes");
            }
            return Ok(true);
        };
        if !line.starts_with(LINE_START.as_bytes()) {
            continue;
        }
        let text = str::from_utf8(line)
            .with_context(|| format!("{name}:{number}: the line is not valid UTF-8"))?;
        let line = LogLine {
            file: &name,
            number,
            text,
        };
        if !handle(&line)? {
            return Ok(false);
        }
    }
}

fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file: BufReader<Box<dyn Read>> = BufReader::new(if path == Path::new("-") {
        Box::new(stdin())
    } else {
        Box::new(File::open(path)?)
    });
    Ok(if file.fill_buf()?.starts_with(&GZIP) {
        Box::new(BufReader::new(MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    })
}
