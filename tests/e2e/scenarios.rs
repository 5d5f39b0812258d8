//! The scenarios: what a user does, and what the cluster says.

mod agreement;
pub mod alone;
mod certificates;
pub mod chart;
mod checked;
mod configuration;
mod control;
mod converting;
mod demo;
mod drills;
mod examples;
mod expressions;
mod filling;
mod foreign;
mod guarded;
mod objects;
mod rights;
mod rules;
mod scheduling;
mod setup;
mod stored;
mod workers;

use std::borrow::Cow;
use std::path::Path;

use crate::lockkeeper::Protocol;
use crate::stage::Stage;

/// One trial. It runs once for each protocol, unless the protocol is nothing to it.
pub struct Scenario {
    pub name: Cow<'static, str>,
    pub run: Run,
    /// The one protocol to run it with.
    pub only: Option<Protocol>,
}

/// What a trial does; it fails by panicking.
type Run = Box<dyn FnOnce(&mut Stage, Protocol) + Send>;

impl Scenario {
    fn new(
        name: impl Into<Cow<'static, str>>,
        run: impl FnOnce(&mut Stage, Protocol) + Send + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            run: Box::new(run),
            only: None,
        }
    }

    fn only(mut self, protocol: Protocol) -> Self {
        self.only = Some(protocol);
        self
    }
}

/// All scenarios; those that need a configuration of their own, and with it
/// another server, come late, and those that need workers last.
pub fn all(root: &Path) -> Vec<Scenario> {
    let mut scenarios = setup::scenarios();
    scenarios.extend(examples::scenarios(root));
    scenarios.extend(expressions::scenarios());
    scenarios.extend(filling::scenarios());
    scenarios.extend(objects::scenarios());
    scenarios.extend(guarded::scenarios());
    scenarios.extend(scheduling::scenarios());
    scenarios.extend(checked::scenarios());
    scenarios.extend(configuration::scenarios());
    scenarios.extend(agreement::scenarios());
    scenarios.extend(stored::scenarios());
    scenarios.extend(rules::scenarios());
    scenarios.extend(foreign::scenarios());
    scenarios.extend(certificates::scenarios());
    scenarios.extend(converting::scenarios());
    scenarios.extend(drills::scenarios());
    scenarios.extend(workers::scenarios());
    scenarios.extend(rights::scenarios());
    scenarios.extend(control::scenarios());
    scenarios.extend(chart::scenarios());
    scenarios.extend(demo::scenarios());
    scenarios.push(setup::stop());
    scenarios
}
