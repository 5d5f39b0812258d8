//! From a kind in a request to the rules and defaults of its type.

mod user_rules;

pub(crate) use user_rules::{has_user_rules, validate as validate_by_users};

use crate::admission_response::{AdmissionResponse, ObjectIdentity};
use crate::admission_review::AdmissionRequest;
use crate::duplicate_keys::{self, DecodeError};
use crate::request_view::{LookupKey, LookupResults, RequestView};
use crate::trace::{ReviewStep, ReviewTrace};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::cluster_view::Lookup;
use lockkeeper_policies::decode_error::reason;
use lockkeeper_policies::engine::{ReviewSubject, Verdict, review};
use lockkeeper_policies::finding::{Finding, quoted};
use lockkeeper_policies::index::Index;
use lockkeeper_policies::kinds::{self, KindVisitor};
use lockkeeper_policies::rule::{Change, Context, Operation};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::validated_kind::{ValidatedKind, WebhookScope};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{LazyLock, PoisonError, RwLock};

type ReviewFn = fn(&ReviewContext<'_>, &AdmissionRequest<'_>, Operation) -> ReviewOutcome;

/// What a request is judged by: one state of the settings, the stores, and what was fetched for it.
pub(crate) struct ReviewContext<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) index: &'a RwLock<Index>,
    pub(crate) lookup_results: &'a LookupResults,
    pub(crate) trace: &'a ReviewTrace,
}

/// What comes of judging once.
pub(crate) struct ReviewOutcome {
    pub(crate) response: AdmissionResponse,
    /// What neither the stores nor what was fetched had.
    pub(crate) missed_lookups: BTreeSet<LookupKey>,
}

impl From<AdmissionResponse> for ReviewOutcome {
    fn from(answer: AdmissionResponse) -> Self {
        Self {
            response: answer,
            missed_lookups: BTreeSet::new(),
        }
    }
}

/// The handlers of requests for one kind.
pub(crate) struct Route {
    group: Cow<'static, str>,
    version: Cow<'static, str>,
    kind: Cow<'static, str>,
    pub(crate) validate: ReviewFn,
    pub(crate) mutate: ReviewFn,
}

static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let mut routes = Routes(Vec::new());
    kinds::visit(&mut routes);
    routes.0
});

struct Routes(Vec<Route>);

impl KindVisitor for Routes {
    fn kind<T: ValidatedKind>(&mut self) {
        if T::WEBHOOK != WebhookScope::Never {
            self.0.push(Route::for_type::<T>());
        }
    }
}

impl Route {
    fn for_type<T: ValidatedKind>() -> Self {
        Self {
            group: T::group(&()),
            version: T::version(&()),
            kind: T::kind(&()),
            validate: validate::<T>,
            mutate: |basis, request, operation| mutate::<T>(basis, request, operation).into(),
        }
    }

    /// The route for the kind that a request names.
    pub(crate) fn find(request: &AdmissionRequest<'_>) -> Option<&'static Self> {
        ROUTES.iter().find(|route| {
            let kind = &request.kind;
            route.kind == kind.name && route.version == kind.version && route.group == kind.group
        })
    }
}

/// The objects of a request, decoded.
enum DecodedObjects<T> {
    Create(T),
    Update { old: T, new: T },
    Delete(T),
}

impl<T> DecodedObjects<T> {
    fn subject(&self) -> ReviewSubject<'_, T> {
        match self {
            Self::Create(object) => ReviewSubject::Create(object),
            Self::Update { old, new } => ReviewSubject::Update(Change { old, new }),
            Self::Delete(object) => ReviewSubject::Delete(object),
        }
    }
}

impl<T: ValidatedKind> DecodedObjects<T> {
    /// How messages name the object: by its own name, or by what its name will begin with.
    fn identity<'a>(&'a self, request: &'a AdmissionRequest<'a>) -> ObjectIdentity<'a> {
        let object = match self {
            Self::Create(object) | Self::Delete(object) => object,
            Self::Update { new, .. } => new,
        };
        let metadata = object.meta();
        let own = metadata
            .name
            .as_deref()
            .or(metadata.generate_name.as_deref());
        ObjectIdentity {
            name: own.unwrap_or(&request.name),
            ..request_identity(request)
        }
    }
}

