//! A preview equals what the controller then does.

use crate::fields::{condition_is_true, list, object_key, text, uid};
use crate::jobs::JOB;
use crate::objects::{self, NAMESPACE};
use crate::simulation::Simulation;
use lockkeeper_controller::job_adapters::JobKinds;
use lockkeeper_controller::preview::{Preview, PreviewSettings, PreviewState, submitted_workload};
use lockkeeper_controller::{Input, Kind, ObjectKey};
use lockkeeper_preemption::Damping;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The most cycles until the state of a preview is settled.
const CYCLES_MAX: usize = 1_000;

/// The time in which the controller decides on a new job, in milliseconds.
const DECISION_MAX_MS: i64 = 60_000;

/// What the controller does first with a new job.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The flavors of its admission.
    Admitted(BTreeSet<String>),
    /// The number of workloads that it preempts.
    Preempts(usize),
    Waits,
}

/// What decisions on other workloads depend on.
#[derive(Clone, Default, PartialEq, Eq)]
struct QuotaStatus {
    admission: Value,
    conditions: [bool; 4],
}

impl QuotaStatus {
    fn of(workload: &Value) -> Self {
        let conditions = ["QuotaReserved", "Evicted", "Finished", "PodsReady"];
        Self {
            admission: workload["status"]["admission"].clone(),
            conditions: conditions.map(|it| condition_is_true(workload, it)),
        }
    }
}

/// A comparison of a preview with what the controller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    Starts,
    Preempts,
    Waits,
    Never,
    /// Not compared: another workload has changed before the controller decided.
    Interrupted,
    /// Not compared: damping remembers in memory which preemptions the controller has made, and a preview that has just
    /// started would make them again.
    Damped,
}

impl Comparison {
    /// Those in which the controller has decided.
    pub const COMPARED: [Self; 4] = [Self::Starts, Self::Preempts, Self::Waits, Self::Never];
}

impl Simulation {
    /// Creates a job when nothing changes any more, and compares its preview with what the controller does first.
    pub fn check_preview(&mut self) -> Result<Comparison, String> {
        let name = self.new_name("preview");
        let mut job = objects::job(&mut self.rng, &name);
        job["metadata"]["annotations"]["fate"] = json!("forever");
        job["spec"]["suspend"] = json!(true);
        let spec = job["spec"].as_object_mut().unwrap();
        spec.remove("managedBy");
        let metadata = job["metadata"].as_object_mut().unwrap();
        metadata.remove("ownerReferences");
        self.log(|| format!("user creates {job} with a preview"));
        let key = ObjectKey::new(NAMESPACE, &name);
        let mut state = self.preview_state();
        if state.has_unconfirmed_decisions() {
            // The controller has nothing left to decide.
            return if self.settings.options.damping == Damping::On {
                Ok(Comparison::Damped)
            } else {
                Err(format!(
                    "a preview decides more than the controller: {state:?}"
                ))
            };
        }
        let before = self.api.all(Kind::Workload);
        let before: BTreeMap<ObjectKey, QuotaStatus> = before
            .map(|(name, it)| (name.clone(), QuotaStatus::of(it)))
            .collect();
        let begin_version = self.api.version();
        self.create_given_job(&key, job);
        let job = self.api.get(JOB, &key).unwrap();
        let submitted = submitted_workload(&JobKinds::default(), (**job).clone(), self.api.now_ms);
        let submitted = submitted.ok_or("the job has no preview")?;
        let preview = state.preview(self.api.now_ms, submitted).unwrap();
        self.log(|| format!("preview: {preview:?}"));
        let job_uid = uid(job).to_owned();
        self.run_until_quiescent(DECISION_MAX_MS)?;
        let (outcome, is_interrupted) = self.first_outcome(&job_uid, begin_version, before);
        let (is_equal, comparison) = match &preview {
            Preview::Starts { flavors, .. } => {
                let expected = Outcome::Admitted(flavors.iter().cloned().collect());
                (outcome == expected, Comparison::Starts)
            }
            Preview::Preempts {
                in_namespace,
                elsewhere,
            } => {
                let expected = Outcome::Preempts(in_namespace + elsewhere);
                (outcome == expected, Comparison::Preempts)
            }
            Preview::Waits { .. } => (outcome == Outcome::Waits, Comparison::Waits),
            Preview::Never { .. } => (outcome == Outcome::Waits, Comparison::Never),
        };
        if is_equal {
            return Ok(comparison);
        }
        if is_interrupted && outcome == Outcome::Waits {
            return Ok(Comparison::Interrupted);
        }
        Err(format!("preview of {name}: {preview:?}, but {outcome:?}"))
    }

