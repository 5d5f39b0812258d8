//! From a kind in a request to the rules and defaults of its type.

mod user;

pub(crate) use user::{is_for_users, validate as validate_by_users};

use crate::answer::{Answer, Named};
use crate::envelope::Request;
use crate::trace::{Step, Trace};
use crate::unique::{self, Fault};
use crate::world::{Asked, Fetched, RequestWorld};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::koordinator::{self, ElasticQuota};
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::{ClusterQueue, Cohort, JobSet, LocalQueue, ResourceFlavor, Workload, job_set};
use lockkeeper_policies::engine::{Subject, Verdict, review};
use lockkeeper_policies::finding::{Finding, quoted};
use lockkeeper_policies::guarded::Guarded;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::rule::{Change, Context, Operation};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::undecodable::reason;
use lockkeeper_policies::world::Lookup;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

type Judge = fn(&Basis<'_>, &Request<'_>, Operation) -> Judged;

/// What a request is judged by: one state of the settings, the stores, and what was fetched for it.
pub(crate) struct Basis<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) index: &'a RwLock<Index>,
    pub(crate) fetched: &'a Fetched,
    pub(crate) trace: &'a Trace,
}

/// What comes of judging once.
pub(crate) struct Judged {
    pub(crate) answer: Answer,
    /// What neither the stores nor what was fetched had.
    pub(crate) missed: BTreeSet<Asked>,
}

impl From<Answer> for Judged {
    fn from(answer: Answer) -> Self {
        Self {
            answer,
            missed: BTreeSet::new(),
        }
    }
}

/// What is done with requests for one kind of object.
pub(crate) struct Route {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    pub(crate) validate: Judge,
    pub(crate) mutate: Judge,
}

static ROUTES: &[Route] = &[
    Route::of::<ClusterQueue>("lockkeeper.dev", "v1alpha1", "ClusterQueue"),
    Route::of::<Cohort>("lockkeeper.dev", "v1alpha1", "Cohort"),
    Route::of::<ResourceFlavor>("lockkeeper.dev", "v1alpha1", "ResourceFlavor"),
    Route::of::<LocalQueue>("lockkeeper.dev", "v1alpha1", "LocalQueue"),
    Route::of::<Workload>("lockkeeper.dev", "v1alpha1", "Workload"),
    Route::of::<PriorityClass>("scheduling.k8s.io", "v1", "PriorityClass"),
    Route::of::<Pod>("", "v1", "Pod"),
    Route::of::<Job>("batch", "v1", "Job"),
    Route::of::<JobSet>(job_set::GROUP, job_set::VERSION, job_set::KIND),
    Route::of::<kueue::ClusterQueue>(kueue::GROUP, kueue::VERSION, "ClusterQueue"),
    Route::of::<kueue::Cohort>(kueue::GROUP, kueue::VERSION, "Cohort"),
    Route::of::<kueue::ResourceFlavor>(kueue::GROUP, kueue::VERSION, "ResourceFlavor"),
    Route::of::<kueue::LocalQueue>(kueue::GROUP, kueue::VERSION, "LocalQueue"),
    Route::of::<kueue::Workload>(kueue::GROUP, kueue::VERSION, "Workload"),
    Route::of::<ElasticQuota>(koordinator::GROUP, koordinator::VERSION, koordinator::KIND),
];

impl Route {
    const fn of<T: Guarded>(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
    ) -> Self {
        Self {
            group,
            version,
            kind,
            validate: validate::<T>,
            mutate: |basis, request, operation| mutate::<T>(basis, request, operation).into(),
        }
    }

    /// The route for the kind that a request names.
    pub(crate) fn find(request: &Request<'_>) -> Option<&'static Self> {
        ROUTES.iter().find(|route| {
            let kind = &request.kind;
            route.kind == kind.name && route.version == kind.version && route.group == kind.group
        })
    }
}

/// The objects of a request, decoded.
enum Decoded<T> {
    Create(T),
    Update { old: T, new: T },
    Delete(T),
}

impl<T> Decoded<T> {
    fn subject(&self) -> Subject<'_, T> {
        match self {
            Self::Create(object) => Subject::Create(object),
            Self::Update { old, new } => Subject::Update(Change { old, new }),
            Self::Delete(object) => Subject::Delete(object),
        }
    }
}

