//! Paths of fields with the storage of Go's slices.

use std::cell::RefCell;
use std::rc::Rc;

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step<'t> {
    /// A variable, or a field as it is written in the expression.
    Name(&'t str),
    Items,
    Indices,
    Keys,
    Values,
}

/// A path. It shares its storage with the path that it extends, like a slice in Go: a second extension of one path
/// overwrites the last step of the first if the storage has room. cel-go estimates a size after it has estimated
/// others, and reads the overwritten step; the API server's costs depend on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Path<'t> {
    storage: Rc<RefCell<Vec<Step<'t>>>>,
    length: usize,
}

impl<'t> Path<'t> {
    pub(super) fn new(variable: &'t str) -> Self {
        Self {
            storage: Rc::new(RefCell::new(vec![Step::Name(variable)])),
            length: 1,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The path with one more step.
    pub(super) fn append(&self, step: Step<'t>) -> Self {
        let length = self.length.saturating_add(1);
        if let Some(free) = self.storage.borrow_mut().get_mut(self.length) {
            *free = step;
            return Self {
                storage: Rc::clone(&self.storage),
                length,
            };
        }
        let mut steps = self.steps();
        // A full slice is copied to one of twice the size.
        steps.resize(self.length.saturating_mul(2).max(1), step);
        Self {
            storage: Rc::new(RefCell::new(steps)),
            length,
        }
    }

    /// The steps as they are now.
    pub(super) fn steps(&self) -> Vec<Step<'t>> {
        let storage = self.storage.borrow();
        storage.iter().take(self.length).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn append_overwrites_shared_storage_only_if_there_is_room() {
        let path = Path::new("self");
        let two = path.append(Step::Name("a"));
        let three = two.append(Step::Items);
        let first = three.append(Step::Name("x"));
        let second = three.append(Step::Name("y"));
        assert_eq!(first.steps().last(), Some(&Step::Name("y")));
        assert_eq!(second.steps(), first.steps());
        let four = first.append(Step::Name("z"));
        three.append(Step::Name("w"));
        assert_eq!(four.steps().get(3), Some(&Step::Name("y")));
        assert_eq!(
            two.append(Step::Keys).steps(),
            [Step::Name("self"), Step::Name("a"), Step::Keys]
        );
    }
}
