//! Parsed files that are needed twice: once to collect what rules look up, once to check.

use crate::source::{ParsedSource, ReadError};
use std::sync::{Mutex, PoisonError};

/// The most text that is cached, in bytes. Files beyond it are read and parsed again, so that memory does not grow with
/// the number of files.
const TEXT_MAX_BYTES: usize = 16 * 1024 * 1024;

type ReadResult = Result<ParsedSource, ReadError>;

/// A slot for each input. Threads take from it in any order.
pub struct SourceCache {
    slots: Vec<Mutex<Option<ReadResult>>>,
    free_bytes: usize,
}

impl SourceCache {
    /// An empty cache for this many inputs.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self {
            slots: (0..count).map(|_| Mutex::default()).collect(),
            free_bytes: TEXT_MAX_BYTES,
        }
    }

    /// Stores the result of an input if the limit allows.
    pub fn store(&mut self, at: usize, read: ReadResult) {
        // An error has no text, and is always cached.
        let size = read.as_ref().map_or(0, |source| source.text.len());
        if let Some(free_bytes) = self.free_bytes.checked_sub(size)
            && let Some(slot) = self.slots.get_mut(at)
        {
            self.free_bytes = free_bytes;
            *slot = Mutex::new(Some(read));
        }
    }

    /// Removes and returns the result of an input.
    pub fn take(&self, at: usize) -> Option<ReadResult> {
        let slot = self.slots.get(at)?;
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.take()
    }
}

#[cfg(test)]
mod tests {
    use super::{SourceCache, TEXT_MAX_BYTES};
    use crate::source::ParsedSource;

    #[test]
    fn source_cache_drops_sources_over_limit() {
        let source = |size: usize| {
            let mut source = ParsedSource::parse(String::new()).unwrap();
            source.text = " ".repeat(size);
            source
        };
        let mut cache = SourceCache::new(3);
        cache.store(0, Ok(source(1)));
        cache.store(1, Ok(source(TEXT_MAX_BYTES)));
        cache.store(2, Ok(source(TEXT_MAX_BYTES - 1)));
        let is_cached = [0, 1, 2].map(|at| cache.take(at).is_some());
        assert_eq!(is_cached, [true, false, true]);
        assert!(cache.take(0).is_none());
    }
}
