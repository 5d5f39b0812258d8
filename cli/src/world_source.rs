//! The objects that `explain` and `queue` answer from: a cluster, or a dump of one.

pub(crate) mod cluster;
mod collected;
mod json_items;
mod json_objects;
mod queue_objects;
mod read_objects;
pub(crate) mod scheduler_config;

pub(crate) use collected::is_job_kind;
pub(crate) use queue_objects::QueueObjects;
pub(crate) use read_objects::ReadObjects;

use crate::Failure;
use crate::kubeconfig::{Connection, MISSING, connect_as, is_missing};
use crate::live_names;
use crate::manifest_text::read_documents;
use anyhow::{Context, Error, anyhow};
use clap::{Args, ValueEnum};
use cluster::Note;
use collected::Collected;
use json_items::JsonError;
use lockkeeper_api::config::{Compatibility, Config};
use lockkeeper_cluster_state::settings;
use lockkeeper_crdgen::manifests::{FileList, ListedFile};
use lockkeeper_explain::{Project, World, WorldBuilder, WorldSettings};
use scheduler_config::SchedulerConfig;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::runtime;

/// The largest JSON file: some hundred thousand workloads.
const JSON_MAX_BYTES: u64 = 1 << 30;

/// Flags for the source of objects.
#[derive(Debug, Args)]
pub(crate) struct SourceArguments {
    /// Read the objects from files, folders, or `-` for stdin, as `kubectl get -o yaml` and `-o json` write them, instead
    /// of from a cluster
    #[arg(long, value_name = "PATH", conflicts_with_all = ["kubeconfig", "context", "account"])]
    dump: Vec<PathBuf>,

    /// Configuration file of the controller or of Kueue, or the manifest of `kueue-manager-config`, for its settings of
    /// preemption, requeueing and resources without quota
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Flags for a cluster.
#[derive(Debug, Args)]
pub(crate) struct ClusterArguments {
    /// Kubeconfig [default: as kubectl]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME", add = live_names::contexts())]
    pub(crate) context: Option<String>,

    /// Account to impersonate
    #[arg(long = "as", value_name = "ACCOUNT")]
    pub(crate) account: Option<String>,
}

impl ClusterArguments {
    /// Consumes all objects of the cluster that decisions depend on, and returns what the account may not list.
    pub(crate) fn list(
        &self,
        namespace: Option<&str>,
        consume: &mut dyn FnMut(Value),
    ) -> Result<ListedCluster, Failure> {
        self.connected(async |connection| {
            let namespace = namespace.unwrap_or(&connection.namespace).to_owned();
            let notes = cluster::list(&connection.client, &namespace, consume)
                .await
                .with_context(|| format!("API server {}", connection.address))
                .map_err(Failure::Usage)?;
            Ok(ListedCluster { namespace, notes })
        })
    }

    /// Connects to the cluster, and runs `action` until it ends.
    pub(crate) fn connected<T>(
        &self,
        action: impl AsyncFnOnce(Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let (file, context) = (self.kubeconfig.as_deref(), self.context.as_deref());
            let connection = connect_as(file, context, self.account.as_deref())
                .await
                .map_err(Failure::Usage)?;
            action(connection).await
        })
    }
}

/// What is known of a listed cluster beside its objects.
pub(crate) struct ListedCluster {
    /// The namespace of names without one.
    pub(crate) namespace: String,
    /// What the account may not list.
    pub(crate) notes: Vec<Note>,
}

/// The scheduler whose objects and decisions are explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scheduler {
    /// Objects of lockkeeper.dev
    Lockkeeper,
    /// Objects of kueue.x-k8s.io, with the decisions of Kueue
    Kueue,
}

impl Scheduler {
    /// The project of the objects.
    pub(crate) const fn project(self) -> Project {
        match self {
            Self::Lockkeeper => Project::Lockkeeper,
            Self::Kueue => Project::Kueue,
        }
    }
}

