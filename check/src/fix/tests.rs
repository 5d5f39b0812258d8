use super::Fixer;
use crate::kinds::{KindRegistry, offline_settings};
use crate::rule_selection::RuleSelection;
use crate::source::ParsedSource;
use lockkeeper_api::config::Config;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

static FIXER: LazyLock<Fixer> = LazyLock::new(|| {
    let selection = RuleSelection::default();
    let Ok(kinds) = KindRegistry::new(&selection) else {
        panic!("a schema is invalid");
    };
    Fixer {
        kinds,
        index: Index::default(),
        settings: offline_settings(Config::default(), Arc::default(), &selection, 0).unwrap(),
        adds_defaults: true,
    }
});

/// The fixed text, and the skipped fields. A second fix must change nothing.
#[track_caller]
fn fix_text(before: &str) -> (String, Vec<String>) {
    let fix = |text: &str| {
        let Ok(source) = ParsedSource::parse(text.to_owned()) else {
            panic!("cannot parse {text}");
        };
        FIXER.fix(source)
    };
    let once = fix(before);
    assert_eq!(fix(&once.after).after, once.after);
    (
        once.after,
        once.skipped_fields
            .iter()
            .map(ToString::to_string)
            .collect(),
    )
}

#[track_caller]
fn check(before: &str, after: &str) {
    let (fixed, skipped) = fix_text(before);
    assert_eq!(fixed, after);
    assert_eq!(skipped, [""; 0]);
}

/// The start of a Cohort. The kind has one default, and only with `fairSharing`.
const HEAD: &str = "apiVersion: lockkeeper.dev/v1alpha1\nkind: Cohort\nmetadata: {name: a}\n";

const QUEUE: &str =
    "apiVersion: lockkeeper.dev/v1alpha1\nkind: ClusterQueue\nmetadata: {name: a}\n";

#[test]
fn fix_keeps_comments_and_layout() {
    check(
        &format!("# one\n{HEAD}spec:   # two\n  # three\n  parent:   'x'  # four\r\n"),
        &format!("# one\n{HEAD}spec:   # two\n  # three\n  parentName:   'x'  # four\r\n"),
    );
    let local = HEAD.replace("Cohort", "LocalQueue");
    check(
        &format!("a: é\n---\n{local}spec: {{\"clusterqueue\": b, stopPolicy: \"hold\"}}"),
        &format!("a: é\n---\n{local}spec: {{\"clusterQueue\": b, stopPolicy: \"Hold\"}}"),
    );
    check(
        "{\"kind\": \"List\", \"items\": [{\"apiVersion\": \"kueue.x-k8s.io/v1beta2\",\n \"kind\": \"Cohort\", \"spec\": {\"parent\": \"a\"}}]}",
        "{\"kind\": \"List\", \"items\": [{\"apiVersion\": \"kueue.x-k8s.io/v1beta2\",\n \"kind\": \"Cohort\", \"spec\": {\"parentName\": \"a\"}}]}",
    );
}

#[test]
fn fix_keeps_ambiguous_typos() {
    let head = HEAD.replace("Cohort", "ClusterQueue");
    for spec in [
        // The suggested field exists already, or the value has the wrong type for it.
        "{cohort: a, cohortName: b}",
        "{cohort: {a: b}}",
        // The text of the word differs from its value.
        "{\"coh\\u006frt\": a}",
        // The wrong value comes from an anchor.
        "{stopPolicy: &a hold, colour: *a}",
        "{colour: &a hold, stopPolicy: *a}",
        // There is no suggestion.
        "{colour: red}",
        "{stopPolicy: 3}",
    ] {
        let text = format!("{head}spec: {spec}\n");
        check(&text, &text);
    }
    // Other kinds are skipped, and fields that controllers own are not written.
    let other = "apiVersion: v1\nkind: ConfigMap\n";
    check(other, other);
    let flavor = HEAD.replace("Cohort", "ResourceFlavor") + "spec: {}\n";
    check(&flavor, &flavor);
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, labels: {lockkeeper.dev/queue-name: a}}\n\
               spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}\n";
    check(job, job);
    // In v1beta1 this is the name of the field.
    let (old, _) = fix_text(&format!(
        "{}spec: {{cohort: a, namespaceSelector: {{}}}}\n",
        head.replace("lockkeeper.dev/v1alpha1", "kueue.x-k8s.io/v1beta1")
    ));
    assert!(old.contains("cohort: a,"), "{old}");
}

