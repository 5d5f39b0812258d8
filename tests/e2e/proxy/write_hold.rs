//! Holds one write until it is released.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::client::HttpMessage;

/// A pattern of writes.
#[derive(Clone, Copy, Debug)]
pub struct WritePattern {
    pub method: &'static str,
    /// A part of the path.
    pub path: &'static str,
    /// A part of the body.
    pub body: &'static str,
}

impl WritePattern {
    fn matches(&self, request: &HttpMessage) -> bool {
        let mut first = request.first.split(' ');
        let (method, path) = (first.next(), first.next());
        method == Some(self.method)
            && path.is_some_and(|it| it.contains(self.path))
            && String::from_utf8_lossy(&request.body).contains(self.body)
    }
}

/// The state of the write that is held.
#[derive(Clone, Copy, Debug, Default)]
enum HoldState {
    #[default]
    Off,
    /// The next write with this pattern is held.
    Armed(WritePattern),
    Held,
    Released,
    /// The API server has answered the released write with this status.
    Answered(u16),
}

/// Holds the first write with a pattern.
#[derive(Default)]
pub(super) struct WriteHold {
    state: Mutex<HoldState>,
    changed: Condvar,
}

impl WriteHold {
    pub(super) fn arm(&self, pattern: WritePattern) {
        *self.lock() = HoldState::Armed(pattern);
    }

    pub(super) fn is_holding(&self) -> bool {
        matches!(*self.lock(), HoldState::Held)
    }

    /// The status of the answer to the released write; `None` before the answer.
    pub(super) fn answer(&self) -> Option<u16> {
        match *self.lock() {
            HoldState::Answered(status) => Some(status),
            _ => None,
        }
    }

    /// Forwards the held write, or holds none.
    pub(super) fn release(&self) {
        let mut state = self.lock();
        *state = match *state {
            HoldState::Held => HoldState::Released,
            _ => HoldState::Off,
        };
        self.changed.notify_all();
    }

    /// Returns whether the write was held, when it is released.
    pub(super) fn hold_if_matching(&self, request: &HttpMessage) -> bool {
        let mut state = self.lock();
        match *state {
            HoldState::Armed(pattern) if pattern.matches(request) => *state = HoldState::Held,
            _ => return false,
        }
        let is_held = |state: &mut HoldState| matches!(*state, HoldState::Held);
        drop(
            self.changed
                .wait_while(state, is_held)
                .unwrap_or_else(PoisonError::into_inner),
        );
        true
    }

    pub(super) fn record_answer(&self, status: u16) {
        *self.lock() = HoldState::Answered(status);
    }

    fn lock(&self) -> MutexGuard<'_, HoldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