impl<T: Guarded> Decoded<T> {
    /// How messages name the object: by its own name, or by what its name will begin with.
    fn named<'a>(&'a self, request: &'a Request<'a>) -> Named<'a> {
        let object = match self {
            Self::Create(object) | Self::Delete(object) => object,
            Self::Update { new, .. } => new,
        };
        let metadata = object.meta();
        let own = metadata
            .name
            .as_deref()
            .or(metadata.generate_name.as_deref());
        Named {
            name: own.unwrap_or(&request.name),
            ..named(request)
        }
    }
}

/// Runs the rules, with what was fetched for them. What could not be fetched was not checked.
fn validate<T: Guarded>(basis: &Basis<'_>, request: &Request<'_>, operation: Operation) -> Judged {
    let decoding = basis.trace.begin(Step::Decode);
    let decoded = decode::<T>(request, operation);
    decoding.end();
    let decoded = match decoded {
        Ok(decoded) => decoded,
        Err(answer) => return (*answer).into(),
    };
    let (mut verdict, missed) = judge(basis, &decoded);
    if let Err(answer) = user::judge(basis, request, operation, &mut verdict) {
        return (*answer).into();
    }
    let mut answer = Answer::judged(&request.uid, decoded.named(request), &verdict);
    for ((kind, name), looked_up) in basis.fetched {
        if *looked_up == Lookup::Unknown {
            let kind = kind.name();
            answer.warn(format!(
                "not checked: {kind} {name:?} could not be looked up in time"
            ));
        }
    }
    Judged { answer, missed }
}

/// Runs the rules once. The stores are locked for that long, which is microseconds for most objects.
fn judge<T: Guarded>(basis: &Basis<'_>, decoded: &Decoded<T>) -> (Verdict, BTreeSet<Asked>) {
    let _rules = basis.trace.begin(Step::Rules);
    let index = basis.index.read().unwrap_or_else(PoisonError::into_inner);
    let world = RequestWorld::new(&index, basis.fetched);
    let context = Context {
        world: &world,
        settings: basis.settings,
    };
    let verdict = review(&decoded.subject(), &context);
    (verdict, world.into_missed())
}

/// Fills in defaults. An object that does not decode is let through as it is: the schema, or the
/// validation after it, says what is wrong better than a refusal here could.
fn mutate<T: Guarded>(basis: &Basis<'_>, request: &Request<'_>, operation: Operation) -> Answer {
    let mut answer = Answer::allow(&request.uid);
    let decoding = basis.trace.begin(Step::Decode);
    let decoded = decode::<T>(request, operation);
    decoding.end();
    let (object, old) = match decoded {
        // What a stored object that does not decode was given cannot be known: nothing is filled in,
        // or a finalizer that was taken away would come back.
        Ok(Decoded::Create(_)) if operation == Operation::Update => return answer,
        Ok(Decoded::Create(object)) => (object, None),
        Ok(Decoded::Update { old, new }) => (new, Some(old)),
        Err(refused) if refused.is_bad_request() => return *refused,
        Ok(Decoded::Delete(_)) | Err(_) => return answer,
    };
    let _defaults = basis.trace.begin(Step::Defaults);
    let index = basis.index.read().unwrap_or_else(PoisonError::into_inner);
    let world = RequestWorld::new(&index, basis.fetched);
    let context = Context {
        world: &world,
        settings: basis.settings,
    };
    let defaults = T::defaults(&object, old.as_ref(), &context);
    if world.default_is_unknown() {
        answer.warn(
            "not filled in: which PriorityClass is the global default is not known".to_owned(),
        );
    }
    match answer.fill(&defaults) {
        Ok(()) => answer,
        Err(error) => Answer::bad_request(&request.uid, format!("no patch could be made: {error}")),
    }
}

