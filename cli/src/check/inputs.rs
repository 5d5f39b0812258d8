//! The inputs of a check: files, folders and standard input.

use lockkeeper_check::{ParsedSource, ReadError};
use std::fs;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

/// The largest file to read, in bytes.
const SIZE_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The deepest nesting of folders to read.
const DEPTH_MAX: usize = 32;

/// An input. It can be read more than once.
pub(super) struct Input {
    /// The name to print.
    pub(super) name: String,
    kind: InputKind,
}

enum InputKind {
    File(PathBuf),
    /// Standard input, already read.
    Text(Result<String, String>),
    /// An input that cannot be read, with the reason.
    Unreadable(String),
}

/// All files of these paths, folders included, in the order of the paths and of file names.
pub(super) fn list_inputs(paths: &[PathBuf]) -> Vec<Input> {
    let mut out = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            out.push(Input {
                name: "<stdin>".to_owned(),
                kind: InputKind::Text(read_text(stdin().lock(), SIZE_MAX_BYTES)),
            });
        } else {
            collect_inputs(path, true, DEPTH_MAX, &mut out);
        }
    }
    out
}

fn collect_inputs(path: &Path, is_explicit: bool, depth: usize, out: &mut Vec<Input>) {
    let mut add = |kind: InputKind| {
        let name = path.display().to_string();
        out.push(Input { name, kind });
    };
    if !path.is_dir() {
        let extension = path.extension().and_then(|it| it.to_str());
        // A file that the user names is read with any extension.
        if is_explicit || matches!(extension, Some("yaml" | "yml" | "json")) {
            add(InputKind::File(path.to_owned()));
        }
        return;
    }
    if depth == 0 {
        let message = format!("folders are nested more than {DEPTH_MAX} deep");
        return add(InputKind::Unreadable(message));
    }
    let entries = fs::read_dir(path).and_then(|all| {
        let paths = all.map(|entry| entry.map(|it| it.path()));
        paths.collect::<Result<Vec<_>, _>>()
    });
    match entries {
        Ok(mut paths) => {
            paths.sort();
            for path in paths {
                collect_inputs(&path, false, depth.saturating_sub(1), out);
            }
        }
        Err(error) => add(InputKind::Unreadable(error.to_string())),
    }
}

impl Input {
    /// The path of a file; `None` for standard input.
    pub(super) fn file(&self) -> Option<&Path> {
        match &self.kind {
            InputKind::File(path) => Some(path),
            InputKind::Text(_) | InputKind::Unreadable(_) => None,
        }
    }

    /// Reads and parses the input.
    pub(super) fn read(&self) -> Result<ParsedSource, ReadError> {
        let text = match &self.kind {
            InputKind::File(path) => {
                let file = fs::File::open(path).map_err(|error| error.to_string());
                file.and_then(|file| read_text(file, SIZE_MAX_BYTES))
            }
            InputKind::Text(text) => text.clone(),
            InputKind::Unreadable(error) => Err(error.clone()),
        };
        ParsedSource::parse(text.map_err(ReadError::without_location)?)
    }
}

fn read_text(from: impl Read, max: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the input is larger.
    let mut from = from.take(max.saturating_add(1));
    from.read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if u64::try_from(bytes.len()).is_ok_and(|it| it > max) {
        let mebibytes = max >> 20;
        return Err(format!(
            "larger than {mebibytes} MiB; split it into smaller files"
        ));
    }
    let text = String::from_utf8(bytes);
    text.map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("not UTF-8: invalid byte at offset {at}")
    })
}