/// Runs the rules, with what was fetched for them. What could not be fetched was not checked.
fn validate<T: ValidatedKind>(
    basis: &ReviewContext<'_>,
    request: &AdmissionRequest<'_>,
    operation: Operation,
) -> ReviewOutcome {
    let decoding = basis.trace.begin(ReviewStep::Decode);
    let decoded = decode::<T>(request, operation);
    decoding.end();
    let decoded = match decoded {
        Ok(decoded) => decoded,
        Err(answer) => return (*answer).into(),
    };
    let (mut verdict, missed) = run_rules(basis, &decoded);
    if let Err(answer) = user_rules::run_user_rules(basis, request, operation, &mut verdict) {
        return (*answer).into();
    }
    let mut answer =
        AdmissionResponse::from_verdict(&request.uid, decoded.identity(request), &verdict);
    for ((kind, name), looked_up) in basis.lookup_results {
        if *looked_up == Lookup::Unknown {
            let kind = kind.name();
            answer.warn(format!(
                "not checked: {kind} {name:?} could not be looked up in time"
            ));
        }
    }
    ReviewOutcome {
        response: answer,
        missed_lookups: missed,
    }
}

/// Runs the rules once. The stores are locked for that long, which is microseconds for most objects.
fn run_rules<T: ValidatedKind>(
    basis: &ReviewContext<'_>,
    decoded: &DecodedObjects<T>,
) -> (Verdict, BTreeSet<LookupKey>) {
    let _rules = basis.trace.begin(ReviewStep::Rules);
    let index = basis.index.read().unwrap_or_else(PoisonError::into_inner);
    let world = RequestView::new(&index, basis.lookup_results);
    let context = Context {
        cluster: &world,
        settings: basis.settings,
    };
    let verdict = review(&decoded.subject(), &context);
    (verdict, world.into_missed_lookups())
}

/// Fills in defaults. An object that does not decode is let through as it is: the schema, or the
/// validation after it, says what is wrong better than a refusal here could.
fn mutate<T: ValidatedKind>(
    basis: &ReviewContext<'_>,
    request: &AdmissionRequest<'_>,
    operation: Operation,
) -> AdmissionResponse {
    let mut answer = AdmissionResponse::allow(&request.uid);
    let decoding = basis.trace.begin(ReviewStep::Decode);
    let decoded = decode::<T>(request, operation);
    decoding.end();
    let (object, old) = match decoded {
        // What a stored object that does not decode was given cannot be known: nothing is filled in,
        // or a finalizer that was taken away would come back.
        Ok(DecodedObjects::Create(_)) if operation == Operation::Update => return answer,
        Ok(DecodedObjects::Create(object)) => (object, None),
        Ok(DecodedObjects::Update { old, new }) => (new, Some(old)),
        Err(refused) if refused.is_bad_request() => return *refused,
        Ok(DecodedObjects::Delete(_)) | Err(_) => return answer,
    };
    let _defaults = basis.trace.begin(ReviewStep::Defaults);
    let index = basis.index.read().unwrap_or_else(PoisonError::into_inner);
    let world = RequestView::new(&index, basis.lookup_results);
    let context = Context {
        cluster: &world,
        settings: basis.settings,
    };
    let defaults = T::defaults(&object, old.as_ref(), &context);
    if world.default_is_unknown() {
        answer.warn(
            "not filled in: which PriorityClass is the global default is not known".to_owned(),
        );
    }
    match answer.set_patch(&defaults) {
        Ok(()) => answer,
        Err(error) => {
            AdmissionResponse::bad_request(&request.uid, format!("no patch could be made: {error}"))
        }
    }
}

