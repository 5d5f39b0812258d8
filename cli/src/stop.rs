//! `lockkeeper stop` and `lockkeeper resume`: hold a queue or a workload, and let it go on.

use crate::Failure;
use crate::check::cluster_list::is_served;
use crate::kubeconfig::Connection;
use crate::live_names;
use crate::standard_output::print;
use crate::world_source::{ClusterArguments, Scheduler};
use anyhow::{Error, anyhow};
use clap::Args;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use lockkeeper_explain::Project;
use serde_json::{Value, json};

/// The versions of both projects, the newest first.
const VERSIONS: [(Project, &str); 3] = [
    (Project::Lockkeeper, "v1alpha1"),
    (Project::Kueue, "v1beta2"),
    (Project::Kueue, "v1beta1"),
];

/// Flags of `lockkeeper stop`.
#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    #[command(flatten)]
    target: TargetArguments,

    /// Evict the workloads that run, too
    #[arg(long)]
    drain: bool,
}

/// Flags of `lockkeeper resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Debug, Args)]
struct TargetArguments {
    /// clusterqueue/NAME, localqueue/NAME or workload/NAME
    #[arg(value_name = "KIND/NAME", value_parser = Target::parse, add = live_names::stoppable_objects())]
    target: Target,

    /// Namespace of a LocalQueue or Workload [default: that of the context]
    #[arg(long, short, add = live_names::namespaces())]
    namespace: Option<String>,

    #[command(flatten)]
    cluster: ClusterArguments,

    /// Whose object to change [default: that of lockkeeper, if its CRDs are installed]
    #[arg(long, value_name = "WHOSE")]
    scheduler: Option<Scheduler>,

    /// Let the API server validate the change without storing it
    #[arg(long)]
    dry_run: bool,
}

/// The kind of an object that can be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TargetKind {
    ClusterQueue,
    LocalQueue,
    Workload,
}

impl TargetKind {
    fn parse(kind: &str) -> Option<Self> {
        match kind.to_lowercase().as_str() {
            "clusterqueue" | "clusterqueues" | "cq" => Some(Self::ClusterQueue),
            "localqueue" | "localqueues" | "lq" => Some(Self::LocalQueue),
            "workload" | "workloads" | "wl" => Some(Self::Workload),
            _ => None,
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::ClusterQueue => "ClusterQueue",
            Self::LocalQueue => "LocalQueue",
            Self::Workload => "Workload",
        }
    }

    const fn plural(self) -> &'static str {
        match self {
            Self::ClusterQueue => "clusterqueues",
            Self::LocalQueue => "localqueues",
            Self::Workload => "workloads",
        }
    }
}

/// An object on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    kind: TargetKind,
    name: String,
}

impl Target {
    fn parse(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(kind, name)| {
            let kind = TargetKind::parse(kind)?;
            let is_name = !name.is_empty() && !name.contains('/');
            is_name.then(|| Self {
                kind,
                name: name.to_owned(),
            })
        });
        parsed.ok_or_else(|| {
            "expected clusterqueue/NAME, localqueue/NAME or workload/NAME".to_owned()
        })
    }
}

/// Holds a queue, or deactivates a workload.
pub(crate) fn run_stop(arguments: &StopArguments) -> Result<(), Failure> {
    let target = &arguments.target;
    let patch = match (target.target.kind, arguments.drain) {
        (TargetKind::Workload, _) => json!({"spec": {"active": false}}),
        (_, false) => json!({"spec": {"stopPolicy": "Hold"}}),
        (_, true) => json!({"spec": {"stopPolicy": "HoldAndDrain"}}),
    };
    change(target, &patch, "stopped")
}

/// Ends what [`run_stop`] began.
pub(crate) fn run_resume(arguments: &ResumeArguments) -> Result<(), Failure> {
    let target = &arguments.target;
    let patch = match target.target.kind {
        TargetKind::Workload => json!({"spec": {"active": true}}),
        _ => json!({"spec": {"stopPolicy": "None"}}),
    };
    change(target, &patch, "resumed")
}

fn change(arguments: &TargetArguments, patch: &Value, done: &str) -> Result<(), Failure> {
    let cluster = &arguments.cluster;
    let group =
        cluster.connected(async |connection| patch_object(connection, arguments, patch).await)?;
    let Target { kind, name } = &arguments.target;
    let dry_run = if arguments.dry_run {
        " (server dry run)"
    } else {
        ""
    };
    let kind = kind.kind().to_lowercase();
    Ok(print(format!("{kind}.{group}/{name} {done}{dry_run}\n"))?)
}

/// Patches the object, and returns its API group.
async fn patch_object(
    connection: Connection,
    arguments: &TargetArguments,
    patch: &Value,
) -> Result<&'static str, Failure> {
    let (project, version) = served_version(&connection.client, arguments)
        .await
        .map_err(Failure::Usage)?;
    let kind = arguments.target.kind;
    let resource = GroupVersionKind::gvk(project.group(), version, kind.kind());
    let resource = ApiResource::from_gvk_with_plural(&resource, kind.plural());
    let namespace = arguments
        .namespace
        .as_deref()
        .unwrap_or(&connection.namespace);
    let api: Api<DynamicObject> = match kind {
        TargetKind::ClusterQueue => Api::all_with(connection.client, &resource),
        TargetKind::LocalQueue | TargetKind::Workload => {
            Api::namespaced_with(connection.client, namespace, &resource)
        }
    };
    let options = PatchParams {
        dry_run: arguments.dry_run,
        ..PatchParams::default()
    };
    let name = &arguments.target.name;
    match api.patch(name, &options, &Patch::Merge(patch)).await {
        Ok(_) => Ok(project.group()),
        Err(kube::Error::Api(status)) => Err(Failure::Other(anyhow!("{}", status.message))),
        Err(error) => Err(Failure::Other(error.into())),
    }
}

/// The project and the newest version that the cluster serves.
async fn served_version(
    client: &Client,
    arguments: &TargetArguments,
) -> Result<(Project, &'static str), Error> {
    let wanted = arguments.scheduler.map(Scheduler::project);
    for (project, version) in VERSIONS {
        if wanted.is_some_and(|it| it != project) {
            continue;
        }
        let group_version = format!("{}/{version}", project.group());
        if is_served(client, &group_version, arguments.target.kind.plural()).await? {
            return Ok((project, version));
        }
    }
    Err(anyhow!(
        "the cluster has neither lockkeeper's nor Kueue's {}; install one of them",
        arguments.target.kind.kind()
    ))
}

#[cfg(test)]
mod tests {
    use super::{Target, TargetKind};

    #[test]
    fn targets_are_parsed_as_kubectl_does() {
        for (text, kind) in [
            ("clusterqueue/a", TargetKind::ClusterQueue),
            ("CQ/a", TargetKind::ClusterQueue),
            ("LocalQueues/a", TargetKind::LocalQueue),
            ("wl/a", TargetKind::Workload),
        ] {
            let name = "a".to_owned();
            assert_eq!(Target::parse(text), Ok(Target { kind, name }));
        }
        for text in ["a", "clusterqueue/", "job/a", "clusterqueue/a/b", "/a"] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
    }
}
