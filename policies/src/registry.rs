//! The list of rules, and the webhook registrations they need.

mod user_rules;

use crate::admission_policy;
use crate::cel_defaults::CelDefault;
use crate::decode_error;
use crate::kinds::{self, KindVisitor};
use crate::lossy_conversion;
use crate::rule::{Layer, Operation, Rule, RuleInfo};
use crate::schema;
use crate::settings::Settings;
use crate::suppression_rule;
use crate::validated_kind::{ValidatedKind, WebhookScope};
use lockkeeper_api::config::{Config, ForeignKinds};
use lockkeeper_api::labels;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// What needs the objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededBy {
    /// Built-in rules and defaults, and perhaps user rules.
    Rules,
    /// Only user rules. Then every object of the kind is sent, and [`Registration::namespaced`] is not known.
    UserRules,
    /// A `JobKind` declares the kind: the webhook suspends its new jobs.
    JobKind,
}

/// The requests that the API server sends to the webhook for one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The kind; empty for one that a `JobKind` declares.
    pub kind: String,
    /// The plural, as in a URL.
    pub plural: String,
    /// Whether the kind is namespaced.
    pub namespaced: bool,
    /// Whether the kind is lockkeeper's own.
    pub own: bool,
    /// The project of the kind, if it is registered only when the configuration enables that project.
    pub foreign: Option<ForeignKinds>,
    /// What needs the kind.
    pub needed_by: NeededBy,
    /// The labels of which an object must carry one; none selects all objects.
    pub selected_by: &'static [&'static str],
    /// Those of which an object must carry one to be sent for defaults.
    pub defaults_selected_by: &'static [&'static str],
    /// The operations with rules.
    pub validated_on: BTreeSet<Operation>,
    /// The operations with defaults.
    pub defaulted_on: BTreeSet<Operation>,
    /// The defaults that the API server can set with CEL.
    pub cel_defaults: &'static [CelDefault],
}

/// The configuration names a rule that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRule {
    /// The id in the configuration.
    pub id: String,
    /// The configuration key that contains the id.
    pub key: String,
}

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, key } = self;
        if crate::user_rules::is_user_id(id) {
            return write!(
                f,
                "{key}: there is no rule {id:?}; load its page with --rules"
            );
        }
        write!(f, "{key}: {}", unknown_rule_message(id))
    }
}

impl std::error::Error for UnknownRule {}

/// Every rule, by kind and id. A rule for several kinds is listed once per kind.
#[must_use]
pub fn all() -> Vec<RuleInfo> {
    let mut out = vec![decode_error::info()];
    out.extend(schema::rule_infos());
    out.push(suppression_rule::info());
    out.push(lossy_conversion::info());
    out.push(admission_policy::info());
    kinds::visit(&mut RuleInfos(&mut out));
    out
}

/// The rule with this id.
#[must_use]
pub fn find(id: &str) -> Option<RuleInfo> {
    all().into_iter().find(|rule| rule.id == id)
}

/// The least similarity of a name that is suggested for an unknown one.
const SIMILARITY_MIN: f64 = 0.8;

/// The error message for an unknown rule, with the most similar id or name.
#[must_use]
pub fn unknown_rule_message(name: &str) -> String {
    let rules = all();
    let known_names = rules.iter().flat_map(|rule| [rule.id, rule.name]);
    let similarity = |it: &str| strsim::jaro_winkler(&name.to_lowercase(), &it.to_lowercase());
    let scored = known_names.map(|it| (similarity(it), it));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = match best {
        Some((score, name)) if score >= SIMILARITY_MIN => format!("; did you mean {name}?"),
        _ => ";".to_owned(),
    };
    format!("there is no rule {name:?}{hint} `lockkeeper rules` lists them")
}

/// The settings of a configuration without user rules.
///
/// # Errors
///
/// If an action or an exception names an unknown rule.
pub fn settings(config: &Config) -> Result<Settings, UnknownRule> {
    settings_with(config, Arc::default())
}

