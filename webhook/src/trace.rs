//! OpenTelemetry spans of reviews: one span per review, with a child span for each step.
//!
//! A span has the identity of the object and the result. It never contains the object, a part of it, or the
//! user of the request. Without the feature `otel` everything here is empty and compiled away.

#[cfg(not(feature = "otel"))]
mod noop;
#[cfg(feature = "otel")]
mod otel;

#[cfg(not(feature = "otel"))]
pub(crate) use noop::{ReviewSpan, ReviewTrace};
#[cfg(feature = "otel")]
pub(crate) use otel::{ReviewSpan, ReviewTrace};

/// A step of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewStep {
    /// The body is read.
    Read,
    /// A large body waits for a permit.
    Wait,
    /// The review is decoded without its objects.
    Envelope,
    /// The objects are decoded into their types.
    Decode,
    /// The rules run.
    Rules,
    /// Defaults are set.
    Defaults,
    /// The objects of a conversion review are converted.
    Convert,
    /// Objects that the stores missed are looked up at the API server.
    Lookup,
}
