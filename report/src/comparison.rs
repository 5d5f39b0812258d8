//! The simulations side by side.

use crate::comparison_rows::{ComparisonCell, comparison_rows};
use crate::simulation::Simulation;
use maud::{Markup, html};

/// Returns a table with a column for each simulation, with differences from the first one of the same trace.
pub(crate) fn comparison_table(simulations: &[Simulation<'_>]) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label="Comparison" {
            table.comparison {
                caption { "In parentheses: the difference from the first configuration of the same trace" }
                thead { tr {
                    th scope="col" { "Measure" }
                    @for (at, it) in simulations.iter().enumerate() {
                        th scope="col" { a href={ "#simulation-" (at) } { (it.title()) } }
                    }
                } }
                tbody {
                    @for row in comparison_rows(simulations) { tr {
                        th scope="row" { (row.name) }
                        @for cell in &row.cells { (draw_cell(cell)) }
                    } }
                }
            }
        }
    }
}

fn draw_cell(cell: &ComparisonCell) -> Markup {
    html! {
        td {
            (cell.text)
            @if let Some(change) = &cell.change {
                " " span.change { "(" (change) ")" }
            }
        }
    }
}
