//! An API server in memory: objects by their path, with versions and merge patches.

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

const COLLECTIONS: [&str; 2] = ["secrets", "validatingwebhookconfigurations"];

#[derive(Clone, Default)]
pub(super) struct Api(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    version: u64,
    /// The accepted writes, as method and path.
    writes: Vec<String>,
    /// Paths below which writes are forbidden.
    forbidden: Option<&'static str>,
}

impl Api {
    pub(super) fn client(&self) -> Client {
        let api = self.clone();
        let answer = move |request: Request<Body>| {
            let api = api.clone();
            async move {
                let (head, body) = request.into_parts();
                let query = head.uri.query().unwrap_or_default();
                if query.contains("watch=true") {
                    // No event ever.
                    std::future::pending::<()>().await;
                }
                let body = body.collect_bytes().await.unwrap();
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let (code, body) = api.answer(&head.method, head.uri.path(), body);
                let response = Response::builder().status(code);
                let body = Body::from(body.to_string().into_bytes());
                Ok::<_, Infallible>(response.body(body).unwrap())
            }
        };
        Client::new(tower::service_fn(answer), "team")
    }

    /// Creates or changes an object as another client.
    pub(super) fn put(&self, path: &str, object: Value) {
        self.0.lock().unwrap().store(path, object);
    }

    pub(super) fn get(&self, path: &str) -> Value {
        let state = self.0.lock().unwrap();
        state.objects.get(path).cloned().unwrap_or_default()
    }

    /// Forbids writes below a path; `None` allows all.
    pub(super) fn forbid(&self, path: Option<&'static str>) {
        self.0.lock().unwrap().forbidden = path;
    }

    /// The writes since the last call.
    pub(super) fn take_writes(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().writes)
    }

    fn answer(&self, method: &Method, path: &str, body: Value) -> (u16, Value) {
        let mut state = self.0.lock().unwrap();
        if method == Method::GET {
            return state.read(path);
        }
        if state.forbidden.is_some_and(|it| path.starts_with(it)) {
            return failure(403, "not permitted");
        }
        let (path, object) = if method == Method::POST {
            let path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap());
            if state.objects.contains_key(&path) {
                return failure(409, "it exists already");
            }
            (path, body)
        } else {
            let Some(mut object) = state.objects.get(path).cloned() else {
                return failure(404, "not found");
            };
            if body["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
                return failure(409, "changed meanwhile");
            }
            merge(&mut object, body);
            (path.to_owned(), object)
        };
        state.writes.push(format!("{method} {path}"));
        (200, state.store(&path, object))
    }
}

impl State {
    fn read(&self, path: &str) -> (u16, Value) {
        if !COLLECTIONS.iter().any(|it| path.ends_with(it)) {
            let object = self.objects.get(path).cloned();
            return object.map_or_else(|| failure(404, "not found"), |it| (200, it));
        }
        let all = self.objects.iter();
        let below = all.filter(|(place, _)| place.starts_with(path));
        let items: Vec<_> = below.map(|(_, object)| object).collect();
        let version = self.version.to_string();
        (
            200,
            json!({"metadata": {"resourceVersion": version}, "items": items}),
        )
    }

    fn store(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object["metadata"]["uid"] = path.into();
        self.objects.insert(path.to_owned(), object.clone());
        object
    }
}

fn failure(code: u16, message: &str) -> (u16, Value) {
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        _ if message.contains("exists") => "AlreadyExists",
        _ => "Conflict",
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message,
    });
    (code, status)
}

/// A merge patch (RFC 7396).
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(fields) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(&name);
        } else {
            merge(&mut target[name], value);
        }
    }
}
