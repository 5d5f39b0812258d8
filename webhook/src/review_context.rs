//! The inputs and the result of one evaluation of a review.

use crate::admission_response::AdmissionResponse;
use crate::admission_review::AdmissionRequest;
use crate::pod_template_cache::PodTemplateCache;
use crate::request_view::{LookupKey, LookupResults};
use crate::trace::ReviewTrace;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::settings::Settings;
use std::collections::BTreeSet;
use std::sync::RwLock;

/// The inputs of an evaluation besides the request: one state of the settings, the stores, and the
/// objects that were looked up for the request.
pub(crate) struct ReviewContext<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) index: &'a RwLock<Index>,
    pub(crate) lookup_results: &'a LookupResults,
    pub(crate) pod_templates: &'a PodTemplateCache,
    pub(crate) trace: &'a ReviewTrace,
}

/// The response, and how to evaluate the rules again if they missed an object.
pub(crate) struct ReviewOutcome {
    pub(crate) response: AdmissionResponse,
    /// `None` if the stores had all objects that the rules needed.
    pub(crate) retry: Option<Retry>,
    /// The object, as JSON, if it is created and its preview is wanted.
    pub(crate) created_object: Option<String>,
}

impl From<AdmissionResponse> for ReviewOutcome {
    fn from(response: AdmissionResponse) -> Self {
        Self {
            response,
            retry: None,
            created_object: None,
        }
    }
}

type EvaluateFn =
    dyn Fn(&ReviewContext<'_>, &AdmissionRequest<'_>) -> AdmissionResponse + Send + Sync;

/// Rules to evaluate again after a lookup, with the objects already decoded.
pub(crate) struct Retry {
    pub(crate) missed_lookups: BTreeSet<LookupKey>,
    request: AdmissionRequest<'static>,
    evaluate: Box<EvaluateFn>,
}

impl Retry {
    /// `evaluate` owns the decoded objects: the request that is kept has none.
    pub(crate) fn new(
        missed_lookups: BTreeSet<LookupKey>,
        request: &AdmissionRequest<'_>,
        evaluate: Box<EvaluateFn>,
    ) -> Self {
        Self {
            missed_lookups,
            request: request.without_objects(),
            evaluate,
        }
    }

    /// The request without its embedded objects.
    pub(crate) fn request(&self) -> &AdmissionRequest<'static> {
        &self.request
    }

    pub(crate) fn evaluate(&self, context: &ReviewContext<'_>) -> AdmissionResponse {
        (self.evaluate)(context, &self.request)
    }
}
