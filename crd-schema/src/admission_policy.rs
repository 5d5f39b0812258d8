//! Admission policies of Kubernetes, evaluated as the API server evaluates them.
//!
//! A [`PolicySet`] has policies, bindings, parameters and namespaces. [`PolicySet::mutate`] applies the
//! `MutatingAdmissionPolicy` objects to the object of a request, and [`PolicySet::validate`] gives the decisions of the
//! `ValidatingAdmissionPolicy` objects about it. The semantics are those of
//! `k8s.io/apiserver/pkg/admission/plugin/policy` 1.37. What a decision needs but the set does not have, such as the user
//! of the request, makes it [undecided](Outcome::Undecided), unless the result is the same for every value.
//!
//! ```
//! use lockkeeper_crd_schema::admission_policy::{AdmissionRequest, Outcome, PolicySet, Resource};
//! use serde_json::json;
//!
//! let mut set = PolicySet::default();
//! set.add(&json!({
//!     "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "small"},
//!     "spec": {
//!         "matchConstraints": {"resourceRules": [{
//!             "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"],
//!         }]},
//!         "validations": [{"expression": "object.spec.replicas <= 5"}],
//!     },
//! }));
//! set.add(&json!({
//!     "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
//!     "metadata": {"name": "all"}, "spec": {"policyName": "small", "validationActions": ["Deny"]},
//! }));
//! let object = json!({"metadata": {"name": "web", "namespace": "a"}, "spec": {"replicas": 7}});
//! let resource = Resource::new("apps", "v1", "Deployment", "deployments");
//! let decisions = set.validate(&AdmissionRequest::create(&object, &resource, Some("a")));
//! let Outcome::Denied { message, .. } = &decisions[0].outcome else { panic!() };
//! assert_eq!(message, "failed expression: object.spec.replicas <= 5");
//! ```

mod binding;
mod decision;
mod frame;
mod known_objects;
mod match_resources;
mod merge;
mod mutating;
mod params;
mod policy_set;
mod request;
mod selector;
#[cfg(test)]
mod tests;
mod validating;

pub use decision::{Actions, Decision, Missing, Outcome, PolicyKind};
pub use merge::MergeTypes;
pub(crate) use mutating::compile_mutating_policy;
pub use policy_set::{Mutated, MutationKind, PolicySet};
pub use request::{AdmissionRequest, Conversion, Resource, UserInfo};
pub(crate) use validating::compile_validating_policy;
