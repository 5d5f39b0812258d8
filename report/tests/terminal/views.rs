//! Snapshots of all views in two sizes.

use crate::screen::{draw, text, type_keys};
use crate::traces::{Simulated, two_configurations, with_workloads};
use lockkeeper_report::{Key, Next, Simulation, TerminalReport, WORKLOADS_MAX};
use ratatui_core::style::Color;

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

/// Compares the snapshot of a view after some keys.
fn check(name: &str, keys: &str) {
    let simulated = two_configurations();
    let simulations = simulated.each_ref().map(Simulated::simulation);
    for (width, height) in SIZES {
        let mut report = TerminalReport::new(&simulations);
        for key in keys.chars() {
            draw(&mut report, width, height);
            type_keys(&mut report, &key.to_string());
        }
        let text = text(&mut report, width, height);
        insta::assert_snapshot!(format!("{name}-{width}x{height}"), text);
    }
}

#[test]
fn comparison_matches_snapshots() {
    check("comparison", "1");
}

#[test]
fn quota_tree_matches_snapshots() {
    check("quota", "2↓");
}

#[test]
fn use_of_cohort_matches_snapshots() {
    check("use-of-cohort", "3↓↓→→→→→→→→→→");
}

#[test]
fn use_of_queue_matches_snapshots() {
    // Through the quota tree.
    check("use-of-queue", "2⇟⇱↓↓↓↓↓↓\n→→→→→→→→→→→→");
}

#[test]
fn workloads_over_time_match_snapshots() {
    check("states", "4→→→→→");
}

#[test]
fn gantt_chart_matches_snapshots() {
    check("gantt", "5⇲gbg");
}

#[test]
fn waits_match_snapshots() {
    check("waits", "6↓");
}

#[test]
fn table_matches_snapshots() {
    check("table", "7→→→→S");
}

#[test]
fn help_matches_snapshots() {
    check("help", "5?");
}

#[test]
fn all_views_fit_into_the_smallest_terminal() {
    let simulated = two_configurations();
    let simulations = simulated.each_ref().map(Simulated::simulation);
    let mut report = TerminalReport::new(&simulations);
    let mut views = Vec::new();
    for view in '1'..='7' {
        type_keys(&mut report, &view.to_string());
        views.push(text(&mut report, 60, 15));
    }
    insta::assert_snapshot!("smallest", views.join("\n\n"));
    let text = text(&mut report, 59, 15);
    assert_eq!(text.trim_end(), "The terminal is smaller than 60×15.");
}

#[test]
fn views_without_colors_have_none() {
    let simulated = two_configurations();
    let simulations = simulated.each_ref().map(Simulated::simulation);
    let mut report = TerminalReport::new(&simulations).with_colors(false);
    for view in '1'..='7' {
        type_keys(&mut report, &view.to_string());
        let buffer = draw(&mut report, 100, 30);
        let mut cells = buffer.content.iter();
        assert!(cells.all(|it| it.fg == Color::Reset && it.bg == Color::Reset));
    }
}

#[test]
fn last_of_many_workloads_is_visible() {
    let simulated = Simulated::new(with_workloads(WORKLOADS_MAX), None);
    let mut report = TerminalReport::new(&[simulated.simulation()]);
    type_keys(&mut report, "5⇲");
    let gantt = text(&mut report, 80, 24);
    // The last one of the third ClusterQueue.
    assert!(gantt.contains("job-9998: ClusterQueue team-c"), "{gantt}");
    type_keys(&mut report, "7⇲");
    let table = text(&mut report, 80, 24);
    assert!(table.contains("to 10000 of 10000"), "{table}");
}

#[test]
fn many_workloads_have_no_gantt_chart() {
    let simulated = Simulated::new(with_workloads(WORKLOADS_MAX + 1), None);
    let mut report = TerminalReport::new(&[simulated.simulation()]);
    type_keys(&mut report, "5↓\ng+");
    let gantt = text(&mut report, 80, 24);
    assert!(
        gantt.contains("The trace has more than 10,000 workloads."),
        "{gantt}"
    );
    type_keys(&mut report, "7");
    let table = text(&mut report, 120, 24);
    let note = "The table has the 10000 workloads with the longest waits, of 10001.";
    assert!(table.contains(note), "{table}");
    type_keys(&mut report, "4↓");
    let states = text(&mut report, 80, 24);
    assert!(
        states.contains("Workloads of ClusterQueue team-a by state"),
        "{states}"
    );
}

#[test]
fn reports_without_content_say_so() {
    let none: [Simulation<'_>; 0] = [];
    let mut report = TerminalReport::new(&none);
    assert!(text(&mut report, 80, 24).contains("There are no simulations."));
    let trace = serde_json::from_value(serde_json::json!({"clusterQueues": [], "jobs": []}));
    let simulated = Simulated::new(trace.unwrap(), None);
    let mut report = TerminalReport::new(&[simulated.simulation()]);
    for (view, expected) in [
        ('2', "No quota and no use."),
        ('3', "No quota and no use."),
        ('5', "No workloads."),
        ('7', "No workload matches."),
    ] {
        type_keys(&mut report, &view.to_string());
        let text = text(&mut report, 80, 24);
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(report.handle(Key::Char('q')), Next::Quit);
}
