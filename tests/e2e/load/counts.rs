//! What came of the requests.

use std::fmt;

/// How many failures are kept with their texts.
const EXAMPLES_MAX: usize = 5;

/// What came of one request.
pub enum Outcome {
    /// A good object was accepted, with its defaults.
    Accepted,
    /// A bad object was refused by the rule that it breaks.
    Rejected,
    /// A bad object was accepted, a good one refused, or the wrong reason was given.
    Unexpected(String),
    /// Nobody judged the object: an error of the server, or no answer at all.
    NoResponse(String),
}

/// How many requests, and what came of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadCounts {
    pub sent: u64,
    /// Good objects that were accepted.
    pub accepted: u64,
    /// Bad objects that were refused by the right rule.
    pub rejected: u64,
    /// Answers that should not have been given.
    pub unexpected: u64,
    /// Requests that nobody judged, while somebody should have been there.
    pub without_response: u64,
    /// Requests that nobody judged while the drill kept the webhook or the API server away.
    pub unavailable: u64,
}

impl fmt::Display for LoadCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sent,
            accepted,
            rejected: refused,
            unexpected: wrong,
            without_response: lost,
            unavailable,
        } = self;
        write!(
            f,
            "sent {sent}, accepted {accepted}, refused {refused}, wrong {wrong}, lost {lost}, \
             unavailable {unavailable}"
        )
    }
}

/// The counts, and some of what went wrong.
#[derive(Default)]
pub struct LoadTally {
    pub counts: LoadCounts,
    pub examples: Vec<String>,
}

impl LoadTally {
    /// Counts one request; `is_away` says that the drill had taken somebody away meanwhile.
    pub fn count(&mut self, outcome: Outcome, is_away: bool) {
        let counts = &mut self.counts;
        counts.sent += 1;
        match outcome {
            Outcome::Accepted => counts.accepted += 1,
            Outcome::Rejected => counts.rejected += 1,
            Outcome::NoResponse(_) if is_away => counts.unavailable += 1,
            Outcome::Unexpected(text) => {
                counts.unexpected += 1;
                self.add_example(format!("wrong: {text}"));
            }
            Outcome::NoResponse(text) => {
                counts.without_response += 1;
                self.add_example(format!("lost: {text}"));
            }
        }
    }

    fn add_example(&mut self, text: String) {
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(text);
        }
    }
}
