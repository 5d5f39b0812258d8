//! One live question to the API server when the stores miss something.
//!
//! `kubectl apply` of a PriorityClass and a Workload that uses it, in one file, sends the second
//! before the watch has told of the first.

use crate::world::Fetched;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::{Api, Client};
use lockkeeper_policies::facts;
use lockkeeper_policies::world::{Lookup, PriorityClassFacts};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long it is remembered that something does not exist, in milliseconds. A client that applies
/// a thousand bad objects must not cause a thousand questions.
const ABSENT_MS: u64 = 1_000;

/// The most names remembered as absent; past it they are all forgotten.
const ABSENT_NAMES_MAX: usize = 1_024;

/// Somebody who can be asked for a PriorityClass.
pub trait Source: Send + Sync {
    /// The PriorityClass of this name; `None` when it does not exist.
    fn priority_class<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<PriorityClassFacts>, kube::Error>>;
}

/// The API server.
pub struct ApiServer {
    classes: Api<PriorityClass>,
}

impl ApiServer {
    /// Asks by this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            classes: Api::all(client),
        }
    }
}

impl Source for ApiServer {
    fn priority_class<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<PriorityClassFacts>, kube::Error>> {
        async move {
            let class = self.classes.get_opt(name).await?;
            Ok(class.as_ref().map(facts::of_priority_class))
        }
        .boxed()
    }
}

/// A source with a short memory for what does not exist.
pub(crate) struct Live {
    source: Box<dyn Source>,
    absent: Mutex<BTreeMap<String, Instant>>,
}

impl Live {
    pub(crate) fn new(source: Box<dyn Source>) -> Self {
        Self {
            source,
            absent: Mutex::default(),
        }
    }

    /// Asks for all names at once. What is not answered by the deadline is unknown.
    pub(crate) async fn fetch(&self, names: BTreeSet<String>, deadline: Instant) -> Fetched {
        let answers = names.into_iter().map(async |name| {
            let answer = self.one(&name, deadline).await;
            (name, answer)
        });
        join_all(answers).await.into_iter().collect()
    }

    async fn one(&self, name: &str, deadline: Instant) -> Lookup<PriorityClassFacts> {
        if self.known_absent(name) {
            return Lookup::Absent;
        }
        let asked = self.source.priority_class(name);
        match tokio::time::timeout_at(deadline.into(), asked).await {
            Ok(Ok(Some(facts))) => Lookup::Found(facts),
            Ok(Ok(None)) => {
                self.remember_absent(name);
                Lookup::Absent
            }
            Ok(Err(error)) => {
                tracing::warn!(class = name, %error, "the API server could not be asked");
                Lookup::Unknown
            }
            Err(_) => {
                tracing::warn!(class = name, "the API server did not answer in time");
                Lookup::Unknown
            }
        }
    }

    fn known_absent(&self, name: &str) -> bool {
        let absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Duration::from_millis(ABSENT_MS);
        absent
            .get(name)
            .is_some_and(|since| since.elapsed() < fresh)
    }

    fn remember_absent(&self, name: &str) {
        let mut absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        if absent.len() >= ABSENT_NAMES_MAX {
            absent.clear();
        }
        absent.insert(name.to_owned(), Instant::now());
    }
}
