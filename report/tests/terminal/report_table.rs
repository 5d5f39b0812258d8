//! The table has the rows of the report.

use crate::screen::{draw, rows, type_keys};
use crate::traces::two_configurations;
use lockkeeper_report::{TerminalReport, render};
use roxmltree::Document;

#[test]
fn visible_rows_equal_those_of_the_report() {
    for simulated in two_configurations() {
        let page = render(&[simulated.simulation()]);
        let (_, table) = page.split_once("<table class=\"workloads\"").unwrap();
        let (table, _) = table.split_once("</table>").unwrap();
        let table = format!("<table{table}</table>");
        let document = Document::parse(&table).unwrap();
        let body = document.descendants().find(|it| it.has_tag_name("tbody"));
        let expected = body.unwrap().children().map(|row| {
            let cells = row.children().filter_map(|it| it.text());
            cells.collect::<Vec<&str>>().join(" ")
        });
        let mut report = TerminalReport::new(&[simulated.simulation()]);
        type_keys(&mut report, "7");
        let buffer = draw(&mut report, 200, 40);
        let lines = rows(&buffer);
        let words = |it: &String| it.split_whitespace().collect::<Vec<&str>>().join(" ");
        let shown = lines.iter().skip(3).take(simulated.trace.jobs.len());
        let shown: Vec<String> = shown.map(words).collect();
        assert_eq!(shown, expected.collect::<Vec<String>>());
        assert_eq!(shown.len(), 7);
    }
}
