//! Untrusted names.

use crate::screen::{draw, rows, type_keys};
use crate::traces::{Simulated, example};
use lockkeeper_report::TerminalReport;
use proptest::prelude::*;
use ratatui_core::text::Span;

const HOSTILE: &str =
    "\u{1b}[2J\u{9b}31m\r\n\t\u{7}\u{202e}\u{2066}\u{200d}\u{feff}e\u{301}\u{301}漢字👩\u{200d}🚀";

/// Draws all views, and checks that a terminal shows each cell where it is.
fn check_views(prefix: &str) {
    let trace = example(|name| format!("{prefix}{name}"));
    let simulated = Simulated::new(trace, Some(prefix));
    let simulations = [simulated.simulation(), simulated.simulation()];
    let mut report = TerminalReport::new(&simulations);
    for view in "1234567".chars() {
        type_keys(&mut report, &view.to_string());
        for (width, height) in [(60, 15), (97, 30)] {
            let buffer = draw(&mut report, width, height);
            for cell in &buffer.content {
                let symbol = cell.symbol();
                assert!(!symbol.contains(char::is_control), "{symbol:?}");
                assert!(
                    !symbol.contains(['\u{202e}', '\u{2066}', '\u{200d}']),
                    "{symbol:?}"
                );
                assert!(symbol.chars().count() <= 300, "{symbol:?}");
            }
            for row in rows(&buffer) {
                assert!(Span::raw(&row).width() <= usize::from(width), "{row:?}");
            }
        }
    }
}

#[test]
fn hostile_names_never_reach_the_terminal() {
    check_views(HOSTILE);
    check_views(&"e\u{301}".repeat(10_000));
    check_views(&"漢".repeat(100));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_name_is_drawn_in_its_cells(prefix in proptest::collection::vec(any::<char>(), 0..40)) {
        check_views(&prefix.into_iter().collect::<String>());
    }
}
