//! What is to be checked: files, folders and standard input.

use super::conversion::Origin;
use super::fast_parse;
use crate::yaml_errors::place_and_message;
use serde_json::Value;
use std::borrow::Cow;
use std::fs;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes.
const SIZE_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The deepest folder that is entered.
const DEPTH_MAX: usize = 32;

/// Something to be read. It can be read more than once.
pub(super) struct Input {
    /// As it is printed.
    pub(super) name: String,
    kind: InputKind,
}

enum InputKind {
    File(PathBuf),
    /// Standard input, which has been read already.
    Text(Result<String, String>),
    /// It is known already that it cannot be read.
    Unreadable(String),
}

/// A file that could be read.
pub(super) struct ParsedSource {
    pub(super) text: String,
    pub(super) documents: Vec<Document>,
}

/// An object in a file.
pub(super) struct Document {
    /// The YAML document that it stands in.
    pub(super) number: usize,
    /// Where it stands in that, as a JSON pointer: empty, or an item of a list.
    pub(super) pointer: String,
    /// The object; if it was converted, what came out of that.
    pub(super) value: Value,
    /// What it was before.
    pub(super) origin: Option<Box<Origin>>,
}

impl Document {
    /// The object as it is judged; `None` if nothing came out of it.
    pub(super) fn object(&self) -> Option<&Value> {
        let is_gone = self.origin.as_ref().is_some_and(|it| it.is_dropped);
        (!is_gone).then_some(&self.value)
    }
}

/// Why something cannot be read.
#[derive(Clone, Debug)]
pub(super) struct ReadError {
    /// Line and column, from 1.
    pub(super) location: Option<(usize, usize)>,
    pub(super) message: String,
}

impl ReadError {
    fn without_location(message: String) -> Self {
        Self {
            location: None,
            message,
        }
    }
}

/// All files that the paths lead to, in the order of the paths and of their names.
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

fn collect_inputs(path: &Path, is_given: bool, depth: usize, out: &mut Vec<Input>) {
    let mut add = |from: InputKind| {
        let name = path.display().to_string();
        out.push(Input { name, kind: from });
    };
    if !path.is_dir() {
        let extension = path.extension().and_then(|it| it.to_str());
        if is_given || matches!(extension, Some("yaml" | "yml" | "json")) {
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
    /// Its file, if it is one.
    pub(super) fn file(&self) -> Option<&Path> {
        match &self.kind {
            InputKind::File(path) => Some(path),
            InputKind::Text(_) | InputKind::Unreadable(_) => None,
        }
    }

    /// Reads and parses it.
    pub(super) fn read(&self) -> Result<ParsedSource, ReadError> {
        let text = match &self.kind {
            InputKind::File(path) => {
                let file = fs::File::open(path).map_err(|error| error.to_string());
                file.and_then(|file| read_text(file, SIZE_MAX_BYTES))
            }
            InputKind::Text(text) => text.clone(),
            InputKind::Unreadable(problem) => Err(problem.clone()),
        };
        ParsedSource::parse(text.map_err(ReadError::without_location)?)
    }
}

impl ParsedSource {
    /// Parses a text.
    pub(super) fn parse(text: String) -> Result<Self, ReadError> {
        let values = match fast_parse::parse_documents(&text) {
            Some(values) => values,
            None => serde_saphyr::from_multiple(&text).map_err(|error| yaml_read_error(&error))?,
        };
        let mut documents = Vec::new();
        for (number, value) in values.into_iter().enumerate() {
            flatten_lists(number, String::new(), value, &mut documents);
        }
        Ok(Self { text, documents })
    }
}

fn yaml_read_error(error: &serde_saphyr::Error) -> ReadError {
    let place = error.location().and_then(|it| {
        let (line, column) = (it.line(), it.column());
        Some((usize::try_from(line).ok()?, usize::try_from(column).ok()?))
    });
    let message = rewrite_duplicate_key(place_and_message(error).1);
    ReadError {
        location: place,
        message,
    }
}

/// What the parser says, as users of YAML know it.
fn rewrite_duplicate_key(message: String) -> String {
    let key = message.strip_prefix("duplicate mapping key: ");
    match key.and_then(|it| it.split(", set ").next()) {
        Some(key) => {
            format!("the key {key} stands twice here; kubectl would take the last one silently")
        }
        None => message,
    }
}

/// Takes an object, or the items of a `List`. An empty document is none.
fn flatten_lists(number: usize, pointer: String, mut value: Value, out: &mut Vec<Document>) {
    let is_list = value
        .get("kind")
        .and_then(Value::as_str)
        .is_some_and(|it| it.ends_with("List"));
    let items = value.get_mut("items").filter(|_| is_list).map(Value::take);
    match items {
        Some(Value::Array(items)) => {
            for (at, item) in items.into_iter().enumerate() {
                flatten_lists(number, format!("{pointer}/items/{at}"), item, out);
            }
        }
        _ if value.is_null() => {}
        _ => out.push(Document {
            number,
            pointer,
            value,
            origin: None,
        }),
    }
}

fn read_text(from: impl Read, max: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut from = from.take(max.saturating_add(1));
    from.read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if u64::try_from(bytes.len()).is_ok_and(|it| it > max) {
        let mebibytes = max >> 20;
        return Err(format!(
            "it has more than {mebibytes} MiB; split it into smaller files"
        ));
    }
    let text = String::from_utf8(bytes);
    text.map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is no text in UTF-8: the byte at {at}")
    })
}

/// What an object says of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Identity {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Identity {
    pub(super) fn from_object(object: &Value) -> Self {
        let text = |value: Option<&Value>| {
            let text = value.and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let metadata = object.get("metadata");
        let of_metadata = |key: &str| text(metadata.and_then(|it| it.get(key)));
        Self {
            api_version: text(object.get("apiVersion")),
            kind: text(object.get("kind")),
            namespace: of_metadata("namespace"),
            name: of_metadata("name"),
        }
    }

    /// The name, with the namespace if there is one.
    pub(super) fn full_name(&self) -> Cow<'_, str> {
        if self.namespace.is_empty() {
            Cow::Borrowed(&self.name)
        } else {
            Cow::Owned(format!("{}/{}", self.namespace, self.name))
        }
    }
}
