//! The Jobs of the simulation as jobs of a declared kind.
//!
//! In some runs the controller knows no Jobs. It knows a kind that a `JobKind` declares, whose objects are the Jobs in another
//! shape: their templates are single, in a list or in a map, and the field that suspends them has another path and other values.
//! The API server in memory keeps Jobs, so that users, the controller of Jobs, and all invariants are the same.

use crate::api::merge;
use lockkeeper_controller::job_adapters::{JobKinds, KINDS};
use lockkeeper_controller::{Change, Input, Kind};
use lockkeeper_job_kinds::{DeclaredKind, JobPath};
use lockkeeper_testkit::Rng;
use serde_json::{Map, Value, json};

/// The kind of the simulated Jobs.
const JOB: Kind = Kind::Job(0);

/// The index of the declared kind.
const DECLARED: usize = KINDS.len();

/// The name of the pod set.
const POD_SET: &str = "main";

const SUSPEND_PATHS: [&str; 3] = ["spec.suspend", "spec.runPolicy.suspend", "spec['a.b'].c"];
const TEMPLATE_PATHS: [&str; 2] = ["template", "pod.template"];
const COUNT_PATHS: [&str; 2] = ["replicas", "scale.replicas"];

/// Where the templates of a job are.
#[derive(Clone, Copy, Debug)]
enum Layout {
    Single,
    List,
    Map,
}

/// A declared kind, and the shape of its objects.
#[derive(Clone, Debug)]
pub struct DeclaredJobs {
    layout: Layout,
    suspend: JobPath,
    suspended: Value,
    started: Value,
    /// Below the spec, or with a list or map below the item.
    template: JobPath,
    count: JobPath,
    declaration: Value,
    kinds: JobKinds,
}

impl DeclaredJobs {
    /// The kind of a run; `None` for three of four.
    pub fn of_seed(seed: u64) -> Option<Self> {
        if seed % 4 != 3 {
            return None;
        }
        // Not the generator of the run: the seeds of recorded failures keep their runs.
        let mut dice = Rng::new(seed ^ 0x005e_ed0f_dec1_a4ed);
        let suspend = pick_path(&mut dice, &SUSPEND_PATHS);
        let (suspended, started) = dice
            .pick(&[
                (json!(true), json!(false)),
                (json!("Off"), json!("On")),
                (json!(false), json!(true)),
            ])
            .clone();
        let mut jobs = Self {
            layout: *dice.pick(&[Layout::Single, Layout::List, Layout::Map]),
            suspend,
            suspended,
            started,
            template: pick_path(&mut dice, &TEMPLATE_PATHS),
            count: pick_path(&mut dice, &COUNT_PATHS),
            declaration: Value::Null,
            kinds: JobKinds::default(),
        };
        jobs.declaration = jobs.declaration();
        let declaration = serde_json::from_value(jobs.declaration.clone()).unwrap();
        jobs.kinds
            .declare(DeclaredKind::compile(&declaration).unwrap())
            .unwrap();
        Some(jobs)
    }

    fn declaration(&self) -> Value {
        let (prefix, place) = match self.layout {
            Layout::Single => ("spec.", json!({"name": POD_SET})),
            Layout::List => ("", json!({"forEach": "spec.roles"})),
            Layout::Map => ("", json!({"forEach": "spec.groups"})),
        };
        let count = match self.layout {
            Layout::Single => format!("self.spec.{}", self.count),
            Layout::List => format!("self.spec.roles[0].{}", self.count),
            Layout::Map => format!("self.spec.groups.{POD_SET}.{}", self.count),
        };
        let number = |field: &str| format!("self.?status.?{field}.orValue(0)");
        let condition = |status: &str| {
            format!(
                "self.?status.?conditions.orValue([]).exists(c, c.type == 'Suspended' && c.status == '{status}')"
            )
        };
        let has_no_start = "self.?status.?startTime.orValue('') == ''";
        let left = format!("self.spec.completions - {}", number("succeeded"));
        let mut pod_sets = place;
        merge(
            &mut pod_sets,
            &json!({
                "template": format!("{prefix}{}", self.template),
                "countField": format!("{prefix}{}", self.count),
                "minimum": "int(self.metadata.?annotations[?'lockkeeper.dev/job-min-parallelism'].orValue('0'))",
                "reclaimable": format!("{left} < {count} ? {count} - ({left} < 0 ? 0 : {left}) : 0"),
            }),
        );
        json!({
            "metadata": {"name": "simruns.example.com"},
            "spec": {
                "version": "v1", "kind": "SimRun",
                "suspend": {
                    "path": self.suspend.to_string(), "suspendedValue": self.suspended, "startedValue": self.started,
                },
                "managedBy": {"path": "spec.managedBy", "controller": "kubernetes.io/job-controller"},
                "podSets": [pod_sets],
                "status": {
                    "ready": format!("{} + {} >= {count}", number("ready"), number("succeeded")),
                    "stopped": format!("{} == 0 && ({} || {has_no_start})", number("active"), condition("True")),
                    "started": format!("{} || (!{} && !({has_no_start}))", condition("False"), condition("True")),
                },
            },
        })
    }

