//! Selects a workload by its name, or by its job.

use crate::error::SelectionError;
use crate::identity::queue_label;
use crate::world::World;
use lockkeeper_api::Workload;

/// A workload as named on the command line: `NAME` or `KIND/NAME`, with a namespace if it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// The kind of the job in lower case; `None` for a Workload.
    kind: Option<String>,
    name: String,
    namespace: Option<String>,
}

impl Selector {
    /// Parses an argument. Kinds are in any case, and in the singular or plural.
    ///
    /// # Errors
    ///
    /// [`SelectionError::Invalid`] without a name.
    pub fn parse(argument: &str, namespace: Option<&str>) -> Result<Self, SelectionError> {
        let (kind, name) = match argument.split_once('/') {
            Some((kind, name)) => (Some(singular(kind)), name),
            None => (None, argument),
        };
        let is_valid = !name.is_empty() && !name.contains('/') && kind.as_deref() != Some("");
        if !is_valid {
            return Err(SelectionError::Invalid(argument.to_owned()));
        }
        let is_workload = |kind: &String| ["workload", "wl", "lkwl"].contains(&kind.as_str());
        Ok(Self {
            kind: kind.filter(|it| !is_workload(it)),
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
        })
    }

    fn is_in_namespace(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|it| it == namespace)
    }

    fn selects(&self, workload: &Workload) -> bool {
        let metadata = &workload.metadata;
        if !self.is_in_namespace(metadata.namespace.as_deref().unwrap_or_default()) {
            return false;
        }
        let Some(kind) = &self.kind else {
            return metadata.name.as_deref() == Some(&self.name);
        };
        let owners = metadata.owner_references.iter().flatten();
        let mut owners = owners.filter(|it| it.kind.to_lowercase() == *kind);
        owners.any(|it| it.name == self.name)
    }
}

impl World {
    /// The key of the selected workload.
    ///
    /// # Errors
    ///
    /// [`SelectionError`]: there is none, or there are several.
    pub fn find(&self, selector: &Selector) -> Result<&str, SelectionError> {
        let mut found: Vec<(&str, &Workload)> = Vec::new();
        for (key, workload) in &self.workloads {
            if selector.selects(workload) {
                found.push((key, workload));
            }
        }
        match found.as_slice() {
            [] => Err(self.not_found(selector)),
            [(key, _)] => Ok(key),
            several => {
                let mut namespaces: Vec<String> =
                    several.iter().map(|(_, it)| namespace_of(it)).collect();
                namespaces.dedup();
                // A job that was created again may leave its former Workload for a while: the newest counts.
                if namespaces.len() > 1 {
                    let name = selector.name.clone();
                    return Err(SelectionError::Ambiguous { name, namespaces });
                }
                let newest = several
                    .iter()
                    .max_by_key(|(_, it)| it.metadata.creation_timestamp.clone().map(|it| it.0));
                newest
                    .map(|(key, _)| *key)
                    .ok_or_else(|| self.not_found(selector))
            }
        }
    }

    fn not_found(&self, selector: &Selector) -> SelectionError {
        let place = selector
            .namespace
            .as_deref()
            .map(|it| format!(" in namespace {it}"));
        let Some(kind) = &selector.kind else {
            return SelectionError::NoWorkload {
                name: selector.name.clone(),
                place: place.unwrap_or_default(),
                near: self.near(selector),
            };
        };
        let mut jobs = self.jobs.iter().filter(|(key, _)| {
            key.kind == *kind
                && key.name == selector.name
                && selector.is_in_namespace(&key.namespace)
        });
        let reason = match jobs.next() {
            None => format!(
                "no Workload has such an owner{}, and the job is not in the input",
                place.unwrap_or_default()
            ),
            Some((_, facts)) => match &facts.queue {
                None => format!(
                    "it names no queue; set the label {}",
                    queue_label(self.project)
                ),
                Some(queue) => format!(
                    "its label names the queue {queue}, and the controller has not created a Workload yet; see the events of the job and the log of the controller"
                ),
            },
        };
        let job = format!("{kind}/{}", selector.name);
        SelectionError::NoWorkloadOfJob { job, reason }
    }

    /// A hint: the name in another namespace, or a workload whose name begins with the given one.
    fn near(&self, selector: &Selector) -> String {
        let mut elsewhere = self
            .workloads
            .values()
            .filter(|it| it.metadata.name.as_deref() == Some(&selector.name));
        if let Some(found) = elsewhere.next() {
            return format!("; there is one in namespace {}", namespace_of(found));
        }
        let mut owners = self
            .workloads
            .values()
            .filter(|it| selector.is_in_namespace(&namespace_of(it)))
            .flat_map(|it| it.metadata.owner_references.iter().flatten());
        if let Some(owner) = owners.find(|it| it.name == selector.name) {
            return format!(
                "; did you mean {}/{}?",
                owner.kind.to_lowercase(),
                owner.name
            );
        }
        let name = |it: &Workload| it.metadata.name.clone().unwrap_or_default();
        let mut all = self
            .workloads
            .values()
            .filter(|it| selector.is_in_namespace(&namespace_of(it)));
        let near = all.find(|it| name(it).contains(&selector.name));
        near.map(|it| format!("; did you mean {}?", name(it)))
            .unwrap_or_default()
    }
}

fn namespace_of(workload: &Workload) -> String {
    workload.metadata.namespace.clone().unwrap_or_default()
}

/// The kind in lower case and singular: `Jobs` is `job`.
fn singular(kind: &str) -> String {
    let kind = kind.to_lowercase();
    // `jobs.batch` names the group as kubectl does.
    let kind = kind.split('.').next().unwrap_or_default();
    kind.strip_suffix('s').unwrap_or(kind).to_owned()
}
