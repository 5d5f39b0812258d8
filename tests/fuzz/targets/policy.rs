//! Every admission policy gives decisions about every object in bounded time, and what a mutating policy makes of an object
//! is an object. The first line of the input is the spec of the policy, the second the object, the third the old object or
//! a parameter.

use lockkeeper_crd_schema::admission_policy::{
    AdmissionRequest, MergeTypes, MutationKind, PolicySet, Resource,
};
use lockkeeper_crd_schema::builtin::BuiltInKind;
use serde_json::{Value, json};

pub fn run(text: &str) {
    let mut lines = text.split('\n').map(serde_json::from_str::<Value>);
    let mut next = || lines.next().and_then(Result::ok);
    let (Some(spec), Some(object)) = (next(), next()) else {
        return;
    };
    let other = next();
    let mut set = PolicySet::default();
    let names = ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"];
    for kind in names {
        let version = "admissionregistration.k8s.io/v1";
        set.add(
            &json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}),
        );
        let binding = json!({"policyName": "a", "validationActions": ["Deny"], "paramRef": spec.get("paramRef")});
        set.add(&json!({
            "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": {"name": "a"}, "spec": binding,
        }));
    }
    if let Some(other) = &other {
        set.add_param(other);
        set.add_namespace(other);
    }
    let resource = Resource::new("apps", "v1", "Deployment", "deployments");
    let types =
        BuiltInKind::find("apps/v1", "Deployment").map_or(MergeTypes::Unknown, MergeTypes::BuiltIn);
    for old in [None, other.as_ref()] {
        let mut request = AdmissionRequest::create(&object, &resource, Some("a"));
        request.old = old;
        let _ = set.validate(&request);
        let kind = MutationKind {
            types,
            set_defaults: &|object| object,
        };
        let _ = set.mutate(&request, kind);
    }
}