    /// The input that declares the kind.
    pub fn declare(&self) -> Input {
        let declaration = serde_json::from_value(self.declaration.clone()).unwrap();
        Input::JobKind(Change::Applied(Box::new(declaration)))
    }

    /// The kinds of jobs of a controller.
    pub const fn kinds(&self) -> &JobKinds {
        &self.kinds
    }

    /// A Job as a job of the declared kind.
    pub fn declared(&self, job: &Value) -> Value {
        let mut object = job.clone();
        object["apiVersion"] = json!("example.com/v1");
        object["kind"] = json!("SimRun");
        let spec = object["spec"].as_object_mut().unwrap();
        let mut item = json!({});
        if let Some(template) = spec.remove("template") {
            merge(&mut item, &self.template.wrap(template));
        }
        if let Some(count) = spec.remove("parallelism") {
            merge(&mut item, &self.count.wrap(count));
        }
        let is_suspended = spec.remove("suspend") == Some(json!(true));
        let value = if is_suspended {
            &self.suspended
        } else {
            &self.started
        };
        merge(&mut object, &self.suspend.wrap(value.clone()));
        let pods = match self.layout {
            Layout::Single => item,
            Layout::List => {
                item["name"] = json!(POD_SET);
                json!({"roles": [item]})
            }
            Layout::Map => json!({"groups": {POD_SET: item}}),
        };
        merge(&mut object["spec"], &pods);
        object
    }

    /// The patch of a Job that does what a patch of the job of the declared kind does.
    pub fn patch_of_job(&self, job: &Value, patch: &Value) -> Value {
        let mut object = self.declared(job);
        let mut out = patch.clone();
        let Some(change) = out.get_mut("spec").map(Value::take) else {
            return out;
        };
        merge(&mut object["spec"], &change);
        let item = match self.layout {
            Layout::Single => &object["spec"],
            Layout::List => &object["spec"]["roles"][0],
            Layout::Map => &object["spec"]["groups"][POD_SET],
        };
        let is_suspended = self.suspend.get(&object) == Some(&self.suspended);
        let after = json!({
            "suspend": is_suspended,
            "parallelism": self.count.get(item),
            "template": self.template.get(item),
        });
        let before = json!({
            "suspend": job["spec"]["suspend"] == true,
            "parallelism": job["spec"]["parallelism"],
            "template": job["spec"]["template"],
        });
        out["spec"] = difference(&before, &after);
        out
    }
}

/// The kind of jobs as the controller knows it.
pub fn known_kind(jobs: Option<&DeclaredJobs>, kind: Kind) -> Kind {
    match jobs {
        Some(_) if kind == JOB => Kind::Job(DECLARED),
        _ => kind,
    }
}

/// The kind of the simulation for one that the controller knows.
pub const fn simulated_kind(kind: usize) -> usize {
    if kind == DECLARED { 0 } else { kind }
}

fn pick_path(dice: &mut Rng, from: &[&str]) -> JobPath {
    let text: &&str = dice.pick(from);
    JobPath::parse(text).unwrap()
}

/// The merge patch from one value to another.
fn difference(before: &Value, after: &Value) -> Value {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else {
        return after.clone();
    };
    let removed = before.keys().filter(|it| !after.contains_key(*it));
    let mut out: Map<String, Value> = removed.map(|it| (it.clone(), Value::Null)).collect();
    for (key, value) in after {
        match before.get(key) {
            Some(known) if known == value => {}
            Some(known) => drop(out.insert(key.clone(), difference(known, value))),
            None => drop(out.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(out)
}