/// The settings of a configuration with these user rules. No exception expires until [`Settings::with_time`]
/// sets a time.
///
/// # Errors
///
/// If an action or an exception names an unknown rule.
pub fn settings_with(
    config: &Config,
    rules: Arc<crate::user_rules::UserRules>,
) -> Result<Settings, UnknownRule> {
    let given = &config.rules;
    // `all` builds the whole list, so it is called once for all keys.
    let ids = all().into_iter().map(|it| it.id).collect();
    let known = RuleLookup { ids, rules: &rules };
    known.check_all(given.actions.keys(), "rules.actions")?;
    for (namespace, given) in &given.namespaces {
        let key = format!("rules.namespaces.{namespace}.actions");
        known.check_all(given.actions.keys(), &key)?;
    }
    for (place, given) in given.exceptions.iter().enumerate() {
        let key = format!("rules.exceptions[{place}].rules");
        known.check_all(given.rules.iter(), &key)?;
    }
    Ok(Settings::new(config, rules))
}

/// The ids of all rules, built-in rules and user rules.
struct RuleLookup<'a> {
    ids: BTreeSet<&'static str>,
    rules: &'a crate::user_rules::UserRules,
}

impl RuleLookup<'_> {
    /// Errors for the first unknown id.
    fn check_all<'a>(
        &self,
        mut ids: impl Iterator<Item = &'a String>,
        key: &str,
    ) -> Result<(), UnknownRule> {
        let is_known = |id: &str| self.ids.contains(id) || self.rules.iter().any(|it| it.id == id);
        match ids.find(|id| !is_known(id)) {
            None => Ok(()),
            Some(id) => Err(UnknownRule {
                id: id.clone(),
                key: key.to_owned(),
            }),
        }
    }
}

/// The rules that these settings relax or make exceptions from, although CRDs that were generated without these
/// settings still enforce them.
#[must_use]
pub fn enforced_by_schema(settings: &Settings) -> BTreeSet<&'static str> {
    let in_schema = |rule: &RuleInfo| {
        let mut layers = rule.layers.iter();
        rule.group == lockkeeper_api::GROUP
            && layers.any(|it| matches!(it, Layer::Schema(cel_rules) if !cel_rules().is_empty()))
    };
    let rules = all().into_iter().filter(in_schema);
    let relaxed = rules.filter(|rule| !settings.is_enforced_everywhere(rule.id, rule.action));
    relaxed.map(|rule| rule.id).collect()
}

/// The registrations of all kinds: the [`built_in`] ones, and those for enabled user rules.
#[must_use]
pub fn registrations(wanted: &BTreeSet<ForeignKinds>, settings: &Settings) -> Vec<Registration> {
    let mut out = built_in(wanted, settings);
    user_rules::add_registrations(&mut out, settings);
    out
}

/// The registrations for built-in rules: lockkeeper's kinds and those of Kubernetes, and the kinds of the wanted
/// projects. Kubernetes' Workload and PodGroup have none: the API server enforces all their rules.
///
/// A rule that is enabled while the server runs may need a kind that is not registered.
#[must_use]
pub fn built_in(wanted: &BTreeSet<ForeignKinds>, settings: &Settings) -> Vec<Registration> {
    let mut out = Registrations::collect(WebhookScope::Always, settings);
    for kinds in wanted {
        let all = foreign_registrations(*kinds, settings);
        // Without an enabled rule the API server need not call the webhook for the kind.
        out.extend(all.into_iter().filter(|it| !it.validated_on.is_empty()));
    }
    out
}

/// The registration of a kind that a `JobKind` declares: its new jobs with the queue label are suspended. With previews the
/// webhook also says what the controller will do with them.
#[must_use]
pub fn declared(group: &str, version: &str, plural: &str, has_previews: bool) -> Registration {
    let created = || BTreeSet::from([Operation::Create]);
    Registration {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: String::new(),
        plural: plural.to_owned(),
        namespaced: true,
        own: false,
        foreign: None,
        needed_by: NeededBy::JobKind,
        selected_by: &[labels::QUEUE_NAME],
        defaults_selected_by: &[labels::QUEUE_NAME],
        validated_on: if has_previews {
            created()
        } else {
            BTreeSet::new()
        },
        defaulted_on: created(),
        cel_defaults: &[],
    }
}

