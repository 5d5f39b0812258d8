//! Where a walk over an object is.

use lockkeeper_api::field_path::FieldPath;

/// One step down.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Field(&'a str),
    /// An entry of a map, whose name the schema does not know.
    Entry(&'a str),
    Index(usize),
}

/// The steps from the top. Paths are made only for findings.
#[derive(Debug, Default)]
pub(super) struct Way<'a> {
    steps: Vec<Step<'a>>,
}

impl<'a> Way<'a> {
    /// Goes down, does something there, and comes back.
    pub(super) fn down<T>(&mut self, step: Step<'a>, visit: impl FnOnce(&mut Self) -> T) -> T {
        self.steps.push(step);
        let out = visit(self);
        self.steps.pop();
        out
    }

    /// The path, with entries of maps as the API server's schema validation prints them: like fields.
    pub(super) fn path(&self) -> FieldPath {
        self.steps
            .iter()
            .fold(FieldPath::default(), |path, step| match step {
                Step::Field(name) | Step::Entry(name) => path.named(*name),
                Step::Index(at) => path.index(*at),
            })
    }

    /// The path, with entries of maps in brackets, as for lists and expressions.
    pub(super) fn keyed_path(&self) -> FieldPath {
        self.steps
            .iter()
            .fold(FieldPath::default(), |path, step| match step {
                Step::Field(name) => path.named(*name),
                Step::Entry(name) => path.key(*name),
                Step::Index(at) => path.index(*at),
            })
    }

    pub(super) fn depth(&self) -> usize {
        self.steps.len()
    }
}
