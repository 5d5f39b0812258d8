//! Where the time of a review goes, for OpenTelemetry: a span for the review, and one for each of its
//! steps.
//!
//! A span names what was judged and what came of it. It never holds an object, a part of one, or who
//! sent it. Without the feature `otel` everything here is empty, and nothing is left of it in the binary.

#[cfg(not(feature = "otel"))]
mod noop;
#[cfg(feature = "otel")]
mod otel;

#[cfg(not(feature = "otel"))]
pub(crate) use noop::{ReviewSpan, ReviewTrace};
#[cfg(feature = "otel")]
pub(crate) use otel::{ReviewSpan, ReviewTrace};

/// What a review's time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewStep {
    /// The body is on its way.
    Read,
    /// A large body waits for its turn.
    Wait,
    /// The review around the objects is decoded.
    Envelope,
    /// The objects are decoded into their types.
    Decode,
    /// The rules run.
    Rules,
    /// Defaults are filled in.
    Defaults,
    /// The objects of a conversion review are converted.
    Convert,
    /// The API server is asked for what the stores missed.
    Lookup,
}
