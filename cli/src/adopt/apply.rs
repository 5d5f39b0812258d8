//! Writes the adoptions of a plan, step by step for all jobs. A later run continues after the last step.
//!
//! 1. Create the Workloads. The controller confirms that it knows them, so that it does not stop the jobs later.
//! 2. Check the quota again: the first steps may take long, and the controller admits other workloads meanwhile.
//! 3. Write the admissions at once into their status.
//! 4. Set the labels of the jobs. The controller confirms that it sees the jobs with their Workloads.

use super::adoption::{AdoptError, Adoption, ApplyOptions, Clients};
use super::listing;
use super::plan::{Plan, Verdict};
use super::progress::Progress;
use super::quota_check::QuotaCheck;
use crate::check::cluster_list::ListError;
use lockkeeper_api::workload::Admission;
use lockkeeper_cluster_state::ClusterState;
use std::io::Write;
use std::mem;

/// A step of all adoptions, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Create,
    Observe,
    Admit,
    Label,
    Complete,
}

/// An adoption that has not failed.
struct OpenAdoption {
    /// The position of the job in the plan.
    position: usize,
    adoption: Adoption,
    /// The admission to write; `None` if an earlier run has written it.
    granted: Option<Admission>,
}

/// Adopts the jobs that fit, and records the results in the plan.
pub(crate) async fn apply<W: Write>(
    plan: &mut Plan,
    clients: &Clients,
    options: &ApplyOptions<'_>,
    progress: &mut Progress<W>,
) {
    let mut run = Run::new(plan, clients, options);
    for step in [Step::Create, Step::Observe] {
        if !run.advance(step, None, progress).await {
            return;
        }
    }
    let cluster = match run.check_again(clients, options).await {
        Ok(cluster) => cluster,
        Err(error) => return run.fail_all(&error),
    };
    if !options.is_partial && !run.plan.is_success() {
        return run.withdraw_all().await;
    }
    for step in [Step::Admit, Step::Label, Step::Complete] {
        if !run.advance(step, cluster.as_ref(), progress).await {
            return;
        }
    }
    for open in run.open {
        run.plan.set_verdict(open.position, Verdict::Adopted);
    }
}

/// The adoptions of a plan.
struct Run<'a> {
    plan: &'a mut Plan,
    open: Vec<OpenAdoption>,
}

impl<'a> Run<'a> {
    fn new(plan: &'a mut Plan, clients: &Clients, options: &ApplyOptions<'_>) -> Self {
        let mut open = Vec::new();
        for (position, planned) in plan.jobs.iter_mut().enumerate() {
            let granted = match &planned.verdict {
                Verdict::Fits(admission) => Some((**admission).clone()),
                Verdict::Reserved => None,
                _ => continue,
            };
            let job = planned.job.take();
            let adoption =
                job.and_then(|job| Adoption::new(planned.name.kind, *job, clients, options));
            open.extend(adoption.map(|adoption| OpenAdoption {
                position,
                adoption,
                granted,
            }));
        }
        Self { plan, open }
    }

    /// Executes a step of all adoptions; those that fail are left out of the next steps. Returns whether to go on.
    async fn advance<W: Write>(
        &mut self,
        step: Step,
        cluster: Option<&ClusterState>,
        progress: &mut Progress<W>,
    ) -> bool {
        let total = self.open.len();
        for (number, open) in (1..).zip(mem::take(&mut self.open)) {
            progress.show(number, total, &open.name(), step.text());
            match open.execute(step, cluster).await {
                Ok(()) => self.open.push(open),
                Err(error) => {
                    let verdict = Verdict::Failed(error.to_string());
                    self.plan.set_verdict(open.position, verdict);
                    if error.is_of_cluster() {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Checks the quota of the adoptions without an admission again, and withdraws those that do not fit any more. Returns
    /// the objects that it was checked with; `None` if there was nothing to check.
    async fn check_again(
        &mut self,
        clients: &Clients,
        options: &ApplyOptions<'_>,
    ) -> Result<Option<ClusterState>, ListError> {
        if self.open.iter().all(|it| it.granted.is_none()) {
            return Ok(None);
        }
        let objects = listing::list_cluster(&clients.reader).await?;
        let mut check = QuotaCheck::new(&objects, options.job_kinds, options.settings);
        for mut open in mem::take(&mut self.open) {
            if let Some(granted) = &mut open.granted {
                match check.admit(open.adoption.kind(), open.adoption.job()) {
                    Ok(admission) => *granted = admission,
                    Err(reason) => {
                        open.adoption.withdraw().await;
                        let reason = format!("its quota was taken meanwhile: {reason}");
                        self.plan
                            .set_verdict(open.position, Verdict::DoesNotFit(reason));
                        continue;
                    }
                }
            }
            self.open.push(open);
        }
        Ok(Some(check.into_cluster()))
    }

    fn fail_all(self, error: &ListError) {
        for open in self.open {
            let verdict = Verdict::Failed(error.to_string());
            self.plan.set_verdict(open.position, verdict);
        }
    }

    /// Deletes the Workloads that have no admission yet.
    async fn withdraw_all(self) {
        for open in self.open.iter().filter(|it| it.granted.is_some()) {
            open.adoption.withdraw().await;
        }
    }
}

impl Step {
    const fn text(self) -> &'static str {
        match self {
            Self::Create => "create Workload",
            Self::Observe => "wait for controller to observe Workload",
            Self::Admit => "write admission",
            Self::Label => "label job",
            Self::Complete => "wait for controller to observe label",
        }
    }
}

impl OpenAdoption {
    /// Namespace, kind and name of the job.
    fn name(&self) -> String {
        let job = &self.adoption.job().name;
        let kind = self.adoption.kind_name().to_lowercase();
        format!("{}/{kind}/{}", job.namespace(), job.name())
    }

    async fn execute(&self, step: Step, cluster: Option<&ClusterState>) -> Result<(), AdoptError> {
        let it = &self.adoption;
        match (step, &self.granted, cluster) {
            (Step::Create, Some(_), _) => it.create_workload().await,
            (Step::Observe, Some(_), _) => it.wait_until_observed().await,
            (Step::Admit, Some(granted), Some(cluster)) => it.admit(cluster, granted).await,
            (Step::Create | Step::Observe | Step::Admit, ..) => Ok(()),
            (Step::Label, ..) => it.label_job().await,
            (Step::Complete, ..) => it.wait_until_complete().await,
        }
    }
}
