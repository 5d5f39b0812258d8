//! The hashes of a log. Each one covers the line that has it and all lines of the file before; the first line has the hash of the file
//! before.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The bytes of a hash that are written.
const WRITTEN_BYTES: usize = 16;

/// What precedes the hash in its line.
const PREFIX: &str = ",\"hash\":\"";

/// What follows the hash in its line.
const SUFFIX: &str = "\"}";

#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    hasher: Sha256,
}

impl Chain {
    /// Adds a line without its end.
    pub(crate) fn add(&mut self, line: &str) {
        self.hasher.update(line.as_bytes());
        self.hasher.update(b"\n");
    }

    /// The hash of all lines so far, in hexadecimal digits. Later hashes cover it.
    pub(crate) fn seal(&mut self) -> String {
        let hash = self.hasher.finalize_reset();
        self.hasher.update(hash);
        let mut text = String::with_capacity(WRITTEN_BYTES.saturating_mul(2));
        for byte in hash.iter().take(WRITTEN_BYTES) {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

/// Adds a hash to a line at the end of a text. The line is a JSON object with at least one field.
pub(crate) fn push_hash(text: &mut String, hash: &str) {
    if text.ends_with('}') {
        text.pop();
    }
    for part in [PREFIX, hash, SUFFIX] {
        text.push_str(part);
    }
}

/// Splits a line into the line without its hash, and the hash.
pub(crate) fn split_hash(line: &str) -> Option<(String, &str)> {
    let (open, hash) = line.strip_suffix(SUFFIX)?.rsplit_once(PREFIX)?;
    Some((format!("{open}}}"), hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_covers_all_lines_before() {
        // Lines, and `-` where a hash is made.
        let last_hash = |lines: &[&str]| {
            let mut chain = Chain::default();
            let mut last = String::new();
            for line in lines {
                match *line {
                    "-" => last = chain.seal(),
                    line => chain.add(line),
                }
            }
            last
        };
        let hash = last_hash(&["a", "b", "-", "c", "-"]);
        assert_eq!(hash.len(), 32);
        assert_eq!(hash, last_hash(&["a", "b", "-", "c", "-"]));
        for other in [
            &["a", "c", "-", "c", "-"] as &[&str],
            &["ab", "-", "c", "-"],
            &["a", "b", "c", "-"],
            &["a", "b", "-", "-"],
        ] {
            assert_ne!(hash, last_hash(other), "{other:?}");
        }
    }

    #[test]
    fn a_hash_is_split_off_as_it_was_added() {
        for line in [r#"{"cycle":{}}"#, r#"{"cycle":{"a":",\"hash\":\""}}"#] {
            let mut hashed = line.to_owned();
            push_hash(&mut hashed, "00ff");
            assert_eq!(split_hash(&hashed), Some((line.to_owned(), "00ff")));
        }
        assert_eq!(split_hash("{}"), None);
    }
}
