//! What keys do.

use crate::screen::{text, type_keys};
use crate::traces::{Simulated, two_configurations};
use lockkeeper_report::{Key, Next, TerminalReport};

/// The line that starts with a text after spaces.
fn line<'a>(text: &'a str, start: &str) -> &'a str {
    let line = text.lines().find(|it| it.trim_start().starts_with(start));
    line.unwrap_or_else(|| panic!("{start}:\n{text}"))
}

#[test]
fn gantt_follows_preemptions_and_goes_back() {
    let simulated = two_configurations();
    let mut report = TerminalReport::new(&[simulated[0].simulation()]);
    type_keys(&mut report, "5");
    let first = text(&mut report, 100, 30);
    assert!(line(&first, "low:").contains("ClusterQueue team-a, priority 0"));
    assert!(first.contains("▸ 40 s: is preempted by high (ClusterQueue team-a, priority 7)"));
    assert!(line(&first, "▲ high").contains('█'));
    type_keys(&mut report, "g");
    let second = text(&mut report, 100, 30);
    assert!(second.contains("▸ 40 s: preempts low (ClusterQueue team-a, priority 0)"));
    assert!(line(&second, "▼ low").contains('▒'));
    type_keys(&mut report, "b");
    assert_eq!(text(&mut report, 100, 30), first);
    type_keys(&mut report, "\n\n");
    assert_eq!(text(&mut report, 100, 30), first);
}

#[test]
fn scale_of_time_changes_around_the_middle() {
    let simulated = two_configurations();
    let mut report = TerminalReport::new(&[simulated[0].simulation()]);
    type_keys(&mut report, "5");
    let first = text(&mut report, 100, 30);
    type_keys(&mut report, "++←←→");
    let zoomed = text(&mut report, 100, 30);
    assert_ne!(zoomed, first);
    type_keys(&mut report, "--");
    assert_eq!(text(&mut report, 100, 30), first);
    type_keys(&mut report, "+++0");
    assert_eq!(text(&mut report, 100, 30), first);
}

#[test]
fn table_is_filtered_and_opens_the_gantt_chart() {
    let simulated = two_configurations();
    let mut report = TerminalReport::new(&[simulated[0].simulation()]);
    // While a text is typed, keys with a meaning are characters.
    type_keys(&mut report, "7/HUQ7\u{8}\u{8}G");
    let typing = text(&mut report, 100, 20);
    assert!(
        typing.contains("Name contains: HUG▏  Workloads 1 to 1 of 1"),
        "{typing}"
    );
    type_keys(&mut report, "\n\n");
    let gantt = text(&mut report, 100, 30);
    assert!(line(&gantt, "huge:").contains("never admitted"), "{gantt}");
    type_keys(&mut report, "7/\u{1b}");
    assert!(text(&mut report, 100, 20).contains("Workloads 1 to 7 of 7"));
    assert_eq!(report.handle(Key::Escape), Next::Quit);
}

#[test]
fn next_resource_stays_at_the_queue() {
    let simulated = two_configurations();
    let mut report = TerminalReport::new(&[simulated[0].simulation()]);
    let titles: Vec<String> = (0..3)
        .map(|at| {
            type_keys(&mut report, if at == 0 { "3" } else { "r" });
            let text = text(&mut report, 80, 24);
            text.lines().nth(3).unwrap().to_owned()
        })
        .collect();
    let expected = [
        "cpu of cohort all, by child",
        "example.com/gpu of cohort all, by child",
        "cpu of cohort all, by child",
    ];
    assert_eq!(titles, expected);
}

#[test]
fn simulations_follow_each_other() {
    let simulated = two_configurations();
    let simulations = simulated.each_ref().map(Simulated::simulation);
    let mut report = TerminalReport::new(&simulations);
    let title = |report: &mut TerminalReport<'_>, keys: &str| {
        type_keys(report, keys);
        let text = text(report, 80, 24);
        text.lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(
        title(&mut report, "4"),
        "Workloads over time │ 1 of 2 example, grace.yaml"
    );
    assert_eq!(
        title(&mut report, "n"),
        "Workloads over time │ 2 of 2 example, none.yaml"
    );
    assert_eq!(
        title(&mut report, "n"),
        "Workloads over time │ 1 of 2 example, grace.yaml"
    );
    assert_eq!(
        title(&mut report, "p"),
        "Workloads over time │ 2 of 2 example, none.yaml"
    );
    assert_eq!(
        title(&mut report, "\t"),
        "Gantt chart of workloads │ 2 of 2 example, none.yaml"
    );
    assert_eq!(report.handle(Key::BackTab), Next::Continue);
    assert_eq!(
        title(&mut report, ""),
        "Workloads over time │ 2 of 2 example, none.yaml"
    );
}
