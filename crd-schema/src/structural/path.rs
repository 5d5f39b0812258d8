//! Where a walk over an object is.

use lockkeeper_api::field_path::FieldPath;

/// One step down.
#[derive(Clone, Copy, Debug)]
pub(super) enum PathStep<'a> {
    Field(&'a str),
    /// An entry of a map, whose name the schema does not know.
    Entry(&'a str),
    Index(usize),
}

/// The steps from the top. Paths are made only for findings.
#[derive(Debug, Default)]
pub(super) struct PathStack<'a> {
    steps: Vec<PathStep<'a>>,
}

impl<'a> PathStack<'a> {
    /// Goes down, does something there, and comes back.
    pub(super) fn with_step<T>(
        &mut self,
        step: PathStep<'a>,
        visit: impl FnOnce(&mut Self) -> T,
    ) -> T {
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
                PathStep::Field(name) | PathStep::Entry(name) => path.named(*name),
                PathStep::Index(at) => path.index(*at),
            })
    }

    /// The path, with entries of maps in brackets, as for lists and expressions.
    pub(super) fn keyed_path(&self) -> FieldPath {
        self.steps
            .iter()
            .fold(FieldPath::default(), |path, step| match step {
                PathStep::Field(name) => path.named(*name),
                PathStep::Entry(name) => path.key(*name),
                PathStep::Index(at) => path.index(*at),
            })
    }

    pub(super) fn depth(&self) -> usize {
        self.steps.len()
    }
}
