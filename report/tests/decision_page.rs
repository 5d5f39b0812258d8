//! The page about a decision: its parts, untrusted names, and limits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use lockkeeper_report::{DecisionReport, DecisionTable, NodeQuota, render_decision};
use proptest::prelude::*;
use roxmltree::Document;

fn node(name: &str, depth: usize, resource: &str, amounts: (i64, i64, Option<i64>)) -> NodeQuota {
    NodeQuota {
        path: format!("/{name}"),
        name: name.to_owned(),
        depth,
        kind: if depth == 0 { "Cohort" } else { "ClusterQueue" },
        flavor: "spot".to_owned(),
        resource: resource.to_owned(),
        nominal: amounts.0,
        used: amounts.1,
        used_after: amounts.2,
    }
}

fn report(name: impl Fn(&str) -> String) -> DecisionReport {
    DecisionReport {
        subject: name("ns/train"),
        summary: name("preempts 1 workload"),
        facts: vec![("Reason", name("Preempting"))],
        tables: vec![
            DecisionTable {
                title: "Victims",
                caption: "The workloads that it would preempt.",
                columns: vec!["Workload", "Reason"],
                rows: vec![vec![name("ns/low"), name("InClusterQueue")]],
            },
            DecisionTable {
                title: "Candidates",
                ..DecisionTable::default()
            },
        ],
        quota: vec![
            node(&name("all"), 0, "cpu", (12_000, 6_500, Some(12_000))),
            node(&name("team"), 1, "cpu", (8_000, 6_500, Some(12_000))),
            node(&name("team"), 1, "memory", (0, 0, Some(1 << 30))),
        ],
        text: name("text\n  of the answer\n"),
    }
}

/// The page as XML, without the style sheet and the elements without an end.
fn check_page(page: &str) -> String {
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, body) = rest.split_once("</style>").unwrap();
    let head = head.replace("<!DOCTYPE html>", "");
    let closed = head
        .replace("\">", "\"/>")
        .replace("lang=\"en\"/>", "lang=\"en\">");
    let xml = format!("{closed}{body}");
    let document = Document::parse(&xml).unwrap_or_else(|error| panic!("{error}\n{xml}"));
    for element in document.descendants().filter(roxmltree::Node::is_element) {
        let name = element.tag_name().name();
        assert!(
            !["img", "iframe", "object", "script"].contains(&name),
            "{name}"
        );
        for attribute in element.attributes() {
            let (key, value) = (attribute.name(), attribute.value());
            assert!(
                !key.starts_with("on") && key != "style",
                "{key}=\"{value}\""
            );
            let is_reference = ["href", "src"].contains(&key);
            assert!(!is_reference || value.starts_with('#') || value == "data:,");
        }
    }
    body.to_owned()
}

#[test]
fn page_has_all_parts() {
    let page = render_decision(&report(str::to_owned));
    let body = check_page(&page);
    assert!(page.contains("default-src 'none'; style-src 'sha256-"));
    assert!(!page.contains("script-src") && !page.contains("Candidates"));
    insta::assert_snapshot!(body.replace("><", ">\n<"));
}

#[test]
fn use_without_decision_has_no_columns_after() {
    let mut report = report(str::to_owned);
    for node in &mut report.quota {
        node.used_after = None;
    }
    let body = check_page(&render_decision(&report));
    assert!(!body.contains("Used after"), "{body}");
}

#[test]
fn long_tables_are_cut() {
    let mut report = report(str::to_owned);
    let rows = (0..700).map(|at| vec![format!("w{at}"), String::new()]);
    report.tables.first_mut().unwrap().rows = rows.collect();
    let nodes = (0..501).map(|at| node(&format!("q{at}"), 1, "cpu", (1, i64::MAX, None)));
    report.quota = nodes.collect();
    let body = check_page(&render_decision(&report));
    for (text, is_there) in [
        ("w499", true),
        ("w500", false),
        ("q499", true),
        ("q500", false),
    ] {
        assert_eq!(body.contains(&format!(">{text}<")), is_there, "{text}");
    }
    assert!(body.contains("200 more rows are left out.") && body.contains(">1 more rows"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn names_are_escaped(
        markup in prop_oneof![
            Just("</title></style></pre><script>alert(1)</script>"),
            Just("\" onmouseover=\"alert(1)"),
            Just("'><svg/onload=alert(1)>"),
            Just("]]>&lt;&#60;<!--"),
        ],
        other in any::<String>(),
        amount in any::<i64>(),
    ) {
        let mut report = report(|name| format!("{markup}{other}{name}"));
        for node in &mut report.quota {
            (node.nominal, node.used, node.used_after) = (amount, amount.saturating_neg(), Some(amount));
        }
        check_page(&render_decision(&report));
    }
}
