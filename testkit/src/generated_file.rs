//! Committed files that are generated.

use std::path::Path;
use std::{env, fs};

/// The environment variable that makes tests write the files instead of comparing them.
const UPDATE: &str = "UPDATE_DOCS";

/// Compares a committed file with its generated text. With `UPDATE_DOCS=1` it writes the file instead. `command` is
/// how to run the test.
#[track_caller]
pub fn assert_file_is_current(file: &Path, generated: &str, command: &str) {
    if env::var_os(UPDATE).is_some() {
        fs::write(file, generated).unwrap();
        return;
    }
    let shown = file.display();
    let committed = fs::read_to_string(file).unwrap_or_default();
    if let Some(message) = difference(&committed, generated) {
        panic!("{shown} is out of date: {message}; regenerate it: {UPDATE}=1 {command}");
    }
}

/// The first line that differs; `None` for equal texts.
fn difference(committed: &str, generated: &str) -> Option<String> {
    if committed == generated {
        return None;
    }
    let (mut old, mut new) = (committed.lines(), generated.lines());
    for number in 1_usize.. {
        match (old.next(), new.next()) {
            (None, None) => break,
            (old, new) if old == new => {}
            (old, new) => {
                let [old, new] = [old, new].map(|line| line.unwrap_or("no line"));
                return Some(format!("line {number} is {old:?}, not {new:?}"));
            }
        }
    }
    Some("the line ends differ".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_names_first_line() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let expected = "line 2 is \"b\", not \"c\"";
        assert_eq!(difference("a\nb\n", "a\nc\n").as_deref(), Some(expected));
        let expected = "line 2 is \"no line\", not \"b\"";
        assert_eq!(difference("a\n", "a\nb\n").as_deref(), Some(expected));
        let expected = "the line ends differ";
        assert_eq!(difference("a", "a\n").as_deref(), Some(expected));
    }
}
