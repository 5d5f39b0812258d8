//! The page around the sections.

use crate::amount_text::number_text;
use crate::comparison::comparison_table;
use crate::content_security::{SCRIPT, policy};
use crate::page_head::PageHead;
use crate::plot::Plot;
use crate::simulation::Simulation;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Returns the page. The plots compare the simulations, if there are several.
pub(crate) fn page(
    simulations: &[Simulation<'_>],
    comparison: &[Plot],
    sections: &[Markup],
) -> Markup {
    let title = match simulations {
        [only] => format!("Simulation of {}", only.title()),
        _ => format!("{} simulations", simulations.len()),
    };
    let workloads = simulations.iter().map(|it| it.trace.jobs.len());
    let workloads = i64::try_from(workloads.sum::<usize>()).unwrap_or(i64::MAX);
    let head = PageHead {
        title: &title,
        policy: &policy(),
        generator: "lockkeeper simulate",
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            (head.markup())
            body {
                a.skip href="#main" { "Skip to content" }
                header {
                    h1 { (title) }
                    p { (number_text(workloads)) " workloads" @if simulations.len() > 1 { " in total" } ", with the decisions of Kueue in virtual time. Times count from the start of the trace." }
                    (navigation(simulations))
                }
                main id="main" {
                    @if simulations.len() > 1 {
                        section id="comparison" aria-labelledby="comparison-title" {
                            h2 id="comparison-title" { "Comparison" }
                            (comparison_table(simulations))
                            div.grid { @for plot in comparison { (plot.figure()) } }
                        }
                    }
                    @for section in sections { (section) }
                }
                footer { p { "Written by lockkeeper simulate." } }
                div.tooltip hidden="" {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

fn navigation(simulations: &[Simulation<'_>]) -> Markup {
    const PARTS: [(&str, &str); 4] = [
        ("quota", "Quota and use"),
        ("time", "Workloads over time"),
        ("waits", "Wait times"),
        ("list", "Workloads"),
    ];
    html! {
        nav aria-label="Contents" { ul {
            @if simulations.len() > 1 {
                li { a href="#comparison" { "Comparison" } }
            }
            @for (at, simulation) in simulations.iter().enumerate() {
                li {
                    a href={ "#simulation-" (at) } { (simulation.title()) }
                    ul { @for (id, name) in PARTS {
                        li { a href={ "#" (id) "-" (at) } { (name) } }
                    } }
                }
            }
        } }
    }
}
