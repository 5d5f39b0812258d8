//! The adoption of one job. Each step can be repeated: a later run continues after the last one that was executed.

use super::candidate::{admission, exceeds, is_evicted, job_key, parse};
use super::quota_check::Settings;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    Preconditions,
};
use kube::{Api, Client, Error};
use lockkeeper_api::Workload;
use lockkeeper_api::workload::Admission;
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_controller::job_adapters::{JobKinds, JobView, Resource};
use lockkeeper_controller::{
    AdoptionState, adoption_admission_patch, adoption_label_patch, adoption_manifest,
    adoption_request_patch, adoption_state,
};
use lockkeeper_kube_support::error_chain::ErrorChain;
use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, sleep};

/// The field manager of the writes.
const FIELD_MANAGER: &str = "lockkeeper-adopt";

/// The most attempts of a write that conflicts with another one.
const ATTEMPTS_MAX: usize = 10;

/// The pause between two reads of a Workload.
const POLL_PAUSE: Duration = Duration::from_millis(100);

/// Why a job was not adopted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdoptError {
    /// The API server rejects a request of the impersonated account, or the impersonation.
    #[error("the API server forbids to {action}: {reason}")]
    Forbidden {
        action: &'static str,
        reason: String,
    },
    /// The API server does not respond, or rejects a request.
    #[error("cannot {action}: {reason}")]
    Failed {
        action: &'static str,
        reason: String,
    },
    /// The controller has not confirmed a step in time.
    #[error(
        "the controller has not confirmed {step} within {seconds} s; does it run, in this version?"
    )]
    NotConfirmed { step: &'static str, seconds: u64 },
    /// The Workload was deleted or evicted meanwhile.
    #[error("its Workload was deleted or evicted meanwhile; is the controller of this version?")]
    WorkloadGone,
    /// The job ended, was suspended or was changed since the check of the quota.
    #[error("the job has {0} since the check of the quota")]
    JobChanged(&'static str),
    /// Other clients change the object all the time.
    #[error("cannot {action}: the object has changed {ATTEMPTS_MAX} times meanwhile")]
    Conflicts { action: &'static str },
}

impl AdoptError {
    /// Whether the next job would have the same error.
    pub(crate) const fn is_of_cluster(&self) -> bool {
        matches!(self, Self::Forbidden { .. } | Self::NotConfirmed { .. })
    }
}

fn api_resource(of: &Resource) -> ApiResource {
    let kind = GroupVersionKind::gvk(&of.group, &of.version, &of.kind);
    ApiResource::from_gvk_with_plural(&kind, &of.plural)
}

/// The clients of an adoption: one reads, the other has the controller's account.
#[derive(Clone)]
pub(crate) struct Clients {
    pub(crate) reader: Client,
    pub(crate) writer: Client,
}

/// How to write the adoptions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApplyOptions<'a> {
    /// The settings that decide whether a job fits.
    pub(crate) settings: &'a Settings,
    /// The kinds of jobs of the cluster.
    pub(crate) job_kinds: &'a JobKinds,
    /// Whether jobs are adopted even if others do not fit.
    pub(crate) is_partial: bool,
    /// How long to wait for the controller, for each job and step.
    pub(crate) timeout: Duration,
}

/// The adoption of one job.
#[derive(Debug)]
pub(crate) struct Adoption {
    kind: usize,
    job: JobView,
    job_kinds: JobKinds,
    read_workloads: Api<Workload>,
    read_jobs: Api<DynamicObject>,
    write_workloads: Api<Workload>,
    write_jobs: Api<DynamicObject>,
    workload: String,
    timeout: Duration,
}

impl Adoption {
    /// The adoption of a job of the kind with this index; `None` for an unknown kind.
    pub(crate) fn new(
        kind: usize,
        job: JobView,
        clients: &Clients,
        options: &ApplyOptions<'_>,
    ) -> Option<Self> {
        let resource = api_resource(&options.job_kinds.get(kind)?.resource());
        let namespace = job.name.namespace();
        let (reader, writer) = (clients.reader.clone(), clients.writer.clone());
        Some(Self {
            kind,
            read_workloads: Api::namespaced(reader.clone(), namespace),
            read_jobs: Api::namespaced_with(reader, namespace, &resource),
            write_workloads: Api::namespaced(writer.clone(), namespace),
            write_jobs: Api::namespaced_with(writer, namespace, &resource),
            workload: job.workload_name(kind).name().to_owned(),
            job,
            job_kinds: options.job_kinds.clone(),
            timeout: options.timeout,
        })
    }

    /// The index of the kind of the job.
    pub(crate) const fn kind(&self) -> usize {
        self.kind
    }

    /// The name of the kind of the job.
    pub(crate) fn kind_name(&self) -> &str {
        self.job_kinds.name(self.kind)
    }

    /// The job in the LocalQueue of its adoption.
    pub(crate) const fn job(&self) -> &JobView {
        &self.job
    }

    /// Creates the Workload, without an admission.
    pub(crate) async fn create_workload(&self) -> Result<(), AdoptError> {
        let action = "create its Workload";
        let key = job_key(self.kind, &self.job);
        let manifest = adoption_manifest(&self.job_kinds, &key, &self.job).unwrap_or_default();
        let workload: Workload =
            serde_json::from_value(manifest).map_err(|error| AdoptError::Failed {
                action,
                reason: error.to_string(),
            })?;
        let parameters = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        match self.write_workloads.create(&parameters, &workload).await {
            Err(Error::Api(status)) if status.reason == "AlreadyExists" => {
                self.request_again().await
            }
            Err(error) => Err(api_error(action, error)),
            Ok(_) => Ok(()),
        }
    }

    /// Asks the controller to confirm the Workload of an earlier run again, so that it admits nothing else meanwhile.
    async fn request_again(&self) -> Result<(), AdoptError> {
        let action = "request its adoption again";
        for _ in 0..ATTEMPTS_MAX {
            let workload = self.read_workload().await?;
            let is_observed = adoption_state(&workload) == AdoptionState::Observed;
            if !is_observed || admission(&workload).is_some() {
                return Ok(());
            }
            let patch = Patch::Merge(adoption_request_patch(&workload));
            let parameters = parameters();
            let patched = self
                .write_workloads
                .patch(&self.workload, &parameters, &patch);
            match patched.await {
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(api_error(action, error)),
                Ok(_) => return Ok(()),
            }
        }
        Err(AdoptError::Conflicts { action })
    }

    /// Waits until the controller confirms that it knows the Workload, so that it does not stop the job later.
    pub(crate) async fn wait_until_observed(&self) -> Result<(), AdoptError> {
        self.wait("the new Workload", |it| match adoption_state(it) {
            AdoptionState::Requested => Ok(false),
            AdoptionState::Observed => Ok(true),
            AdoptionState::None => Err(AdoptError::WorkloadGone),
        })
        .await
    }

    /// Writes the admission. `cluster` has the priority classes.
    pub(crate) async fn admit(
        &self,
        cluster: &ClusterState,
        granted: &Admission,
    ) -> Result<(), AdoptError> {
        let action = "write its admission";
        for _ in 0..ATTEMPTS_MAX {
            let workload = self.read_workload().await?;
            if admission(&workload).is_some() {
                return Ok(());
            }
            let patch = adoption_admission_patch(cluster, &workload, granted.clone(), now_ms());
            let Some(patch) = patch else {
                return Ok(());
            };
            let written = self
                .write_workloads
                .patch_status(&self.workload, &parameters(), &Patch::Merge(&patch))
                .await;
            match written {
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(api_error(action, error)),
                Ok(_) => return Ok(()),
            }
        }
        Err(AdoptError::Conflicts { action })
    }

    /// Sets the label of the job, unless the job has changed; then the Workload is deleted.
    pub(crate) async fn label_job(&self) -> Result<(), AdoptError> {
        let labelled = self.try_label_job().await;
        if let Err(AdoptError::JobChanged(_)) = &labelled {
            self.withdraw().await;
        }
        labelled
    }

    async fn try_label_job(&self) -> Result<(), AdoptError> {
        let action = "label the job";
        for _ in 0..ATTEMPTS_MAX {
            let workload = self.read_workload().await?;
            let granted = admission(&workload).ok_or(AdoptError::WorkloadGone)?;
            let job = self.read_job().await?;
            // The label is set already: from now on the job is in the queue.
            if job.uid == self.job.uid && job.queue == self.job.queue {
                return Ok(());
            }
            check_unchanged(&self.job, &job, granted)?;
            let patch = adoption_label_patch(&job, &self.job.queue);
            let name = self.job.name.name();
            let written = self
                .write_jobs
                .patch(name, &parameters(), &Patch::Merge(&patch))
                .await;
            match written {
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(api_error(action, error)),
                Ok(_) => return Ok(()),
            }
        }
        Err(AdoptError::Conflicts { action })
    }

    /// Waits until the controller confirms that it sees the job with its Workload.
    pub(crate) async fn wait_until_complete(&self) -> Result<(), AdoptError> {
        self.wait("the label of the job", |it| {
            Ok(adoption_state(it) == AdoptionState::None)
        })
        .await
    }

    /// Deletes the Workload, so that it does not hold quota for nothing. Without success the controller deletes it later.
    pub(crate) async fn withdraw(&self) {
        let _ = self.delete_workload().await;
    }

    async fn delete_workload(&self) -> Result<(), AdoptError> {
        let uid = self.read_workload().await?.metadata.uid;
        let parameters = DeleteParams::background().preconditions(Preconditions {
            uid,
            resource_version: None,
        });
        let deleted = self.write_workloads.delete(&self.workload, &parameters);
        let deleted = deleted.await.map(drop);
        deleted.map_err(|error| api_error("delete its Workload", error))
    }

    /// Reads the Workload until `is_reached`.
    async fn wait(
        &self,
        step: &'static str,
        is_reached: impl Fn(&Workload) -> Result<bool, AdoptError>,
    ) -> Result<(), AdoptError> {
        let start = Instant::now();
        loop {
            if is_reached(&self.read_workload().await?)? {
                return Ok(());
            }
            if start.elapsed() >= self.timeout {
                let seconds = self.timeout.as_secs();
                return Err(AdoptError::NotConfirmed { step, seconds });
            }
            sleep(POLL_PAUSE).await;
        }
    }

    async fn read_workload(&self) -> Result<Workload, AdoptError> {
        let read = self.read_workloads.get_opt(&self.workload).await;
        let read = read.map_err(|error| api_error("read its Workload", error))?;
        read.filter(|it| !is_evicted(it))
            .ok_or(AdoptError::WorkloadGone)
    }

    async fn read_job(&self) -> Result<JobView, AdoptError> {
        let action = "read the job";
        let read = self.read_jobs.get_opt(self.job.name.name()).await;
        let read = read.map_err(|error| api_error(action, error))?;
        let job = read.ok_or(AdoptError::JobChanged("been deleted"))?;
        let failed = |reason: String| AdoptError::Failed { action, reason };
        let value: Value = serde_json::to_value(job).map_err(|error| failed(error.to_string()))?;
        parse(&self.job_kinds, self.kind, &value).map_err(failed)
    }
}

/// Errors if a job is not the one that quota was reserved for.
fn check_unchanged(
    planned: &JobView,
    current: &JobView,
    granted: &Admission,
) -> Result<(), AdoptError> {
    let change = if current.uid != planned.uid || current.is_deleted {
        "been deleted"
    } else if current.result.is_some() {
        "finished"
    } else if current.is_suspended {
        "been suspended"
    } else if exceeds(current, granted) {
        "got more pods"
    } else if !current.queue.is_empty() && current.queue != planned.queue {
        "got another queue"
    } else {
        return Ok(());
    };
    Err(AdoptError::JobChanged(change))
}

fn parameters() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 409)
}

fn api_error(action: &'static str, error: Error) -> AdoptError {
    match error {
        Error::Api(status) if matches!(status.code, 401 | 403) => AdoptError::Forbidden {
            action,
            reason: status.message.clone(),
        },
        Error::Api(status) => AdoptError::Failed {
            action,
            reason: status.message.clone(),
        },
        error => AdoptError::Failed {
            action,
            reason: ErrorChain(&error).to_string(),
        },
    }
}

/// The current time, in milliseconds since 1970.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| i64::try_from(it.as_millis()).unwrap_or(i64::MAX))
}
