//! Warnings that state what the controller will do with an object that is being created.

use futures_util::future::BoxFuture;

/// Predicts what the controller will do with an object.
pub trait AdmissionPreview: Send + Sync {
    /// A warning for the user who creates an object, given as JSON. `None` for objects that are not queued, and if the answer
    /// is not known at once. The text is shown to any user who may create the object: it names no object that only others may
    /// read. A request waits for it: it must be ready within milliseconds, and must not ask the API server.
    fn preview(&self, object: String) -> BoxFuture<'_, Option<String>>;
}
