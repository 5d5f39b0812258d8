//! Counts agreement, and compares it with the floors.

use crate::compare::{Agreement, Comparison};
use serde_json::Value;
use std::collections::BTreeMap;
use std::env;

/// The least agreement of each measure, in percent.
pub type Floors = [(&'static str, f64); 8];

/// The floors for custom resources of all projects.
pub const RESOURCE_FLOORS: Floors = [
    ("outcome", 99.9),
    ("decodes", 99.9),
    ("stage", 99.9),
    ("causes", 99.5),
    ("strict", 99.5),
    ("warnings", 99.5),
    ("defaulted", 99.9),
    ("costs", 100.0),
];

/// The floors for definitions.
pub const DEFINITION_FLOORS: Floors = [
    ("outcome", 99.5),
    ("decodes", 99.5),
    ("stage", 99.5),
    ("causes", 99.5),
    ("strict", 99.5),
    ("warnings", 99.5),
    ("defaulted", 99.0),
    ("costs", 98.0),
];

/// The floors for objects of built-in kinds. The findings of their validation are not part of them yet: only the
/// measures of the decoder and of defaults are, and that no accepted object is rejected.
pub const BUILT_IN_FLOORS: Floors = [
    ("outcome", 99.5),
    ("decodes", 99.9),
    ("stage", 99.5),
    ("causes", 98.5),
    ("strict", 99.5),
    ("warnings", 99.4),
    ("defaulted", 99.5),
    ("costs", 100.0),
];

/// The differences per measure that are printed without `CRDCHECK_FAILURES`.
const FAILURES_SHOWN: usize = 3;

/// Agreeing and all cases of a measure.
#[derive(Clone, Copy, Default)]
struct Count {
    agreeing: usize,
    all: usize,
}

impl Count {
    fn percent(self) -> f64 {
        if self.all == 0 {
            100.0
        } else {
            100.0 * self.agreeing as f64 / self.all as f64
        }
    }
}

#[derive(Clone, Default)]
struct Score {
    measures: BTreeMap<&'static str, Count>,
    false_positives: usize,
    false_negatives: usize,
}

/// The scores of all projects.
#[derive(Default)]
pub struct Scores {
    projects: BTreeMap<String, Score>,
    total: Score,
    failures: BTreeMap<&'static str, Vec<String>>,
    classes: BTreeMap<(&'static str, String, String), usize>,
}

impl Scores {
    pub fn add(&mut self, project: &str, case: &Value, comparison: &Comparison) {
        let mutation = case["mutation"].as_str().unwrap_or_default();
        let score = self.projects.entry(project.to_owned()).or_default();
        for (name, agreement) in comparison.measures() {
            let difference = match agreement {
                Agreement::NotMeasured => continue,
                Agreement::Agrees => None,
                Agreement::Differs(difference) => Some(difference),
            };
            for score in [&mut *score, &mut self.total] {
                let count = score.measures.entry(name).or_default();
                count.all += 1;
                count.agreeing += usize::from(difference.is_none());
            }
            if let Some(difference) = difference {
                let text = format!("{} ({mutation}): {difference}", case["id"]);
                self.failures.entry(name).or_default().push(text);
                let class = (name, project.to_owned(), mutation.to_owned());
                *self.classes.entry(class).or_default() += 1;
            }
        }
        if matches!(comparison.outcome, Agreement::Differs(_)) {
            for score in [score, &mut self.total] {
                score.false_positives += usize::from(comparison.is_false_positive);
                score.false_negatives += usize::from(!comparison.is_false_positive);
            }
        }
    }

    /// Prints the differences by class, the first ones of each measure, and the table.
    pub fn print(&self) {
        let shown = env::var("CRDCHECK_FAILURES")
            .ok()
            .and_then(|it| it.parse().ok());
        let shown: usize = shown.unwrap_or(FAILURES_SHOWN);
        for (measure, failures) in &self.failures {
            for failure in failures.iter().take(shown) {
                println!("{measure}: {failure}");
            }
        }
        let mut classes: Vec<_> = self.classes.iter().collect();
        classes.sort_by_key(|it| std::cmp::Reverse(*it.1));
        for ((measure, project, mutation), count) in classes.into_iter().take(30) {
            println!("{count:5} {measure} {project} {mutation}");
        }
        println!(
            "{:30} {:>6} {:>4} {:>4}  outcome / decodes / stage / causes / strict / warnings / defaulted / costs",
            "project", "cases", "fp", "fn"
        );
        for (project, score) in self
            .projects
            .iter()
            .map(|it| (it.0.as_str(), it.1))
            .chain([("all", &self.total)])
        {
            let all = score
                .measures
                .get("outcome")
                .copied()
                .unwrap_or_default()
                .all;
            let percents = RESOURCE_FLOORS.iter().map(|(name, _)| {
                let count = score.measures.get(name).copied().unwrap_or_default();
                format!("{:.2} % of {}", count.percent(), count.all)
            });
            let percents: Vec<String> = percents.collect();
            println!(
                "{project:30} {all:6} {:4} {:4}  {}",
                score.false_positives,
                score.false_negatives,
                percents.join(" / ")
            );
        }
    }

    pub fn assert_floors(&self, floors: &Floors) {
        for &(name, floor) in floors {
            let percent = self
                .total
                .measures
                .get(name)
                .copied()
                .unwrap_or_default()
                .percent();
            assert!(
                percent >= floor,
                "{name}: {percent:.2} % is less than {floor} %"
            );
        }
    }
}
