//! What was read once and is asked for again.

use super::source::{ParsedSource, ReadError};
use std::sync::{Mutex, PoisonError};

/// How much text is kept, in bytes. What is past it is read and parsed again, so that memory does not grow with the
/// number of files.
const TEXT_MAX_BYTES: usize = 16 * 1024 * 1024;

type ReadResult = Result<ParsedSource, ReadError>;

/// A place for each input.
pub(super) struct SourceCache {
    slots: Vec<Mutex<Option<ReadResult>>>,
    free_bytes: usize,
}

impl SourceCache {
    pub(super) fn new(count: usize) -> Self {
        Self {
            slots: (0..count).map(|_| Mutex::default()).collect(),
            free_bytes: TEXT_MAX_BYTES,
        }
    }

    /// Keeps something, if there is room.
    pub(super) fn store(&mut self, at: usize, read: ReadResult) {
        let size = read.as_ref().map_or(0, |source| source.text.len());
        if let Some(left) = self.free_bytes.checked_sub(size)
            && let Some(place) = self.slots.get_mut(at)
        {
            self.free_bytes = left;
            *place = Mutex::new(Some(read));
        }
    }

    /// Takes it away.
    pub(super) fn take(&self, at: usize) -> Option<ReadResult> {
        let place = self.slots.get(at)?;
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        place.take()
    }
}

#[cfg(test)]
mod tests {
    use super::{SourceCache, TEXT_MAX_BYTES};
    use crate::check::source::ParsedSource;

    #[test]
    fn source_cache_drops_sources_over_limit() {
        let source = |size: usize| ParsedSource {
            text: " ".repeat(size),
            documents: Vec::new(),
        };
        let mut shelf = SourceCache::new(3);
        shelf.store(0, Ok(source(1)));
        shelf.store(1, Ok(source(TEXT_MAX_BYTES)));
        shelf.store(2, Ok(source(TEXT_MAX_BYTES - 1)));
        let kept = [0, 1, 2].map(|at| shelf.take(at).is_some());
        assert_eq!(kept, [true, false, true]);
        assert!(shelf.take(0).is_none());
    }
}