#[test]
fn fix_writes_defaults_in_surrounding_style() {
    for (before, after) in [
        // Block style, with comments after and below.
        (
            "spec:\n  fairSharing: {}\n  parentName: b # why\n  # end\n",
            "spec:\n  fairSharing: {weight: \"1\"}\n  parentName: b # why\n  # end\n",
        ),
        (
            "spec: {fairSharing: {}}",
            "spec: {fairSharing: {weight: \"1\"}}",
        ),
        (
            "spec: {fairSharing: { }, \"parentName\": b}\n...\n",
            "spec: {fairSharing: {weight: \"1\"}, \"parentName\": b}\n...\n",
        ),
        (
            "spec: {fairSharing: { # none\n  }}\n",
            "spec: {fairSharing: { # none\n  }}\n",
        ),
    ] {
        let (fixed, skipped) = fix_text(&format!("{HEAD}{before}"));
        assert_eq!(fixed, format!("{HEAD}{after}"));
        assert_eq!(skipped.is_empty(), before != after);
    }
    insta::assert_snapshot!(
        fix_text(&format!(
            "{QUEUE}spec: # the quota\n    cohortName: b # why\n    preemption: # who\n        withinClusterQueue: LowerPriority\n    # the end\n\
             ---\n{QUEUE}spec:\n  flavorFungibility: {{whenCanBorrow: TryNextFlavor}}\n  preemption: {{ borrowWithinCohort: {{policy: Never}}, }}\n\
             ---\n{QUEUE}spec:\n  flavorFungibility:\n    whenCanBorrow: >-\n      TryNextFlavor\n\n\n---\n{QUEUE}spec: {{}}\n"
        ))
        .0
    );
}

#[test]
fn fix_adds_defaults_in_lists_and_json() {
    let workload = "\
apiVersion: v1
kind: List
items:
- apiVersion: lockkeeper.dev/v1alpha1
  kind: Workload
  metadata: {name: a}
  spec:
    queueName: main
    podSets:
    - template: {spec: {containers: [{name: a, image: b}]}}
    -   name: other
        template:
          spec:
            containers:
            - {name: a, image: b}";
    insta::assert_snapshot!(fix_text(workload).0);
    let queue = json!({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": "ClusterQueue", "metadata": {"name": "a"},
                       "spec": {"flavorFungibility": {}, "preemption": {"withinClusterQueue": "Never"}}});
    let pretty = serde_json::to_string_pretty(&queue).unwrap();
    insta::assert_snapshot!(fix_text(&pretty).0);
    insta::assert_snapshot!(fix_text(&queue.to_string()).0);
}

#[test]
fn fix_skips_and_reports_anchors_tags_and_empty_fields() {
    for (spec, field) in [
        ("{fairSharing: &a {}}", "spec.fairSharing.weight"),
        ("{fairSharing: !!map {}}", "spec.fairSharing.weight"),
        ("&a {fairSharing: {}}", "spec.fairSharing.weight"),
        ("{fairSharing: {weight: }}", "spec.fairSharing.weight"),
        ("{<<: {fairSharing: {}}}", "spec.fairSharing.weight"),
    ] {
        let text = format!("{HEAD}spec: {spec}\n");
        assert_eq!(fix_text(&text), (text.clone(), vec![field.to_owned()]));
    }
    // Only the object with the anchor is skipped.
    let text =
        format!("{HEAD}spec: {{fairSharing: &a {{}}}}\n---\n{HEAD}spec: {{fairSharing: {{}}}}\n");
    let (fixed, skipped) = fix_text(&text);
    assert!(
        fixed.ends_with("spec: {fairSharing: {weight: \"1\"}}\n"),
        "{fixed}"
    );
    assert_eq!(skipped, ["spec.fairSharing.weight"]);
}

