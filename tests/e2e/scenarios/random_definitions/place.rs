//! A place in a schema.

/// Whether a place is the root, and whether `oldSelf` exists there.
#[derive(Clone)]
pub struct Place {
    is_root: bool,
    is_correlatable: bool,
}

impl Place {
    pub fn root() -> Self {
        Self {
            is_root: true,
            is_correlatable: true,
        }
    }

    /// A field, a value of a map, or an item of a list with keys.
    pub fn in_object(&self) -> Self {
        Self {
            is_root: false,
            ..self.clone()
        }
    }

    /// An item of a list without keys.
    pub fn in_list() -> Self {
        Self {
            is_root: false,
            is_correlatable: false,
        }
    }

    pub fn is_root(&self) -> bool {
        self.is_root
    }

    /// Whether stored and new values at this place are related.
    pub fn is_correlatable(&self) -> bool {
        self.is_correlatable
    }
}
