//! Rules of declarations of kinds of jobs.

mod declaration_mismatch;
mod invalid_declaration;
mod mistakes;

use crate::rule::Rule;
use crate::validated_kind::{ValidatedKind, implement_type_mismatch};
use lockkeeper_api::JobKind;

static RULES: &[Rule<JobKind>] = &[invalid_declaration::RULE, declaration_mismatch::RULE];

impl ValidatedKind for JobKind {
    const NAMESPACED: bool = false;
    const OWN: bool = true;

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}