#[test]
fn fix_writes_default_class_only_if_known() {
    let text = format!(
        "{}spec: {{queueName: a, podSets: [{{name: main, count: 1, template: {{spec: {{containers: []}}}}}}]}}\n",
        HEAD.replace("Cohort", "Workload")
    );
    assert_eq!(fix_text(&text).0, text);
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"},
                       "value": 1, "globalDefault": true});
    let mut index = Index::default();
    facts::ingest(&mut index, &class).unwrap();
    let Ok(kinds) = KindRegistry::new(&RuleSelection::default()) else {
        panic!("a schema is invalid");
    };
    let settings = FIXER.settings.clone();
    let fixer = Fixer {
        kinds,
        index,
        settings,
        adds_defaults: true,
    };
    let Ok(source) = ParsedSource::parse(text) else {
        panic!("cannot parse");
    };
    let after = fixer.fix(source).after;
    assert!(
        after.ends_with("}], preemptionPriorityClassName: low, priorityClassName: low}\n"),
        "{after}"
    );
    // A PriorityClass has defaults too.
    check(
        &class.to_string(),
        &class
            .to_string()
            .replace("1}", "1,\"preemptionPolicy\":\"PreemptLowerPriority\"}"),
    );
}

/// Styles of YAML.
#[derive(Clone, Copy, Debug)]
enum Style {
    Block,
    Flow,
    Json,
}

/// Writes a value, with comments and extra spaces.
fn write_value(value: &Value, style: Style, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    match (value, style) {
        (Value::Object(fields), Style::Block) if !fields.is_empty() => {
            for (name, value) in fields {
                let is_deep = value.as_object().is_some_and(|it| !it.is_empty());
                *out += &[&pad, name.as_str(), ":"].concat();
                out.push_str(if is_deep { " # deep\n" } else { " " });
                write_value(value, style, indent + 2, out);
                if !is_deep {
                    out.push_str(" # leaf\n");
                }
            }
        }
        (Value::Object(fields), Style::Flow) => {
            let fields = fields.iter().map(|(name, value)| {
                let mut out = format!("{name}: ");
                write_value(value, style, 0, &mut out);
                out
            });
            *out += &["{", &fields.collect::<Vec<_>>().join(" , "), "}"].concat();
        }
        (Value::Object(_), Style::Json) => {
            out.push_str(&serde_json::to_string_pretty(value).unwrap());
        }
        _ => out.push_str(&value.to_string()),
    }
}

