//! Arguments and costs of calls.

use super::path::Path;
use super::size::Size;
use crate::crd::definition_checks::cel_types::Type;
use kube_cel::cel::common::ast::{Expr, LiteralValue};

/// The sizes of the keys (or indices) and values of a list or map.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) is_list: bool,
    pub(super) key: Size,
    pub(super) value: Size,
}

impl Entry {
    pub(super) fn union(left: Option<Self>, right: Option<Self>) -> Option<Self> {
        let (left, right) = (left?, right?);
        Some(Self {
            is_list: left.is_list,
            key: left.key.union(right.key),
            value: left.value.union(right.value),
        })
    }
}

/// An argument of a call, or its target.
#[derive(Debug)]
pub(super) struct Argument<'t, 's> {
    pub(super) tree: &'t Expr,
    pub(super) kind: Type<'s>,
    pub(super) path: Path<'t>,
    /// `None` if nothing is known about the size.
    pub(super) size: Option<Size>,
    pub(super) entry: Option<Entry>,
    /// The largest cost of evaluating it.
    pub(super) cost: u64,
    /// The size of the items of the list that a schema describes.
    pub(super) item_size: Option<Size>,
}

impl<'s> Argument<'_, 's> {
    pub(super) fn size(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }

    /// The type and the size of the items of a list.
    pub(super) fn items(&self) -> Option<(&Type<'s>, Size)> {
        let (Type::List(item) | Type::Optional(item) | Type::Map(item, _)) = &self.kind else {
            return None;
        };
        Some((item, self.item_size.unwrap_or(Size::UNKNOWN)))
    }

    /// The value of an integer literal.
    pub(super) fn integer(&self) -> Option<i64> {
        match self.tree {
            Expr::Literal(LiteralValue::Int(number)) => Some(*number.inner()),
            _ => None,
        }
    }

    /// The value of an integer literal as a size; another value if it is none.
    pub(super) fn count_or(&self, other: u64) -> u64 {
        self.integer()
            .map_or(other, |it| u64::try_from(it).unwrap_or(0))
    }
}

/// The cost of a call without that of its target, and the size of its result.
#[derive(Debug, Default)]
pub(super) struct CallCost {
    pub(super) cost: u64,
    pub(super) size: Option<Size>,
    pub(super) entry: Option<Entry>,
}

impl CallCost {
    pub(super) fn new(cost: u64) -> Self {
        Self {
            cost,
            ..Self::default()
        }
    }

    pub(super) fn with_size(cost: u64, size: Size) -> Self {
        Self {
            cost,
            size: Some(size),
            entry: None,
        }
    }
}
