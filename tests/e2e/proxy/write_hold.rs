//! Holds one write until it is released.

use std::collections::VecDeque;
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

#[derive(Default)]
struct HoldState {
    /// The next write with this pattern is held.
    armed: Option<WritePattern>,
    is_holding: bool,
    /// The statuses of the API server's answers to released writes that the test has not taken.
    answers: VecDeque<u16>,
}

/// Holds the first write with a pattern.
#[derive(Default)]
pub(super) struct WriteHold {
    state: Mutex<HoldState>,
    changed: Condvar,
}

impl WriteHold {
    /// A write that is held already stays held.
    pub(super) fn arm(&self, pattern: WritePattern) {
        self.lock().armed = Some(pattern);
    }

    pub(super) fn is_holding(&self) -> bool {
        self.lock().is_holding
    }

    /// Takes the status of the answer to the released write; `None` before the answer.
    pub(super) fn take_answer(&self) -> Option<u16> {
        self.lock().answers.pop_front()
    }

    /// Forwards the held write.
    pub(super) fn release(&self) {
        self.lock().is_holding = false;
        self.changed.notify_all();
    }

    /// Returns whether the write was held, when it is released.
    pub(super) fn hold_if_matching(&self, request: &HttpMessage) -> bool {
        let mut state = self.lock();
        if state.is_holding || !state.armed.is_some_and(|it| it.matches(request)) {
            return false;
        }
        state.armed = None;
        state.is_holding = true;
        let released = self.changed.wait_while(state, |state| state.is_holding);
        drop(released.unwrap_or_else(PoisonError::into_inner));
        true
    }

    pub(super) fn record_answer(&self, status: u16) {
        self.lock().answers.push_back(status);
    }

    fn lock(&self) -> MutexGuard<'_, HoldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
