//! The page about one decision.

use crate::amount_text::{amount_text, percent_text};
use crate::cohort_tree::draw_bar;
use crate::content_security::policy_without_script;
use crate::markup_text::permitted_text;
use crate::page_head::PageHead;
use maud::{DOCTYPE, Markup, html};

/// The most rows of a table.
const ROWS_MAX: usize = 500;

/// The deepest level with an indentation of its own.
const DEPTH_MAX: usize = 8;

/// What a page says about the decision on one workload. All texts are untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionReport {
    /// The workload.
    pub subject: String,
    /// The decision in one sentence.
    pub summary: String,
    /// Names and values.
    pub facts: Vec<(&'static str, String)>,
    /// The tables; those without rows are left out.
    pub tables: Vec<DecisionTable>,
    /// The use of quota, each cohort before its members.
    pub quota: Vec<NodeQuota>,
    /// The whole explanation.
    pub text: String,
}

/// A table of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionTable {
    /// The heading.
    pub title: &'static str,
    /// What the rows are.
    pub caption: &'static str,
    /// The names of the columns.
    pub columns: Vec<&'static str>,
    /// The cells.
    pub rows: Vec<Vec<String>>,
}

/// The quota of a cohort or a ClusterQueue for one flavor and resource, in the unit of the core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeQuota {
    /// The path from the root of its tree.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Its distance from the root.
    pub depth: usize,
    /// `ClusterQueue` or `Cohort`.
    pub kind: &'static str,
    /// The flavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// The nominal quota.
    pub nominal: i64,
    /// What is used.
    pub used: i64,
    /// What is used after the decision, if it changes that.
    pub used_after: Option<i64>,
}

/// Returns the page as an HTML file. The same input gives the same bytes.
#[must_use]
pub fn render_decision(report: &DecisionReport) -> String {
    permitted_text(page(report).into_string())
}

fn page(report: &DecisionReport) -> Markup {
    let title = format!("Workload {}", report.subject);
    let head = PageHead {
        title: &title,
        policy: &policy_without_script(),
        generator: "lockkeeper explain",
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            (head.markup())
            body {
                a.skip href="#main" { "Skip to content" }
                header { h1 { (title) } p { (report.summary) } }
                main id="main" {
                    section aria-labelledby="decision" {
                        h2 id="decision" { "Decision" }
                        dl.summary { @for (name, value) in &report.facts {
                            div { dt { (name) } dd { (value) } }
                        } }
                    }
                    @for table in &report.tables { @if !table.rows.is_empty() { (draw_table(table)) } }
                    @if !report.quota.is_empty() {
                        section aria-labelledby="quota" {
                            h2 id="quota" { "Quota" }
                            (draw_quota(&report.quota))
                        }
                    }
                    section aria-labelledby="explanation" {
                        h2 id="explanation" { "Explanation" }
                        pre tabindex="0" aria-labelledby="explanation" { (report.text) }
                    }
                }
                footer { p { "Written by lockkeeper explain." } }
            }
        }
    }
}

fn draw_table(table: &DecisionTable) -> Markup {
    html! {
        section aria-label=(table.title) {
            h2 { (table.title) }
            div.scroll tabindex="0" role="group" aria-label=(table.title) {
                table {
                    caption { (table.caption) }
                    thead { tr { @for name in &table.columns { th scope="col" { (name) } } } }
                    tbody { @for row in table.rows.iter().take(ROWS_MAX) {
                        tr { @for cell in row { td { (cell) } } }
                    } }
                }
            }
            (omitted_note(table.rows.len()))
        }
    }
}

fn omitted_note(count: usize) -> Markup {
    let omitted = count.saturating_sub(ROWS_MAX);
    html! { @if omitted > 0 { p.note { (omitted) " more rows are left out." } } }
}

/// The tree of cohorts: a row for each node, flavor and resource.
fn draw_quota(quota: &[NodeQuota]) -> Markup {
    let has_after = quota.iter().any(|it| it.used_after.is_some());
    let shown = quota.get(..ROWS_MAX).unwrap_or(quota);
    html! {
        div.scroll tabindex="0" role="group" aria-label="Cohorts and ClusterQueues" {
            table.tree {
                caption {
                    "Cohorts and ClusterQueues. The mark of a bar is the nominal quota."
                    @if has_after { " After: the workload is admitted as if it were the only pending one, and its victims have released their quota." }
                }
                thead { tr {
                    th scope="col" { "Name" } th scope="col" { "Kind" } th scope="col" { "Flavor" }
                    th scope="col" { "Resource" } th.number scope="col" { "Nominal quota" }
                    th.number scope="col" { "Used" } th scope="col" { "Use of nominal quota" }
                    @if has_after {
                        th.number scope="col" { "Used after" } th scope="col" { "Use after" }
                    }
                } }
                @for node in shown.chunk_by(|a, b| a.path == b.path) { tbody {
                    @for (at, row) in node.iter().enumerate() { tr {
                        @if at == 0 {
                            th scope="rowgroup" rowspan=(node.len()) class={ "level" (row.depth.min(DEPTH_MAX)) } { (row.name) }
                            td rowspan=(node.len()) { (row.kind) }
                        }
                        (draw_cells(row))
                    } }
                } }
            }
        }
        (omitted_note(quota.len()))
    }
}

fn draw_cells(row: &NodeQuota) -> Markup {
    let nominal = i128::from(row.nominal);
    let bar = |used: i64| {
        let used = i128::from(used);
        html! { td.bar { (draw_bar(used, nominal)) " " (percent_text(used, nominal)) } }
    };
    html! {
        td { (row.flavor) }
        td { (row.resource) }
        td.number { (amount_text(&row.resource, row.nominal)) }
        td.number { (amount_text(&row.resource, row.used)) }
        (bar(row.used))
        @if let Some(after) = row.used_after {
            td.number { (amount_text(&row.resource, after)) }
            (bar(after))
        }
    }
}