/// Decodes what the operation needs.
fn decode<T: ValidatedKind>(
    request: &AdmissionRequest<'_>,
    operation: Operation,
) -> Result<DecodedObjects<T>, Box<AdmissionResponse>> {
    let missing = |field: &str| missing_object(request, operation, field);
    if operation == Operation::Delete {
        let raw = request.old_object.ok_or_else(|| missing("oldObject"))?;
        return match decode_typed(raw) {
            Ok(object) => Ok(DecodedObjects::Delete(object)),
            Err(ObjectDecodeError::DuplicateKey(key)) => {
                Err(duplicate_key(request, "oldObject", &key))
            }
            // Whatever is stored may be deleted: rules see it only if they can.
            Err(ObjectDecodeError::TypeMismatch(finding)) => {
                let mut answer = AdmissionResponse::allow(&request.uid);
                answer.warn(format!(
                    "not checked: the stored object does not decode: {finding}"
                ));
                Err(Box::new(answer))
            }
        };
    }
    let raw = request.object.ok_or_else(|| missing("object"))?;
    let new = match decode_typed::<T>(raw) {
        Ok(new) => new,
        Err(ObjectDecodeError::DuplicateKey(key)) => {
            return Err(duplicate_key(request, "object", &key));
        }
        Err(ObjectDecodeError::TypeMismatch(finding)) => {
            return Err(Box::new(type_error::<T>(request, finding)));
        }
    };
    if operation == Operation::Create {
        return Ok(DecodedObjects::Create(new));
    }
    let raw = request.old_object.ok_or_else(|| missing("oldObject"))?;
    match decode_typed(raw) {
        Ok(old) => Ok(DecodedObjects::Update { old, new }),
        Err(ObjectDecodeError::DuplicateKey(key)) => Err(duplicate_key(request, "oldObject", &key)),
        // Nothing can be held against the stored object, so the new one is judged by itself.
        Err(ObjectDecodeError::TypeMismatch(_)) => Ok(DecodedObjects::Create(new)),
    }
}

/// Refuses a request without an object that it must have.
fn missing_object(
    request: &AdmissionRequest<'_>,
    operation: Operation,
    field: &str,
) -> Box<AdmissionResponse> {
    let message = format!(
        "request.{field} is null, which {} must not have",
        operation.as_str()
    );
    Box::new(AdmissionResponse::bad_request(&request.uid, message))
}

/// Refuses a request whose object holds a key twice: nobody can say which one would be stored.
fn duplicate_key(request: &AdmissionRequest<'_>, field: &str, key: &str) -> Box<AdmissionResponse> {
    let key = quoted(key);
    let message =
        format!("request.{field} holds the key {key} twice; an API server sends each once");
    Box::new(AdmissionResponse::bad_request(&request.uid, message))
}

/// Refuses an object that does not decode, unless the stored one has the same fault: then the update
/// did not cause it, and a finalizer can still be removed. An object of another project may be of a newer form than
/// is known here; it is not ours to refuse.
fn type_error<T: ValidatedKind>(
    request: &AdmissionRequest<'_>,
    finding: Finding,
) -> AdmissionResponse {
    let before = request
        .old_object
        .and_then(|raw| decode_typed::<T>(raw).err());
    let was_there =
        matches!(before, Some(ObjectDecodeError::TypeMismatch(before)) if before == finding);
    if was_there || !T::OWN {
        let mut answer = AdmissionResponse::allow(&request.uid);
        answer.warn(format!("not checked: {finding}"));
        return answer;
    }
    let verdict = Verdict {
        denials: vec![finding],
        ..Verdict::default()
    };
    AdmissionResponse::from_verdict(&request.uid, request_identity(request), &verdict)
}

/// Why an object has no type.
enum ObjectDecodeError {
    /// It holds this key twice.
    DuplicateKey(String),
    /// It does not fit its type.
    TypeMismatch(Finding),
}

/// Decodes an object.
fn decode_typed<T: ValidatedKind>(raw: &RawValue) -> Result<T, ObjectDecodeError> {
    duplicate_keys::from_str(raw.get()).map_err(|fault| match fault {
        DecodeError::DuplicateKey(key) => ObjectDecodeError::DuplicateKey(key),
        DecodeError::Json(error) => {
            ObjectDecodeError::TypeMismatch(locate_type_error::<T>(raw, &error))
        }
    })
}

/// What does not fit, with its path. The path is tracked only in this second pass, so that good objects
/// don't pay for it.
fn locate_type_error<T: ValidatedKind>(raw: &RawValue, first: &serde_json::Error) -> Finding {
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Ok(_) => Finding::decode_error(FieldPath::default(), None, &reason(first)),
        Err(error) => {
            let object = serde_json::from_str::<Value>(raw.get()).ok();
            Finding::type_mismatch(FieldPath::default(), &error, object.as_ref())
        }
    }
}

fn request_identity<'a>(request: &'a AdmissionRequest<'a>) -> ObjectIdentity<'a> {
    ObjectIdentity {
        group: &request.kind.group,
        kind: &request.kind.name,
        name: &request.name,
    }
}