fn text(spec: &Value, style: Style) -> String {
    let object = json!({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": "ClusterQueue",
                        "metadata": {"name": "a"}, "spec": spec});
    let mut out = String::new();
    write_value(&object, style, 0, &mut out);
    out.push('\n');
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fix_random_queues_adds_every_default(
        specs in vec((subsequence(vec![
            ("cohortName", json!("b")),
            ("elastic", json!({})),
            ("fairSharing", json!({})),
            ("flavorFungibility", json!({})),
            ("flavorFungibility", json!({"whenCanBorrow": "TryNextFlavor"})),
            ("preemption", json!({})),
            ("preemption", json!({"borrowWithinCohort": {"maxPriorityThreshold": 3}})),
            ("preemption", json!({"withinClusterQueue": "Never", "borrowWithinCohort": {}})),
            ("queueingStrategy", json!("StrictFIFO")),
            ("stopPolicy", json!("Hold")),
        ], 0..6), select(vec![Style::Block, Style::Flow])), 1..4),
        is_windows in any::<bool>(),
        has_end in any::<bool>(),
    ) {
        let documents = specs.iter().map(|(fields, style)| {
            let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            text(&Value::Object(fields.collect()), *style)
        });
        let mut before = documents.collect::<Vec<_>>().join("---\n");
        if is_windows {
            before = before.replace('\n', "\r\n");
        }
        if !has_end {
            before = before.trim_end().to_owned();
        }
        let (after, skipped) = fix_text(&before);
        prop_assert!(skipped.is_empty(), "{skipped:?}\n{after}");
        let comments = |text: &str| text.matches('#').count();
        prop_assert_eq!(comments(&before), comments(&after));
        let Ok(parsed) = ParsedSource::parse(after.clone()) else {
            panic!("cannot parse {after}");
        };
        for document in parsed.documents {
            let defaulted = FIXER.kinds.with_defaults(&document.value, &FIXER.context());
            // Metadata, such as the finalizer, is not written.
            prop_assert_eq!(&defaulted["spec"], &document.value["spec"]);
        }
    }

    #[test]
    fn fix_random_list_layouts_adds_item_defaults(
        pod_sets in vec((any::<bool>(), any::<bool>(), any::<bool>()), 1..4),
        (pad, dash) in select(vec![("  ", "- "), ("    ", "- "), ("  ", "-   "), ("   ", "-\n    ")]),
        is_last in any::<bool>(),
    ) {
        let deep = match dash.split_once('\n') {
            Some((_, deep)) => deep.to_owned(),
            None => format!("{pad}{}", " ".repeat(dash.len())),
        };
        let items = pod_sets.iter().enumerate().map(|(at, (has_name, has_count, has_end))| {
            let mut fields = vec!["template: {spec: {containers: []}} # one".to_owned()];
            fields.extend(has_count.then(|| "count: 3".to_owned()));
            // Only one pod set may have the default name.
            fields.extend((*has_name || at > 0).then(|| format!("name: 'n{at}'")));
            let end = if *has_end { format!("{deep}# end\n") } else { String::new() };
            format!("{pad}{dash}{}\n{end}", fields.join(&format!("\n{deep}")))
        });
        let items: String = items.collect();
        let other = "  queueName: main\n";
        let (above, below) = if is_last { (other, "") } else { ("", other) };
        let head = HEAD.replace("Cohort", "Workload");
        let before = format!("{head}spec:\n{above}  podSets:\n{items}{below}");
        let (after, skipped) = fix_text(&before);
        prop_assert!(skipped.is_empty(), "{skipped:?}\n{after}");
        let Ok(parsed) = ParsedSource::parse(after.clone()) else {
            panic!("cannot parse {after}");
        };
        let value = &parsed.documents[0].value;
        let mut defaulted = FIXER.kinds.with_defaults(value, &FIXER.context());
        defaulted["spec"].as_object_mut().unwrap().remove("active");
        prop_assert_eq!(&defaulted["spec"], &value["spec"]);
        for line in before.lines() {
            prop_assert!(after.lines().any(|it| it == line), "{line}\n{after}");
        }
    }

    #[test]
    fn fix_json_input_stays_json(
        fields in subsequence(vec![
            ("fairSharing", json!({})),
            ("flavorFungibility", json!({"whenCanBorrow": "TryNextFlavor"})),
            ("preemption", json!({"borrowWithinCohort": {}})),
        ], 0..3),
        is_tight in any::<bool>(),
    ) {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let mut before = text(&Value::Object(fields.collect()), Style::Json);
        if is_tight {
            before = serde_json::from_str::<Value>(&before).unwrap().to_string();
        }
        let (after, skipped) = fix_text(&before);
        prop_assert!(skipped.is_empty());
        let value: Value = serde_json::from_str(&after).unwrap();
        let again = if is_tight { value.to_string() } else { text(&value["spec"], Style::Json) };
        // Added fields are not in alphabetical order, but the layout is the same.
        prop_assert_eq!(again.lines().count(), after.lines().count());
        prop_assert_eq!(again.len(), after.len());
    }
}

#[test]
fn fix_without_defaults_only_corrects() {
    let Ok(kinds) = KindRegistry::new(&RuleSelection::default()) else {
        panic!("a schema is invalid");
    };
    let fixer = Fixer {
        kinds,
        index: Index::default(),
        settings: FIXER.settings.clone(),
        adds_defaults: false,
    };
    let text = format!("{QUEUE}spec:\n  cohort: research\n  queueingStrategy: strictfifo\n");
    let Ok(source) = ParsedSource::parse(text.clone()) else {
        panic!("cannot parse {text}");
    };
    let outcome = fixer.fix(source);
    let expected = text
        .replace("cohort:", "cohortName:")
        .replace("strictfifo", "StrictFIFO");
    assert_eq!(
        (outcome.after, outcome.typos_fixed, outcome.defaults_added),
        (expected, 2, 0)
    );
}
