//! Placeholders in an object, which Helm replaces.

use lockkeeper_crd_schema::builtin::Release;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Display;

/// The prefix of each mark. No object has a text that begins with it.
const MARK: &str = "hole.chart.lockkeeper.dev/";

/// The rest of the marks: of conditions, of their end, and of an empty list.
const WHILE_PREFIX: &str = "while=";
const END: &str = "end";
const UNLESS_PREFIX: &str = "unless=";
const EMPTY: &str = "empty";
const WITH_CONTROLLER: &str = "with-controller";

/// The start of an action of a template.
const ACTION: &str = "{{";

/// A template that prints the start of an action.
const ESCAPED: &str = r#"{{ "{{" }}"#;

/// The id of a rule, and its declared action.
pub(super) type RuleDefault = (&'static str, &'static str);

/// A placeholder in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placeholder {
    /// The labels of the chart, among other labels.
    Labels,
    /// The annotation that keeps an object when the release is uninstalled.
    KeepPolicy,
    /// The annotation that makes cert-manager inject the CA bundle.
    CertManager,
    /// The CA bundle, if it is given. Otherwise the field is absent, and an upgrade keeps the injected one.
    CaBundle,
    /// The namespace of the release.
    Namespace,
    /// The failure policy for other projects' kinds.
    ForeignFailurePolicy,
    /// The failure policy for Jobs and JobSets.
    JobsFailurePolicy,
    /// The operations of the rules that are on.
    Operations,
    /// The name of the webhook of a declared kind.
    DeclaredName,
    /// The list of the group of a declared kind.
    DeclaredGroups,
    /// The list of the version of a declared kind.
    DeclaredVersions,
    /// The list of the plural of a declared kind.
    DeclaredPlurals,
    /// The condition that a request is not from the controller.
    NotByController,
    /// The condition that a request is from no user whose jobs need no queue.
    NotByExemptUser,
    /// The selector of the namespaces that require a queue.
    QueueRequiredNamespaces,
    /// The CEL string of the name of the default queue.
    DefaultQueue,
    /// The selector of the namespaces with a default queue.
    DefaultQueueNamespaces,
}

/// The replacement of a placeholder.
enum Replacement {
    /// Text in the place of a value.
    Inline(&'static str),
    /// Lines in the place of a key. `INDENT` is their indentation.
    Lines(&'static [&'static str]),
}

impl Placeholder {
    const ALL: [Self; 17] = [
        Self::Labels,
        Self::KeepPolicy,
        Self::CertManager,
        Self::CaBundle,
        Self::Namespace,
        Self::ForeignFailurePolicy,
        Self::JobsFailurePolicy,
        Self::Operations,
        Self::DeclaredName,
        Self::DeclaredGroups,
        Self::DeclaredVersions,
        Self::DeclaredPlurals,
        Self::NotByController,
        Self::NotByExemptUser,
        Self::QueueRequiredNamespaces,
        Self::DefaultQueueNamespaces,
        Self::DefaultQueue,
    ];

    /// The mark in the object: a value, or a key.
    pub(super) fn mark(self) -> String {
        format!("{MARK}{self:?}")
    }

    /// Adds the placeholder to the map at this path, if there is one.
    pub(super) fn put(self, object: &mut Value, path: &[&str]) {
        let map = path.iter().try_fold(object, |it, key| it.get_mut(key));
        if let Some(map) = map.and_then(Value::as_object_mut) {
            map.insert(self.mark(), Value::Bool(true));
        }
    }

