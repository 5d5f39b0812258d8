//! The current path of a walk over an object.

use lockkeeper_api::field_path::FieldPath;

/// One step of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PathStep<'a> {
    Field(&'a str),
    /// An entry of a map, with a name from the object.
    Entry(&'a str),
    Index(usize),
}

/// The steps from the root. Paths are built only for findings, because most values have none.
#[derive(Debug, Default)]
pub(crate) struct PathStack<'a> {
    steps: Vec<PathStep<'a>>,
}

impl<'a> PathStack<'a> {
    /// Runs `visit` one step further down.
    pub(crate) fn with_step<T>(
        &mut self,
        step: PathStep<'a>,
        visit: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.steps.push(step);
        let out = visit(self);
        self.steps.pop();
        out
    }

    /// Adds a step.
    pub(crate) fn push(&mut self, step: PathStep<'a>) {
        self.steps.push(step);
    }

    /// Removes the last step.
    pub(crate) fn pop(&mut self) {
        self.steps.pop();
    }

    /// The path with map entries as fields, as the API server prints them in schema errors.
    pub(crate) fn path(&self) -> FieldPath {
        self.steps
            .iter()
            .fold(FieldPath::default(), |path, step| match step {
                PathStep::Field(name) | PathStep::Entry(name) => path.named(*name),
                PathStep::Index(at) => path.index(*at),
            })
    }

    /// The path with map entries in brackets, as the API server prints them for lists and CEL.
    pub(crate) fn keyed_path(&self) -> FieldPath {
        self.steps
            .iter()
            .fold(FieldPath::default(), |path, step| match step {
                PathStep::Field(name) => path.named(*name),
                PathStep::Entry(name) => path.key(*name),
                PathStep::Index(at) => path.index(*at),
            })
    }

    pub(crate) fn depth(&self) -> usize {
        self.steps.len()
    }
}