/// Decodes what the operation needs.
fn decode<T: Guarded>(
    request: &Request<'_>,
    operation: Operation,
) -> Result<Decoded<T>, Box<Answer>> {
    let missing = |field: &str| missing(request, operation, field);
    if operation == Operation::Delete {
        let raw = request.old_object.ok_or_else(|| missing("oldObject"))?;
        return match typed(raw) {
            Ok(object) => Ok(Decoded::Delete(object)),
            Err(Undecodable::Twice(key)) => Err(twice(request, "oldObject", &key)),
            // Whatever is stored may be deleted: rules see it only if they can.
            Err(Undecodable::Unfit(finding)) => {
                let mut answer = Answer::allow(&request.uid);
                answer.warn(format!(
                    "not checked: the stored object does not decode: {finding}"
                ));
                Err(Box::new(answer))
            }
        };
    }
    let raw = request.object.ok_or_else(|| missing("object"))?;
    let new = match typed::<T>(raw) {
        Ok(new) => new,
        Err(Undecodable::Twice(key)) => return Err(twice(request, "object", &key)),
        Err(Undecodable::Unfit(finding)) => return Err(Box::new(unfit::<T>(request, finding))),
    };
    if operation == Operation::Create {
        return Ok(Decoded::Create(new));
    }
    let raw = request.old_object.ok_or_else(|| missing("oldObject"))?;
    match typed(raw) {
        Ok(old) => Ok(Decoded::Update { old, new }),
        Err(Undecodable::Twice(key)) => Err(twice(request, "oldObject", &key)),
        // Nothing can be held against the stored object, so the new one is judged by itself.
        Err(Undecodable::Unfit(_)) => Ok(Decoded::Create(new)),
    }
}

/// Refuses a request without an object that it must have.
fn missing(request: &Request<'_>, operation: Operation, field: &str) -> Box<Answer> {
    let message = format!(
        "request.{field} is null, which {} must not have",
        operation.as_str()
    );
    Box::new(Answer::bad_request(&request.uid, message))
}

/// Refuses a request whose object holds a key twice: nobody can say which one would be stored.
fn twice(request: &Request<'_>, field: &str, key: &str) -> Box<Answer> {
    let key = quoted(key);
    let message =
        format!("request.{field} holds the key {key} twice; an API server sends each once");
    Box::new(Answer::bad_request(&request.uid, message))
}

/// Refuses an object that does not decode, unless the stored one has the same fault: then the update
/// did not cause it, and a finalizer can still be removed. An object of another project may be of a newer form than
/// is known here; it is not ours to refuse.
fn unfit<T: Guarded>(request: &Request<'_>, finding: Finding) -> Answer {
    let before = request.old_object.and_then(|raw| typed::<T>(raw).err());
    let was_there = matches!(before, Some(Undecodable::Unfit(before)) if before == finding);
    if was_there || !T::OWN {
        let mut answer = Answer::allow(&request.uid);
        answer.warn(format!("not checked: {finding}"));
        return answer;
    }
    let verdict = Verdict {
        denials: vec![finding],
        ..Verdict::default()
    };
    Answer::judged(&request.uid, named(request), &verdict)
}

/// Why an object has no type.
enum Undecodable {
    /// It holds this key twice.
    Twice(String),
    /// It does not fit its type.
    Unfit(Finding),
}

/// Decodes an object.
fn typed<T: Guarded>(raw: &RawValue) -> Result<T, Undecodable> {
    unique::from_str(raw.get()).map_err(|fault| match fault {
        Fault::Twice(key) => Undecodable::Twice(key),
        Fault::Json(error) => Undecodable::Unfit(misfit::<T>(raw, &error)),
    })
}

/// What does not fit, with its path. The path is tracked only in this second pass, so that good objects
/// don't pay for it.
fn misfit<T: Guarded>(raw: &RawValue, first: &serde_json::Error) -> Finding {
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Ok(_) => Finding::undecodable(FieldPath::default(), None, &reason(first)),
        Err(error) => {
            let object = serde_json::from_str::<Value>(raw.get()).ok();
            Finding::misfit(FieldPath::default(), &error, object.as_ref())
        }
    }
}

fn named<'a>(request: &'a Request<'a>) -> Named<'a> {
    Named {
        group: &request.kind.group,
        kind: &request.kind.name,
        name: &request.name,
    }
}
