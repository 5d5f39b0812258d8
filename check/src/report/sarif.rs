//! SARIF 2.1.0, which code scanning services read.

use super::format::Format;
use super::json::{indented, items, with_field};
use super::result::{CheckedFile, ReportedFinding, ReportedObject};
use super::tally::Tally;
use crate::document::Identity;
use lockkeeper_api::config::Action;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::reference::{RuleEntry, entries, file_name};
use lockkeeper_policies::suppression::ANNOTATION;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Component, Path};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub struct Sarif {
    rules: Vec<RuleEntry>,
    indices: BTreeMap<&'static str, usize>,
    /// The URL of the folder with the rule pages.
    pages: Option<String>,
}

impl Sarif {
    pub fn new(pages: Option<String>) -> Self {
        let rules = entries();
        let indices = rules.iter().enumerate();
        let indices = indices.map(|(at, it)| (it.rule.id, at)).collect();
        let pages = pages.map(|it| it.trim_end_matches('/').to_owned());
        Self {
            rules,
            indices,
            pages,
        }
    }

    fn result(&self, file: &str, object: &ReportedObject, reported: &ReportedFinding) -> Value {
        let (identity, finding) = (&object.identity, &reported.finding);
        let region = reported.location.map(|it| Region {
            line: it.line,
            column: it.column,
            end: Some(it.column.saturating_add(it.width)),
        });
        let location = json!({
            "physicalLocation": physical_location(file, region.as_ref()),
            "logicalLocations": [{
                "name": finding.field.text(),
                "fullyQualifiedName": format!(
                    "{}/{}/{}/{}",
                    identity.api_version, identity.kind, identity.full_name(), finding.field.text()
                ),
                "kind": "member",
            }],
        });
        let name = identity.full_name();
        let mut text = format!("{} {name}: {}", identity.kind, finding.text());
        for note in &reported.notes {
            text.push('\n');
            text.push_str(note);
        }
        let mut result = json!({
            "ruleId": finding.rule,
            "level": reported.severity.word(),
            "message": {"text": text},
            "locations": [location],
            "partialFingerprints": {"objectAndField/v1": fingerprint(identity, finding)},
        });
        if let Some(at) = self.indices.get(&*finding.rule) {
            result = with_field(result, "ruleIndex", json!(at));
        }
        if let Some(reason) = &reported.suppressed {
            let suppression = json!({
                "kind": "inSource", "justification": reason,
                "location": {"logicalLocations": [{"name": ANNOTATION}]},
            });
            result = with_field(result, "suppressions", json!([suppression]));
        }
        result
    }

    fn rule(&self, entry: &RuleEntry) -> Value {
        let rule = &entry.rule;
        let is_error = entry
            .kinds
            .iter()
            .any(|it| it.action != "warn" && it.action != "audit");
        let mut out = json!({
            "id": rule.id,
            "name": rule.name,
            "shortDescription": {"text": rule.name.replace('-', " ")},
            "fullDescription": {"text": summary(rule.doc)},
            "help": {"text": rule.doc, "markdown": rule.doc},
            "defaultConfiguration": {
                "level": if rule.action == Action::Warn || !is_error { "warning" } else { "error" },
            },
        });
        if let Some(pages) = &self.pages {
            let page = format!("{pages}/{}", file_name(rule));
            out = with_field(out, "helpUri", json!(page));
        }
        out
    }
}

impl Format for Sarif {
    fn head(&self) -> String {
        format!(
            "{{\n  \"$schema\": \"{SCHEMA}\",\n  \"version\": \"2.1.0\",\n  \"runs\": [{{\n    \"results\": ["
        )
    }

    fn file(&self, file: &CheckedFile) -> String {
        let Ok(objects) = &file.outcome else {
            return String::new();
        };
        let all = objects.objects.iter();
        let all = all.flat_map(|object| {
            object
                .findings
                .iter()
                .map(move |reported| (object, reported))
        });
        let all: Vec<Value> = all
            .map(|(object, reported)| self.result(&file.name, object, reported))
            .collect();
        items(&all, 6)
    }

    fn separator(&self) -> &'static str {
        ","
    }

    fn tail(&self, tally: &Tally) -> String {
        let rules: Vec<Value> = self.rules.iter().map(|it| self.rule(it)).collect();
        let tool = json!({"driver": {
            "name": "lockkeeper", "version": env!("CARGO_PKG_VERSION"),
            "semanticVersion": env!("CARGO_PKG_VERSION"), "rules": rules,
        }});
        // A file that cannot be read is not a result of a rule, but a failed execution.
        let notifications = tally.unreadable.iter().map(|(file, error)| {
            let region = error.location.map(|(line, column)| Region {
                line,
                column,
                end: None,
            });
            let physical = physical_location(file, region.as_ref());
            json!({
                "level": "error",
                "message": {"text": format!("cannot be read: {}", error.message)},
                "locations": [{"physicalLocation": physical}],
            })
        });
        let notifications: Vec<Value> = notifications.collect();
        let invocations = json!([{
            "executionSuccessful": notifications.is_empty(),
            "toolExecutionNotifications": notifications,
        }]);
        let tool = indented(&tool, 4);
        let invocations = indented(&invocations, 4);
        format!(
            "],\n    \"columnKind\": \"unicodeCodePoints\",\n    \"invocations\": {invocations},\n    \
             \"tool\": {tool}\n  }}]\n}}\n"
        )
    }
}

/// A part of a line. Lines and columns count from 1.
struct Region {
    line: usize,
    column: usize,
    /// The column after the last one.
    end: Option<usize>,
}

fn physical_location(file: &str, region: Option<&Region>) -> Value {
    let location = json!({"artifactLocation": {"uri": uri(file)}});
    let Some(Region { line, column, end }) = region else {
        return location;
    };
    let region = json!({"startLine": line, "startColumn": column});
    let region = match end {
        None => region,
        Some(end) => with_field(region, "endColumn", json!(end)),
    };
    with_field(location, "region", region)
}

/// The first paragraph of a page after its title.
fn summary(page: &str) -> String {
    let mut paragraphs = page.split("\n\n").skip(1);
    paragraphs.next().unwrap_or_default().replace('\n', " ")
}

/// A path as a URI: relative to the checked root, or `file:///` if it is absolute.
fn uri(file: &str) -> String {
    let mut parts = Vec::new();
    let mut out = String::new();
    for component in Path::new(file).components() {
        match component {
            Component::RootDir => out.push_str("file:///"),
            Component::CurDir | Component::Prefix(_) => {}
            Component::ParentDir => parts.push("..".to_owned()),
            Component::Normal(name) => parts.push(percent_encode(&name.to_string_lossy())),
        }
    }
    out.push_str(&parts.join("/"));
    out
}

fn percent_encode(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// A hash of rule, object, field and value, which stays the same when lines move.
fn fingerprint(identity: &Identity, finding: &Finding) -> String {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    // Hashed by FNV-1a below: services compare the fingerprints of different releases, so
    // they must not depend on the version of a library.
    let field = finding.field.identity();
    let parts = [
        &*finding.rule,
        &identity.api_version,
        &identity.kind,
        &identity.namespace,
        &identity.name,
        &field,
        finding.value.as_deref().unwrap_or_default(),
    ];
    // A zero byte after each part: the parts `ab`, `c` and `a`, `bc` differ.
    let bytes = parts.iter().flat_map(|it| it.bytes().chain([0]));
    let hash = bytes.fold(BASIS, |hash, it| (hash ^ u64::from(it)).wrapping_mul(PRIME));
    format!("{hash:016x}")
}
