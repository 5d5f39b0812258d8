//! What is to be checked: files, folders and standard input.

use crate::yaml::place_and_message;
use serde_json::Value;
use std::fs;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes.
const SIZE_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The deepest folder that is entered.
const DEPTH_MAX: usize = 32;

/// A file.
pub(super) struct Source {
    /// As it is printed.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) documents: Vec<Document>,
}

/// An object in a file.
pub(super) struct Document {
    /// The YAML document that it stands in.
    pub(super) number: usize,
    /// Where it stands in that, as a JSON pointer: empty, or an item of a list.
    pub(super) pointer: String,
    pub(super) value: Value,
}

/// Everything that could be read, and what could not.
#[derive(Default)]
pub(super) struct Sources {
    pub(super) sources: Vec<Source>,
    pub(super) problems: Vec<Problem>,
}

/// Something that cannot be read.
pub(super) struct Problem {
    pub(super) file: String,
    /// Line and column, from 1.
    pub(super) place: Option<(usize, usize)>,
    pub(super) message: String,
}

pub(super) fn read(paths: &[PathBuf]) -> Sources {
    let mut out = Sources::default();
    for path in paths {
        if path.as_os_str() == "-" {
            out.take("<stdin>", read_text(stdin().lock(), SIZE_MAX_BYTES));
        } else {
            out.enter(path, true, DEPTH_MAX);
        }
    }
    out
}

impl Sources {
    fn enter(&mut self, path: &Path, is_given: bool, depth: usize) {
        let name = path.display().to_string();
        if !path.is_dir() {
            let extension = path.extension().and_then(|it| it.to_str());
            if is_given || matches!(extension, Some("yaml" | "yml" | "json")) {
                let text = fs::File::open(path).map_err(|error| error.to_string());
                let text = text.and_then(|file| read_text(file, SIZE_MAX_BYTES));
                self.take(&name, text);
            }
            return;
        }
        if depth == 0 {
            self.fail(
                &name,
                format!("folders are nested more than {DEPTH_MAX} deep"),
            );
            return;
        }
        let entries = fs::read_dir(path).and_then(|all| {
            let paths = all.map(|entry| entry.map(|it| it.path()));
            paths.collect::<Result<Vec<_>, _>>()
        });
        match entries {
            Ok(mut paths) => {
                paths.sort();
                for path in paths {
                    self.enter(&path, false, depth.saturating_sub(1));
                }
            }
            Err(error) => self.fail(&name, error.to_string()),
        }
    }

    fn take(&mut self, name: &str, text: Result<String, String>) {
        let text = match text {
            Ok(text) => text,
            Err(message) => return self.fail(name, message),
        };
        let values: Vec<Value> = match serde_saphyr::from_multiple(&text) {
            Ok(values) => values,
            Err(error) => {
                let place = error.location();
                let line = |it: &serde_saphyr::Location| {
                    let (line, column) = (it.line(), it.column());
                    Some((usize::try_from(line).ok()?, usize::try_from(column).ok()?))
                };
                self.problems.push(Problem {
                    file: name.to_owned(),
                    place: place.as_ref().and_then(line),
                    message: in_words(place_and_message(&error).1),
                });
                return;
            }
        };
        let mut documents = Vec::new();
        for (number, value) in values.into_iter().enumerate() {
            unfold(number, String::new(), value, &mut documents);
        }
        self.sources.push(Source {
            name: name.to_owned(),
            text,
            documents,
        });
    }

    fn fail(&mut self, name: &str, message: String) {
        self.problems.push(Problem {
            file: name.to_owned(),
            place: None,
            message,
        });
    }
}

/// What the parser says, as users of YAML know it.
fn in_words(message: String) -> String {
    let key = message.strip_prefix("duplicate mapping key: ");
    match key.and_then(|it| it.split(", set ").next()) {
        Some(key) => {
            format!("the key {key} stands twice here; kubectl would take the last one silently")
        }
        None => message,
    }
}

/// Takes an object, or the items of a `List`. An empty document is none.
fn unfold(number: usize, pointer: String, mut value: Value, out: &mut Vec<Document>) {
    let is_list = value
        .get("kind")
        .and_then(Value::as_str)
        .is_some_and(|it| it.ends_with("List"));
    let items = value.get_mut("items").filter(|_| is_list).map(Value::take);
    match items {
        Some(Value::Array(items)) => {
            for (at, item) in items.into_iter().enumerate() {
                unfold(number, format!("{pointer}/items/{at}"), item, out);
            }
        }
        _ if value.is_null() => {}
        _ => out.push(Document {
            number,
            pointer,
            value,
        }),
    }
}

fn read_text(from: impl Read, max: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut from = from.take(max.saturating_add(1));
    from.read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if u64::try_from(bytes.len()).is_ok_and(|it| it > max) {
        return Err(format!("it has more than {max} bytes"));
    }
    let text = String::from_utf8(bytes);
    text.map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is no text in UTF-8: the byte at {at}")
    })
}
