//! A decision log is replayed, or rejected with a reason; its text is not trusted.

use lockkeeper_decision_log::{History, Replay};

pub fn run(text: &str) {
    let mut replay = Replay::with_observer(History::of("team/w"));
    for line in text.lines() {
        if let Err(error) = replay.read_line(line) {
            assert!(!error.to_string().is_empty());
        }
    }
    let _ = replay.into_observer();
}
