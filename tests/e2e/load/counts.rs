//! Counts of the results of requests.

use std::fmt;

/// How many failures are kept with their texts.
const EXAMPLES_MAX: usize = 5;

/// The result of one request.
pub enum Outcome {
    /// A good object was accepted, with its defaults.
    Accepted,
    /// A bad object was rejected by the rule that it breaks.
    Rejected,
    /// An invalid object was accepted, a valid one rejected, or the reason was wrong.
    Unexpected(String),
    /// The object was not reviewed: a server error, or no response.
    NoResponse(String),
}

/// The number of requests by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadCounts {
    pub sent: u64,
    /// Good objects that were accepted.
    pub accepted: u64,
    /// Bad objects that were rejected by the right rule.
    pub rejected: u64,
    /// Wrong responses.
    pub unexpected: u64,
    /// Requests without a review although the webhook was available.
    pub without_response: u64,
    /// Requests without a review while the drill had stopped the webhook or the API server.
    pub unavailable: u64,
}

impl fmt::Display for LoadCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sent,
            accepted,
            rejected,
            unexpected,
            without_response,
            unavailable,
        } = self;
        write!(
            f,
            "sent {sent}, accepted {accepted}, rejected {rejected}, unexpected {unexpected}, \
             without response {without_response}, unavailable {unavailable}"
        )
    }
}

/// The counts, and examples of failures.
#[derive(Default)]
pub struct LoadTally {
    pub counts: LoadCounts,
    pub examples: Vec<String>,
}

impl LoadTally {
    /// Counts one request; `is_unavailable` means that the drill had stopped a component meanwhile.
    pub fn count(&mut self, outcome: Outcome, is_unavailable: bool) {
        let counts = &mut self.counts;
        counts.sent += 1;
        match outcome {
            Outcome::Accepted => counts.accepted += 1,
            Outcome::Rejected => counts.rejected += 1,
            Outcome::NoResponse(_) if is_unavailable => counts.unavailable += 1,
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
