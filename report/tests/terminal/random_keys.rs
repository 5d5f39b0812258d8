//! Any keys, sizes and traces.

use crate::screen::{draw, rows};
use crate::traces::Simulated;
use lockkeeper_report::{Key, Next, TerminalReport};
use lockkeeper_simulate::timeline::JobTrace;
use proptest::prelude::*;
use ratatui_core::style::Modifier;
use serde_json::{Value, json};

/// A key, or the size of the terminal.
#[derive(Clone, Copy, Debug)]
enum Input {
    Key(Key),
    Size(u16, u16),
}

fn any_key() -> impl Strategy<Value = Key> {
    let other = [
        Key::Up,
        Key::Down,
        Key::Left,
        Key::Right,
        Key::PageUp,
        Key::PageDown,
        Key::Home,
        Key::End,
        Key::Enter,
        Key::Escape,
        Key::Backspace,
        Key::Tab,
        Key::BackTab,
    ];
    let letters: Vec<char> = "1234567nprsS/?gbeE+-0hjklqx漢".chars().collect();
    prop_oneof![
        proptest::sample::select(other.to_vec()),
        proptest::sample::select(letters).prop_map(Key::Char),
        any::<char>().prop_map(Key::Char),
    ]
}

fn any_input() -> impl Strategy<Value = Input> {
    prop_oneof![
        9 => any_key().prop_map(Input::Key),
        1 => (0_u16..140, 0_u16..50).prop_map(|(width, height)| Input::Size(width, height)),
    ]
}

/// A few queues, some of them in cohorts, and jobs of any priority.
fn any_trace() -> impl Strategy<Value = JobTrace> {
    let job = (0_usize..4, 0_i64..200, 1_i64..100, -2_i32..3, 0_i64..9);
    let jobs = proptest::collection::vec(job, 0..30);
    (1_usize..5, jobs, 0_i64..20).prop_map(|(queues, mut jobs, grace_s)| {
        jobs.sort_by_key(|it| it.1);
        let names: Vec<String> = (0..queues).map(|at| format!("q{at}")).collect();
        let queues = names.iter().enumerate().map(|(at, name)| {
            let cohort = (at > 0).then(|| format!("c{}", at % 2));
            json!({
                "name": name, "cohort": cohort,
                "resourceGroups": [{"resources": ["gpu"], "flavors": [
                    {"name": "f", "quotas": [{"resource": "gpu", "nominal": at * 3}]},
                ]}],
                "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
            })
        });
        let queues: Vec<Value> = queues.collect();
        let jobs = jobs.iter().enumerate();
        let jobs = jobs.map(|(at, (queue, arrival, run_s, priority, gpu))| {
            json!({
                "name": format!("j{at}"), "clusterQueue": names[queue % names.len()], "arrival": arrival,
                "runSeconds": run_s, "priority": priority, "podSets": [{"requests": {"gpu": gpu}}],
            })
        });
        let jobs: Vec<Value> = jobs.collect();
        let value = json!({"clusterQueues": queues, "jobs": jobs, "gracePeriodSeconds": grace_s});
        serde_json::from_value(value).unwrap()
    })
}

/// At most one row below the tabs is selected in each list, and it is on the screen.
fn check_screen(report: &mut TerminalReport<'_>, width: u16, height: u16) {
    let buffer = draw(report, width, height);
    if width < 60 || height < 15 {
        return;
    }
    let lines = rows(&buffer);
    assert!(lines[0].starts_with("1 Comparison 2 Quota"), "{lines:?}");
    let row_of = |y: u16| (0..width).map(move |x| (x, y));
    let is_selected = |at: (u16, u16)| buffer[at].modifier.contains(Modifier::REVERSED);
    // A whole row, or the name in the Gantt chart; the head of a table has a selected column, and an axis a time.
    let count = |y: u16| row_of(y).filter(|at| is_selected(*at)).count();
    let selected = (3..height - 1).filter(|y| count(*y) > 1);
    assert!(selected.count() <= 1, "{lines:#?}");
    assert!(row_of(height - 1).all(is_selected), "the keys");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn selection_stays_in_range(
        traces in proptest::collection::vec(any_trace(), 1..3),
        inputs in proptest::collection::vec(any_input(), 1..80),
        has_colors in any::<bool>(),
    ) {
        let simulated: Vec<Simulated> = traces.into_iter().map(|it| Simulated::new(it, None)).collect();
        let simulations: Vec<_> = simulated.iter().map(Simulated::simulation).collect();
        let mut report = TerminalReport::new(&simulations).with_colors(has_colors);
        let (mut width, mut height) = (80, 24);
        for input in inputs {
            match input {
                Input::Size(new_width, new_height) => (width, height) = (new_width, new_height),
                Input::Key(key) => {
                    let next = report.handle(key);
                    let may_quit = matches!(key, Key::Char('q') | Key::Escape);
                    prop_assert!(next == Next::Continue || may_quit, "{key:?}");
                }
            }
            check_screen(&mut report, width, height);
        }
    }
}