/// The kinds of another project, including those without an enabled rule.
fn foreign_registrations(kinds: ForeignKinds, settings: &Settings) -> Vec<Registration> {
    Registrations::collect(WebhookScope::Foreign(kinds), settings)
}

/// Every kind that can be registered, whatever the configuration.
#[must_use]
pub fn known_registrations() -> Vec<Registration> {
    let settings = Settings::default();
    let own = registrations(&BTreeSet::new(), &settings);
    let foreign = ForeignKinds::ALL.map(|kinds| foreign_registrations(kinds, &settings));
    own.into_iter()
        .chain(foreign.into_iter().flatten())
        .collect()
}

struct RuleInfos<'a>(&'a mut Vec<RuleInfo>);

impl KindVisitor for RuleInfos<'_> {
    fn kind<T: ValidatedKind>(&mut self) {
        self.0
            .extend(T::rules().iter().map(|rule: &Rule<T>| RuleInfo {
                id: rule.id,
                name: rule.name,
                group: T::group(&()).into_owned(),
                kind: T::kind(&()).into_owned(),
                since: rule.since,
                action: rule.action,
                covers: rule.covers,
                layers: rule.layers,
                operations: rule.check.operations(),
                ratchets: T::RATCHETS,
                doc: rule.doc,
            }));
    }
}

/// Collects the registrations of the kinds with one scope.
struct Registrations<'a> {
    scope: WebhookScope,
    settings: &'a Settings,
    all: Vec<Registration>,
}

impl Registrations<'_> {
    fn collect(scope: WebhookScope, settings: &Settings) -> Vec<Registration> {
        let mut visitor = Registrations {
            scope,
            settings,
            all: Vec::new(),
        };
        kinds::visit(&mut visitor);
        visitor.all
    }
}

impl KindVisitor for Registrations<'_> {
    fn kind<T: ValidatedKind>(&mut self) {
        if T::WEBHOOK != self.scope {
            return;
        }
        self.all.push(match self.scope {
            WebhookScope::Foreign(kinds) => Registration {
                foreign: Some(kinds),
                ..foreign_registration::<T>(self.settings)
            },
            WebhookScope::Always | WebhookScope::Never => registration::<T>(),
        });
    }
}

/// The registration of a kind with its own webhook: only operations with an enabled rule, and no defaults, which
/// that webhook sets.
fn foreign_registration<T: ValidatedKind>(settings: &Settings) -> Registration {
    let rules = T::rules().iter();
    let on = rules.filter(|rule| settings.is_on(rule.id, rule.action));
    let operations = on.flat_map(|rule| rule.check.operations());
    Registration {
        validated_on: operations.copied().collect(),
        defaulted_on: BTreeSet::new(),
        cel_defaults: &[],
        ..registration::<T>()
    }
}

fn registration<T: ValidatedKind>() -> Registration {
    let operations = T::rules().iter().flat_map(|rule| rule.check.operations());
    Registration {
        group: T::group(&()).into_owned(),
        version: T::version(&()).into_owned(),
        kind: T::kind(&()).into_owned(),
        plural: T::plural(&()).into_owned(),
        namespaced: T::NAMESPACED,
        own: T::OWN,
        foreign: None,
        needed_by: NeededBy::Rules,
        selected_by: T::SELECTED_BY,
        defaults_selected_by: T::DEFAULTS_SELECTED_BY,
        validated_on: operations.copied().collect(),
        defaulted_on: T::DEFAULTED_ON.iter().copied().collect(),
        cel_defaults: T::CEL_DEFAULTS,
    }
}

#[cfg(test)]
mod tests;