    fn replacement(self) -> Replacement {
        match self {
            Self::Labels => {
                Replacement::Lines(&[r#"{{- include "lockkeeper.labels" . | nindent INDENT }}"#])
            }
            Self::KeepPolicy => Replacement::Lines(&[
                "{{- if .Values.crds.keep }}",
                "annotations:",
                "  helm.sh/resource-policy: keep",
                "{{- end }}",
            ]),
            Self::CertManager => Replacement::Lines(&[
                r#"{{- if eq .Values.certificates.mode "cert-manager" }}"#,
                "annotations:",
                "  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/lockkeeper",
                "{{- end }}",
            ]),
            Self::CaBundle => Replacement::Lines(&[
                r#"{{- with include "lockkeeper.caBundle" . }}"#,
                "caBundle: {{ . }}",
                "{{- end }}",
            ]),
            Self::Namespace => Replacement::Inline("{{ .Release.Namespace }}"),
            Self::ForeignFailurePolicy => {
                Replacement::Inline("{{ .Values.webhook.foreignFailurePolicy }}")
            }
            Self::JobsFailurePolicy => {
                Replacement::Inline("{{ .Values.webhook.jobsFailurePolicy }}")
            }
            Self::Operations => Replacement::Inline("{{ $operations }}"),
            Self::DeclaredName => Replacement::Inline("{{ $jobKind.name }}.jobs.lockkeeper.dev"),
            Self::DeclaredGroups => Replacement::Inline(
                r#"{{ splitList "." $jobKind.name | rest | join "." | list | toJson }}"#,
            ),
            Self::DeclaredVersions => Replacement::Inline("{{ list $jobKind.version | toJson }}"),
            Self::DeclaredPlurals => {
                Replacement::Inline(r#"{{ splitList "." $jobKind.name | first | list | toJson }}"#)
            }
            Self::NotByController => {
                Replacement::Inline(r#"{{ include "lockkeeper.notByController" . | toJson }}"#)
            }
            Self::NotByExemptUser => {
                Replacement::Inline(r#"{{ include "lockkeeper.notByExemptUser" . | toJson }}"#)
            }
            Self::QueueRequiredNamespaces => {
                Replacement::Inline("{{ toJson .Values.policies.queueRequired.namespaceSelector }}")
            }
            Self::DefaultQueue => {
                Replacement::Inline(r#"{{ include "lockkeeper.defaultQueue" . | toJson }}"#)
            }
            Self::DefaultQueueNamespaces => {
                Replacement::Inline("{{ toJson .Values.policies.defaultQueue.namespaceSelector }}")
            }
        }
    }
}

/// The mark before a list item that is rendered only while a rule has this default action, and from a release on.
pub(super) fn while_default(rule: &str, action: &str, since: Option<Release>) -> Value {
    let since = since_suffix(since);
    Value::String(format!("{MARK}{WHILE_PREFIX}{rule}={action}{since}"))
}

fn since_suffix(since: Option<Release>) -> String {
    since.map_or_else(String::new, |since| format!("={since}"))
}

/// The mark before a list item that is rendered only if the controller is installed.
pub(super) fn while_controller() -> Value {
    Value::String(format!("{MARK}{WITH_CONTROLLER}"))
}

/// The mark after such an item.
pub(super) fn end_mark() -> Value {
    Value::String(format!("{MARK}{END}"))
}

/// The marks at the end of a list of such items, which render an empty list if there are none.
pub(super) fn otherwise_empty(rules: &BTreeSet<(RuleDefault, Option<Release>)>) -> Vec<Value> {
    // One mark for each rule: the YAML writer would fold one long mark into several lines.
    let unless = rules.iter().map(|((rule, action), since)| {
        format!("{UNLESS_PREFIX}{rule}={action}{}", since_suffix(*since))
    });
    let ends = rules.iter().map(|_| END.to_owned());
    let all = unless.chain([EMPTY.to_owned()]).chain(ends);
    all.map(|it| Value::String(format!("{MARK}{it}"))).collect()
}

/// The condition that at least one of these rules has its default action.
pub(super) fn any_rule_at_default<'a>(
    rules: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let rules = rules.into_iter();
    let each: Vec<String> = rules
        .map(|(rule, action)| format!("({})", rule_at_default(rule, action)))
        .collect();
    format!("or {}", each.join(" "))
}

fn rule_at_default(rule: &str, action: &str) -> String {
    format!(
        "include \"lockkeeper.isDeclared\" (dict \"root\" . \"rule\" \"{rule}\" \"action\" \"{action}\")"
    )
}

/// The condition that the cluster has this release of Kubernetes or a later one.
pub(super) fn at_least(release: impl Display) -> String {
    format!("semverCompare \">={release}-0\" .Capabilities.KubeVersion.Version")
}

/// The template: the YAML of an object with its placeholders replaced.
pub(super) fn render(yaml: &str) -> String {
    // Escaped first, since the replacements below have actions of their own.
    let escaped = yaml.replace(ACTION, ESCAPED);
    let filled = escaped.lines().map(render_line);
    filled.map(|line| line + "\n").collect()
}

fn render_line(line: &str) -> String {
    if let Some(mark) = line.trim_start().strip_prefix("- ")
        && let Some(mark) = mark.strip_prefix(MARK)
    {
        let indent = line.len().saturating_sub(line.trim_start().len());
        return render_item(mark, indent).unwrap_or_else(|| line.to_owned());
    }
    for hole in Placeholder::ALL {
        let mark = hole.mark();
        match hole.replacement() {
            Replacement::Lines(lines) if line.trim_start() == format!("{mark}: true") => {
                let indent = line.len().saturating_sub(line.trim_start().len());
                let lines = lines.iter().map(|it| indented(it, indent));
                return lines.collect::<Vec<_>>().join("\n");
            }
            Replacement::Inline(text) if line.ends_with(&format!(": {mark}")) => {
                return line.replace(&mark, text);
            }
            _ => {}
        }
    }
    line.to_owned()
}

/// The line for a mark that is a list item.
fn render_item(mark: &str, indent: usize) -> Option<String> {
    if mark == END {
        return Some("{{- end }}".to_owned());
    }
    if mark == WITH_CONTROLLER {
        return Some("{{- if .Values.controller.enabled }}".to_owned());
    }
    if mark == EMPTY {
        // The YAML writer indents items as deep as their key.
        return Some(indented("  []", indent));
    }
    let is = |rule: &str| {
        let (rule, rest) = rule.split_once('=')?;
        Some(match rest.split_once('=') {
            None => rule_at_default(rule, rest),
            Some((action, since)) => {
                let action = rule_at_default(rule, action);
                format!("and ({action}) ({})", at_least(since))
            }
        })
    };
    if let Some(rule) = mark.strip_prefix(UNLESS_PREFIX) {
        return Some(format!("{{{{- if not ({}) }}}}", is(rule)?));
    }
    let rule = mark.strip_prefix(WHILE_PREFIX)?;
    Some(format!("{{{{- if {} }}}}", is(rule)?))
}

fn indented(line: &str, indent: usize) -> String {
    let line = line.replace("INDENT", &indent.to_string());
    format!("{:indent$}{line}", "")
}
