//! The scenarios: actions of a user, and the responses of the cluster.

mod admission_policies;
mod agreement;
mod built_in_changes;
mod caller_tokens;
mod cel_rules;
mod certificates;
pub mod chart;
mod check_command;
mod cluster_audit;
mod configuration;
mod control;
mod conversion;
mod demo;
mod doctor;
mod examples;
mod failure_drills;
mod kubernetes_objects;
mod kueue_objects;
mod objects;
mod observe_mode;
mod policy_defaults;
pub mod proxy;
mod random_definitions;
mod rbac;
mod rules;
mod scheduling;
mod setup;
mod tenants;
pub mod without_cluster;
mod workers;

use std::borrow::Cow;
use std::path::Path;

use crate::fixture::Fixture;
use crate::lockkeeper::Protocol;

/// One trial. It runs once for each protocol, or for one protocol only.
pub struct Scenario {
    pub name: Cow<'static, str>,
    pub run: Run,
    /// The one protocol that it runs with.
    pub only: Option<Protocol>,
    /// The first minor release of Kubernetes 1 that has what it needs; with an older one it is ignored.
    pub since: Option<u32>,
}

/// The function of a trial; it fails by panicking.
type Run = Box<dyn FnOnce(&mut Fixture, Protocol) + Send>;

impl Scenario {
    fn new(
        name: impl Into<Cow<'static, str>>,
        run: impl FnOnce(&mut Fixture, Protocol) + Send + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            run: Box::new(run),
            only: None,
            since: None,
        }
    }

    fn since(mut self, minor: u32) -> Self {
        self.since = Some(minor);
        self
    }

    fn only(mut self, protocol: Protocol) -> Self {
        self.only = Some(protocol);
        self
    }
}

/// All scenarios. Those with another configuration need another
/// server and come late; those that need workers come last.
pub fn all(root: &Path) -> Vec<Scenario> {
    let mut scenarios = setup::scenarios();
    scenarios.extend(examples::scenarios(root));
    scenarios.extend(cel_rules::scenarios());
    scenarios.extend(policy_defaults::scenarios());
    scenarios.extend(tenants::scenarios());
    scenarios.extend(objects::scenarios());
    scenarios.extend(kubernetes_objects::scenarios());
    scenarios.extend(scheduling::scenarios());
    scenarios.extend(check_command::scenarios());
    scenarios.extend(configuration::scenarios());
    scenarios.extend(agreement::scenarios());
    scenarios.extend(random_definitions::scenarios());
    scenarios.extend(cluster_audit::scenarios());
    scenarios.extend(admission_policies::scenarios());
    scenarios.extend(built_in_changes::scenarios());
    scenarios.extend(doctor::scenarios());
    scenarios.extend(rules::scenarios());
    scenarios.extend(kueue_objects::scenarios());
    scenarios.extend(observe_mode::scenarios());
    scenarios.extend(certificates::scenarios());
    scenarios.extend(caller_tokens::scenarios());
    scenarios.extend(conversion::scenarios());
    scenarios.extend(failure_drills::scenarios());
    scenarios.extend(workers::scenarios());
    scenarios.extend(rbac::scenarios());
    scenarios.extend(control::scenarios());
    scenarios.extend(chart::scenarios());
    scenarios.extend(demo::scenarios());
    scenarios.push(setup::stop());
    scenarios
}
