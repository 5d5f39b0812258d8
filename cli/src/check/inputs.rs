//! The inputs of a check: files, folders and standard input.

use super::kustomize;
use lockkeeper_check::{ParsedSource, ReadError};
use lockkeeper_crdgen::manifests::{
    FileList, ListedFile, NamePattern, TextError, read_file, read_text,
};
use std::fs;
use std::io::stdin;
use std::path::{Path, PathBuf};

/// From this size on, in bytes, inputs are processed one at a time, so that memory does not grow with the cores.
const LARGE_BYTES: u64 = 8 * 1024 * 1024;

/// An input. It can be read more than once.
pub(super) struct Input {
    /// The name to print.
    pub(super) name: String,
    kind: InputKind,
    /// Whether it is a patch for kustomize: its objects are not whole.
    is_patch: bool,
}

enum InputKind {
    File(PathBuf),
    /// Standard input, already read.
    Text(Result<String, String>),
    /// An input that cannot be read, with the reason.
    Unreadable(String),
}

/// The files of these paths, folders included, in the order of the paths and of file names, each once.
pub(super) fn list_inputs(paths: &[PathBuf], excluded: &[NamePattern]) -> Vec<Input> {
    let mut files = FileList::new(excluded.to_vec());
    let mut out = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            out.push(Input {
                name: "<stdin>".to_owned(),
                kind: InputKind::Text(read_text(stdin().lock()).map_err(|it| it.to_string())),
                is_patch: false,
            });
        } else {
            out.extend(files.list(path).into_iter().map(Input::from_listed));
        }
    }
    out
}

/// Marks the inputs that a kustomization in their folder or in the one above names as patches.
pub(super) fn mark_patches(inputs: &mut [Input]) {
    let patches = kustomize::patches(inputs.iter().filter_map(Input::file));
    if patches.is_empty() {
        return;
    }
    for input in inputs {
        let path = input.file().and_then(|it| it.canonicalize().ok());
        input.is_patch = path.is_some_and(|it| patches.contains(&it));
    }
}

impl Input {
    fn from_listed(listed: ListedFile) -> Self {
        let (path, kind) = match listed {
            ListedFile::File(path) => (path.clone(), InputKind::File(path)),
            ListedFile::Unreadable { path, reason } => (path, InputKind::Unreadable(reason)),
        };
        Self {
            name: path.display().to_string(),
            kind,
            is_patch: false,
        }
    }

    /// The path of a file; `None` for standard input.
    pub(super) fn file(&self) -> Option<&Path> {
        match &self.kind {
            InputKind::File(path) => Some(path),
            InputKind::Text(_) | InputKind::Unreadable(_) => None,
        }
    }

    /// Whether this is standard input.
    pub(super) fn is_stdin(&self) -> bool {
        matches!(self.kind, InputKind::Text(_))
    }

    /// The text of standard input that could be read.
    pub(super) fn stdin_text(&self) -> Option<&str> {
        match &self.kind {
            InputKind::Text(text) => text.as_deref().ok(),
            InputKind::File(_) | InputKind::Unreadable(_) => None,
        }
    }

    /// Replaces the text of standard input.
    pub(super) fn set_stdin_text(&mut self, text: String) {
        if self.is_stdin() {
            self.kind = InputKind::Text(Ok(text));
        }
    }

    /// Whether the input is so large that it is processed alone.
    pub(super) fn is_large(&self) -> bool {
        let bytes = match &self.kind {
            InputKind::File(path) => fs::metadata(path).map_or(0, |it| it.len()),
            InputKind::Text(Ok(text)) => u64::try_from(text.len()).unwrap_or(u64::MAX),
            InputKind::Text(Err(_)) | InputKind::Unreadable(_) => 0,
        };
        bytes > LARGE_BYTES
    }

    /// Reads and parses the input.
    pub(super) fn read(&self) -> Result<ParsedSource, ReadError> {
        let text = match &self.kind {
            InputKind::File(path) => read_file(path).map_err(|error: TextError| error.to_string()),
            InputKind::Text(text) => text.clone(),
            InputKind::Unreadable(error) => Err(error.clone()),
        };
        let mut source = ParsedSource::parse(text.map_err(ReadError::without_location)?)?;
        if self.file().is_some_and(kustomize::is_input) {
            for document in &mut source.documents {
                kustomize::set_kind(&mut document.value);
            }
        }
        if self.is_patch {
            // The operations of a JSON patch are no objects.
            source.documents.retain(|it| it.value.is_object());
            for document in &mut source.documents {
                document.is_patch = true;
            }
        }
        Ok(source)
    }
}
