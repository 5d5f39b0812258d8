//! The command `policies`.

use super::files::Output;
use super::{Error, ReleaseParser, read_config};
use crate::admission_policies::job_guards::Senders;
use crate::admission_policies::mutating::PolicyWithBinding;
use crate::admission_policies::{default_queue, guards, job_guards, pod_guards, policies};
use crate::files::Document;
use crate::release_features::MUTATING_POLICIES;
use crate::user_rule_dirs::{self, RuleDirs};
use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_api::names::is_dns_label;
use lockkeeper_crd_schema::builtin::Release;
use std::path::PathBuf;

/// Arguments of `policies`.
#[derive(Debug, Args)]
pub struct Policies {
    /// Projects whose kinds are also validated: kueue, koordinator
    ///
    /// Only operations that an enabled rule covers are validated.
    #[arg(long, value_name = "PROJECT", value_delimiter = ',')]
    foreign: Vec<ForeignKinds>,

    /// The configuration file of `lockkeeper serve`
    ///
    /// Its webhook.foreignKinds is added to --foreign, and its rule actions select the policies' actions.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Kubernetes version of the cluster
    ///
    /// Before 1.36 there are no mutating policies: the defaults are omitted, and only the webhook sets them.
    #[arg(long, value_name = "VERSION", default_value_t, value_parser = ReleaseParser)]
    kubernetes_version: Release,

    /// Account of the controller, which alone writes the status of Workloads
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = guards::CONTROLLER_ACCOUNT, value_parser = account)]
    controller: String,

    /// Namespaces where Jobs and JobSets need a queue, by their labels
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = label)]
    queue_required: Vec<(String, String)>,

    /// LocalQueue of new Jobs and JobSets without a queue, in the namespaces of --default-queue-namespaces
    ///
    /// Needs Kubernetes 1.36.
    #[arg(long, value_name = "LOCALQUEUE", value_parser = local_queue, requires = "default_queue_namespaces")]
    default_queue: Option<String>,

    /// Namespaces with the default queue, by their labels
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = label, requires = "default_queue")]
    default_queue_namespaces: Vec<(String, String)>,

    /// Users whose Jobs need no queue there, and that resume Jobs, such as JobSet's controller
    #[arg(long, value_name = "USER", value_delimiter = ',', default_value = guards::JOBSET_ACCOUNT, value_parser = user)]
    queue_exempt: Vec<String>,

    #[command(flatten)]
    rules: RuleDirs,

    #[command(flatten)]
    pub(super) output: Output,
}

impl Policies {
    /// The policies about the sender of a request.
    fn guards(&self) -> Vec<guards::Guard> {
        let not_by_controller = guards::not_by_controller(&self.controller);
        let not_exempt = guards::not_by_users(&self.queue_exempt);
        let senders = Senders {
            not_by_controller: &not_by_controller,
            not_exempt: &not_exempt,
        };
        let mut out = vec![
            guards::workload_guard(&not_by_controller),
            pod_guards::pod_guard(&not_by_controller),
            job_guards::job_guard(&senders),
            job_guards::job_set_guard(&senders),
            job_guards::job_set_job_guard(&senders),
            job_guards::job_pod_guard(&senders),
        ];
        if !self.queue_required.is_empty() {
            out.push(guards::queue_required(
                selector(&self.queue_required),
                &not_exempt,
            ));
            out.push(pod_guards::queue_required(
                selector(&self.queue_required),
                &not_exempt,
            ));
        }
        out
    }

    /// The policy of the default queue, if there is one.
    fn default_queue(&self) -> Option<PolicyWithBinding> {
        let queue = default_queue::queue_literal(self.default_queue.as_ref()?);
        let namespaces = selector(&self.default_queue_namespaces);
        let not_exempt = guards::not_by_users(&self.queue_exempt);
        Some(default_queue::default_queue(
            namespaces,
            &queue,
            &not_exempt,
        ))
    }
}

fn selector(labels: &[(String, String)]) -> LabelSelector {
    LabelSelector {
        match_labels: Some(labels.iter().cloned().collect()),
        match_expressions: None,
    }
}

/// The documents of `policies`.
pub(super) fn policy_documents(arguments: &Policies) -> Result<Vec<Document>, Error> {
    let (config, settings) = read_config(
        arguments.config.as_deref(),
        &user_rule_dirs::compile(&arguments.rules.pages()?)?,
    )?;
    let mut foreign_kinds = config.webhook.foreign_kinds;
    foreign_kinds.extend(&arguments.foreign);
    let mut policies = policies(&foreign_kinds, &settings)?;
    if arguments.kubernetes_version < MUTATING_POLICIES {
        policies.mutating.clear();
        if arguments.default_queue.is_some() {
            return Err(Error::DefaultQueueUnsupported(arguments.kubernetes_version));
        }
    }
    let mut out = Vec::new();
    for (policy, bindings) in &policies.validating {
        let name = policy.metadata.name.as_deref().unwrap_or_default();
        out.push(Document::from_object(format!("{name}.yaml"), policy)?);
        for binding in bindings {
            let name = binding.metadata.name.as_deref().unwrap_or_default();
            out.push(Document::from_object(
                format!("{name}-binding.yaml"),
                binding,
            )?);
        }
    }
    for (policy, binding) in &arguments.guards() {
        let name = policy.metadata.name.as_deref().unwrap_or_default();
        out.push(Document::from_object(format!("{name}.yaml"), policy)?);
        let file = format!("{name}-binding.yaml");
        out.push(Document::from_object(file, binding)?);
    }
    let default_queue = arguments.default_queue();
    for (policy, binding) in policies.mutating.iter().chain(&default_queue) {
        let name = policy.metadata.name.as_deref().unwrap_or_default();
        out.push(Document::from_object(format!("{name}.yaml"), policy)?);
        out.push(Document::from_object(
            format!("{name}-binding.yaml"),
            binding,
        )?);
    }
    Ok(out)
}

/// Checks `NAMESPACE/NAME` of a service account.
pub(super) fn account(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_dns_label(namespace) && name.split('.').all(is_dns_label) => {
            Ok(text.to_owned())
        }
        _ => Err(format!(
            "give the namespace and the name of the ServiceAccount, as in {}",
            guards::CONTROLLER_ACCOUNT
        )),
    }
}

/// Checks the name of a LocalQueue, which becomes a string in CEL.
fn local_queue(text: &str) -> Result<String, String> {
    if is_dns_label(text) {
        Ok(text.to_owned())
    } else {
        Err("give the name of a LocalQueue, such as main".to_owned())
    }
}

/// Parses a label of a namespace.
fn label(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = parts.ok_or("give a label and its value, as in team=research")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Checks the name of a user, which becomes a string in CEL.
fn user(text: &str) -> Result<String, String> {
    if text.contains(['\'', '\\']) || text.chars().any(char::is_control) {
        return Err("give the name of a user, such as that of a ServiceAccount".to_owned());
    }
    Ok(text.to_owned())
}
