//! What was read once and is asked for again.

use super::source::{Problem, Source};
use std::sync::{Mutex, PoisonError};

/// How much text is kept, in bytes. What is past it is read and parsed again, so that memory does not grow with the
/// number of files.
const TEXT_MAX_BYTES: usize = 16 * 1024 * 1024;

type Read = Result<Source, Problem>;

/// A place for each input.
pub(super) struct Shelf {
    places: Vec<Mutex<Option<Read>>>,
    room_bytes: usize,
}

impl Shelf {
    pub(super) fn new(count: usize) -> Self {
        Self {
            places: (0..count).map(|_| Mutex::default()).collect(),
            room_bytes: TEXT_MAX_BYTES,
        }
    }

    /// Keeps something, if there is room.
    pub(super) fn keep(&mut self, at: usize, read: Read) {
        let size = read.as_ref().map_or(0, |source| source.text.len());
        if let Some(left) = self.room_bytes.checked_sub(size)
            && let Some(place) = self.places.get_mut(at)
        {
            self.room_bytes = left;
            *place = Mutex::new(Some(read));
        }
    }

    /// Takes it away.
    pub(super) fn take(&self, at: usize) -> Option<Read> {
        let place = self.places.get(at)?;
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        place.take()
    }
}

#[cfg(test)]
mod tests {
    use super::{Shelf, TEXT_MAX_BYTES};
    use crate::check::source::Source;

    #[test]
    fn what_does_not_fit_is_read_again() {
        let source = |size: usize| Source {
            text: " ".repeat(size),
            documents: Vec::new(),
        };
        let mut shelf = Shelf::new(3);
        shelf.keep(0, Ok(source(1)));
        shelf.keep(1, Ok(source(TEXT_MAX_BYTES)));
        shelf.keep(2, Ok(source(TEXT_MAX_BYTES - 1)));
        let kept = [0, 1, 2].map(|at| shelf.take(at).is_some());
        assert_eq!(kept, [true, false, true]);
        assert!(shelf.take(0).is_none());
    }
}
