//! The build without spans.
#![allow(
    clippy::unused_self,
    reason = "the same calls as in the build with spans"
)]

use super::Step;
use crate::answer::Answer;
use crate::app::App;
use crate::conversion;
use crate::envelope::Request;
use crate::metrics::{Conversion, Path};
use crate::world::Fetched;
use axum::http::{HeaderMap, StatusCode};

pub(crate) struct Root(Trace);

impl Root {
    pub(crate) fn new(_: &App, _: Path, _: &HeaderMap) -> Self {
        Self(Trace)
    }

    pub(crate) fn trace(&self) -> &Trace {
        &self.0
    }
}

#[derive(Clone)]
pub(crate) struct Trace;

impl Trace {
    pub(crate) fn begin(&self, _: Step) -> Begun {
        Begun
    }

    pub(crate) fn judged(&self, _: &Request<'_>, _: &Answer) {}

    pub(crate) fn converted(&self, _: &conversion::Request<'_>, _: Conversion) {}

    pub(crate) fn late_conversion(&self, _uid: &str) {}

    pub(crate) fn late(&self, _uid: &str) {}

    pub(crate) fn refused(&self, _: StatusCode) {}
}

#[must_use]
pub(crate) struct Begun;

impl Begun {
    pub(crate) fn found(self, _: &Fetched) {}

    pub(crate) fn end(self) {}
}
