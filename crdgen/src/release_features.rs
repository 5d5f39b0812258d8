//! What the supported releases of Kubernetes lack, so that the emitted objects omit it.

use lockkeeper_crd_schema::builtin::Release;
use lockkeeper_policies::cel::CelRule;

/// The first release that serves `MutatingAdmissionPolicy` in `v1`.
pub(crate) const MUTATING_POLICIES: Release = Release {
    major: 1,
    minor: 36,
};

/// The first release whose estimate of the cost of CEL uses `maxLength` of int-or-string fields.
///
/// Before it a quantity counts as a string of the size of a request (`SchemaDeclType` in
/// `k8s.io/apiserver/pkg/cel/common/schemas.go`, 0.33 and 0.34).
pub(crate) const BOUNDED_QUANTITIES: Release = Release {
    major: 1,
    minor: 34,
};

/// The first release whose API server accepts the expression in a schema: `None` if all supported ones do.
///
/// An expression that parses a quantity of each item of a list costs too much for servers before [`BOUNDED_QUANTITIES`].
/// The webhook evaluates its rule there.
pub(crate) fn accepted_since(expression: &CelRule) -> Option<Release> {
    accepted_since_at(
        expression.path.contains("[]"),
        [
            Some(&*expression.expression),
            expression.message_expression.as_deref(),
        ],
    )
}

/// The same of expressions, and whether they are about items of a list.
pub(crate) fn accepted_since_at<'a>(
    is_about_items: bool,
    expressions: impl IntoIterator<Item = Option<&'a str>>,
) -> Option<Release> {
    let mut expressions = expressions.into_iter().flatten();
    let parses_quantity =
        expressions.any(|it| it.contains("isQuantity(") || it.contains("quantity("));
    (is_about_items && parses_quantity).then_some(BOUNDED_QUANTITIES)
}
