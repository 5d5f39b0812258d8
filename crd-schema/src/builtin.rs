//! Built-in kinds, decoded, defaulted and validated as the API server does.

mod validation;