    fn preview_state(&self) -> PreviewState {
        let settings = PreviewSettings {
            options: self.settings.options.clone(),
            requeue: self.settings.requeue.clone(),
            excluded_resource_prefixes: self.settings.excluded_resource_prefixes.clone(),
        };
        let now_ms = self.api.now_ms;
        let mut state = PreviewState::new(settings);
        for kind in Kind::FIXED {
            for (name, object) in self.api.all(kind) {
                let input = Input::applied(kind, name.clone(), (**object).clone());
                state.handle_input(now_ms, input);
            }
            state.handle_input(now_ms, Input::Listed(kind));
        }
        assert!(state.is_synced());
        assert!(
            state.settle(now_ms, CYCLES_MAX),
            "the preview never settles"
        );
        state
    }

    /// What the controller did first with a job after this version, before another workload changed; and whether another
    /// workload, which it does not preempt, has changed before.
    fn first_outcome(
        &self,
        job_uid: &str,
        begin_version: u64,
        mut before: BTreeMap<ObjectKey, QuotaStatus>,
    ) -> (Outcome, bool) {
        let is_own = |it: &Value| {
            let owners = list(it, "/metadata/ownerReferences");
            owners.iter().any(|it| text(it, "/uid") == job_uid)
        };
        let log = self.api.log(Kind::Workload).iter();
        let events = log.filter(|it| it.version > begin_version);
        let own = events.clone().filter_map(|it| it.object.as_ref());
        let own = own.filter(|it| is_own(it));
        let names: BTreeSet<String> = own.clone().map(|it| object_key(it).to_string()).collect();
        let own: BTreeSet<&str> = own.map(|it| uid(it)).collect();
        let preemptions = self.invariants.preemptions.iter();
        let preemptions = preemptions.filter(|it| own.contains(it.preemptor.as_str()));
        let victims: BTreeSet<&ObjectKey> = preemptions.map(|it| &it.victim).collect();
        for event in events {
            let object = event.object.as_deref();
            if let Some(workload) = object.filter(|it| is_own(it)) {
                if condition_is_true(workload, "QuotaReserved") {
                    return (Outcome::Admitted(flavors(workload)), false);
                }
                continue;
            }
            if victims.contains(&event.name) {
                // A later cycle may select further victims.
                let processes = self.processes.iter();
                let of_first = processes
                    .flat_map(|it| {
                        names
                            .iter()
                            .filter_map(|name| it.decision_log.first_victims(name))
                    })
                    .next();
                let count = of_first.unwrap_or(victims.len());
                return (Outcome::Preempts(count), false);
            }
            let status = object.map(QuotaStatus::of).unwrap_or_default();
            let last = before.insert(event.name.clone(), status.clone());
            if last.is_some_and(|it| it != status) {
                return (Outcome::Waits, true);
            }
        }
        (Outcome::Waits, false)
    }
}

/// The flavors of a workload's admission.
fn flavors(workload: &Value) -> BTreeSet<String> {
    let assignments = list(workload, "/status/admission/podSetAssignments").iter();
    let flavors = assignments.filter_map(|it| it["flavors"].as_object());
    let flavors = flavors.flat_map(|it| it.values()).filter_map(Value::as_str);
    flavors.map(str::to_owned).collect()
}