/// The objects, and the namespace of names without one.
pub(crate) struct LoadedWorld {
    pub(crate) world: World,
    pub(crate) namespace: Option<String>,
}

impl SourceArguments {
    /// Reads the objects and builds the world.
    pub(crate) fn load(
        &self,
        namespace: Option<&str>,
        scheduler: Option<Scheduler>,
    ) -> Result<LoadedWorld, Failure> {
        self.load_with(namespace, scheduler, |_| Ok(()))
    }

    /// Reads the objects and builds the world. `extend` adds others.
    pub(crate) fn load_with(
        &self,
        namespace: Option<&str>,
        scheduler: Option<Scheduler>,
        extend: impl FnOnce(&mut ReadObjects) -> Result<(), Error>,
    ) -> Result<LoadedWorld, Failure> {
        let mut read = self.read(namespace)?;
        extend(&mut read).map_err(Failure::Usage)?;
        let builder = std::mem::take(&mut read.builder);
        Ok(LoadedWorld {
            world: self.build(builder, scheduler, &read)?,
            namespace: read.namespace,
        })
    }

    /// Reads the objects. Without `namespace`, names without one are in that of the context, and in a dump in any.
    pub(crate) fn read(&self, namespace: Option<&str>) -> Result<ReadObjects, Failure> {
        let mut collected = Collected::default();
        if !self.dump.is_empty() {
            for path in &self.dump {
                collect_path(path, &mut collected).map_err(Failure::Usage)?;
            }
            return collected.into_read_objects(namespace.map(str::to_owned), None);
        }
        if is_missing(self.cluster.kubeconfig.as_deref()) {
            let error = anyhow!("{MISSING}; or set --dump to read the objects from files");
            return Err(Failure::Usage(error));
        }
        let mut add = |object: Value| collected.add(object);
        let listed = self.cluster.list(namespace, &mut add)?;
        for note in listed.notes {
            if note.is_partial {
                collected.builder.mark_partial(note.text);
            } else {
                collected.builder.assume(note.text);
            }
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let now_ms = i64::try_from(now.as_millis()).ok();
        collected.into_read_objects(Some(listed.namespace), now_ms)
    }

    /// Consumes the objects of the dump. Returns false without one: then the cluster is the source.
    pub(crate) fn read_dump(&self, consume: &mut dyn FnMut(Value)) -> Result<bool, Failure> {
        for path in &self.dump {
            read_path(path, consume).map_err(Failure::Usage)?;
        }
        Ok(!self.dump.is_empty())
    }

    /// The cluster.
    pub(crate) const fn cluster(&self) -> &ClusterArguments {
        &self.cluster
    }

    /// The configuration of `--config`.
    pub(crate) fn configuration(&self) -> Result<Option<SchedulerConfig>, Failure> {
        let path = self.config.as_deref();
        let read = path.map(SchedulerConfig::read).transpose();
        read.map_err(Failure::Usage)
    }

    /// Builds the world of objects. `read` has what else the source says.
    pub(crate) fn build(
        &self,
        mut builder: WorldBuilder,
        scheduler: Option<Scheduler>,
        read: &ReadObjects,
    ) -> Result<World, Failure> {
        let is_kueue = is_kueue(&builder, scheduler);
        let used = self.scheduler_config(read, is_kueue)?;
        for assumption in used.assumptions {
            builder.assume(assumption);
        }
        let settings = world_settings(used.config, scheduler, is_kueue, read.now_ms);
        Ok(builder.build(settings))
    }

    /// The configuration of the scheduler: that of `--config`, else that of the dump, else the default.
    pub(crate) fn scheduler_config(
        &self,
        read: &ReadObjects,
        is_kueue: bool,
    ) -> Result<SchedulerConfig, Failure> {
        let given = self.configuration()?;
        let found = || read.kueue_config.clone().filter(|_| is_kueue);
        let used = given.or_else(found);
        Ok(used.unwrap_or_else(|| SchedulerConfig::default_of(is_kueue)))
    }
}

/// Whether the decisions are those of Kueue.
pub(crate) fn is_kueue(builder: &WorldBuilder, scheduler: Option<Scheduler>) -> bool {
    scheduler.map_or(
        builder.has_objects_of(Project::Kueue) && !builder.has_objects_of(Project::Lockkeeper),
        |it| it == Scheduler::Kueue,
    )
}

/// Builds the world of dumps, as `explain --dump` does.
pub(crate) fn load_dump(dump: Vec<PathBuf>) -> Result<World, Failure> {
    let source = SourceArguments {
        dump,
        config: None,
        cluster: ClusterArguments {
            kubeconfig: None,
            context: None,
            account: None,
        },
    };
    Ok(source.load(None, None)?.world)
}

/// The settings of a scheduler with this configuration.
pub(crate) fn world_settings(
    mut config: Config,
    scheduler: Option<Scheduler>,
    is_kueue: bool,
    now_ms: Option<i64>,
) -> WorldSettings {
    if is_kueue {
        config.preemption.compatibility = Some(Compatibility::Kueue);
    }
    WorldSettings {
        options: settings::scheduling_options(&config),
        requeue: settings::requeue_settings(&config),
        excluded_resource_prefixes: config.resources.exclude_prefixes.clone(),
        project: scheduler.map(Scheduler::project),
        now_ms,
    }
}

/// Collects the objects of a file, of the files of a folder, or of standard input for `-`.
fn collect_path(path: &Path, collected: &mut Collected) -> Result<(), Error> {
    for file in files_of(path)? {
        if is_json(&file) {
            let shown = file.display();
            let text = read_json(&file).with_context(|| format!("cannot read {shown}"))?;
            let parts = json_objects::collect(&text, Collected::add);
            let parts = parts.map_err(|error| json_error(&file, &error))?;
            // The text of a large dump needs as much memory as its objects.
            drop(text);
            for part in parts {
                collected.merge(part);
            }
        } else {
            for document in read_documents(&file)? {
                collected.add(document);
            }
        }
    }
    Ok(())
}

/// Consumes the objects of a file, of the files of a folder, or of standard input for `-`.
fn read_path(path: &Path, consume: &mut dyn FnMut(Value)) -> Result<(), Error> {
    for file in files_of(path)? {
        if is_json(&file) {
            let shown = file.display();
            let text = read_json(&file).with_context(|| format!("cannot read {shown}"))?;
            let read = json_objects::for_each(&text, &mut *consume);
            read.map_err(|error| json_error(&file, &error))?;
        } else {
            let documents = read_documents(&file)?;
            documents.into_iter().for_each(&mut *consume);
        }
    }
    Ok(())
}

/// The file, the files of the folder, or `-`.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if path.as_os_str() == "-" {
        return Ok(vec![path.to_owned()]);
    }
    let shown = path.display();
    std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    let listed = FileList::default().list(path).into_iter();
    let files = listed.map(|it| match it {
        ListedFile::File(file) => Ok(file),
        ListedFile::Unreadable { path, reason } => {
            Err(anyhow!("cannot read {}: {reason}", path.display()))
        }
    });
    files.collect()
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "json")
}

fn json_error(path: &Path, error: &JsonError) -> Error {
    anyhow!(
        "{}:{}:{}: {error}",
        path.display(),
        error.line,
        error.column
    )
}

/// Reads a JSON file. Lists of a cluster may exceed the limit of other manifests.
fn read_json(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let length = file.metadata()?.len().min(JSON_MAX_BYTES);
    // A text that grows would need twice its memory.
    let mut text = String::with_capacity(usize::try_from(length).unwrap_or_default());
    let size = file.take(JSON_MAX_BYTES + 1).read_to_string(&mut text)?;
    if u64::try_from(size).unwrap_or(u64::MAX) > JSON_MAX_BYTES {
        let message = format!(
            "larger than {} MiB; split it into smaller files",
            JSON_MAX_BYTES >> 20
        );
        return Err(io::Error::other(message));
    }
    Ok(text)
}
