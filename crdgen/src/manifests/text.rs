use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The largest text that is read, in MiB.
pub const TEXT_MAX_MEBIBYTES: u64 = 64;

/// An error of reading a text.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The text exceeds the limit.
    #[error("larger than {TEXT_MAX_MEBIBYTES} MiB; split it into smaller files")]
    TooLarge,
    /// The text is not UTF-8.
    #[error("not UTF-8: invalid byte at offset {offset}")]
    NotUtf8 {
        /// The offset of the first invalid byte.
        offset: usize,
    },
}

/// Reads a file, which may also be a pipe.
///
/// # Errors
///
/// The file cannot be read, is too large, or is not UTF-8.
pub fn read_file(path: &Path) -> Result<String, TextError> {
    read_text(File::open(path)?)
}

/// Reads a text to its end.
///
/// # Errors
///
/// As [`read_file`].
pub fn read_text(from: impl Read) -> Result<String, TextError> {
    let limit = TEXT_MAX_MEBIBYTES << 20;
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the text is larger.
    from.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|it| it > limit) {
        return Err(TextError::TooLarge);
    }
    String::from_utf8(bytes).map_err(|error| TextError::NotUtf8 {
        offset: error.utf8_error().valid_up_to(),
    })
}

#[cfg(test)]
mod tests {
    use super::{TEXT_MAX_MEBIBYTES, read_text};
    use std::io::{Read, repeat};

    #[test]
    fn read_text_rejects_more_than_the_limit() {
        let limit = TEXT_MAX_MEBIBYTES << 20;
        let text = read_text(repeat(b'a').take(limit)).unwrap();
        assert_eq!(u64::try_from(text.len()).unwrap(), limit);
        let error = read_text(repeat(b'a').take(limit + 1)).unwrap_err();
        assert!(error.to_string().contains("larger than 64 MiB"), "{error}");
        let error = read_text(&b"ab\xff"[..]).unwrap_err();
        assert!(error.to_string().contains("offset 2"), "{error}");
    }
}
