//! Checks constant formats with their arguments (`stringFormatValidator` of cel-go's `ext/formatting.go`).

use super::cel_types::Type;
use crate::crd::expression::{FormatClause, FormatPiece, parse_format};
use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue};

/// Checks a call of `format` whose format and list of arguments are literals.
///
/// # Errors
///
/// The reason if the format is invalid, or an argument does not fit.
pub(super) fn check<'a, 't: 'a>(
    call: &CallExpr,
    kind: &dyn Fn(&IdedExpr) -> &'a Type<'t>,
) -> Result<(), String> {
    let target = call.target.as_deref().map(|it| &it.expr);
    let (Some(Expr::Literal(LiteralValue::String(format))), [list]) =
        (target, call.args.as_slice())
    else {
        return Ok(());
    };
    let Expr::List(list) = &list.expr else {
        return Ok(());
    };
    let mut args = list.elements.iter();
    for piece in parse_format(format.inner())? {
        let FormatPiece::Clause(clause) = piece else {
            continue;
        };
        let arg = args.next().ok_or("index out of range")?;
        if !fits(clause, arg, kind) {
            return Err("error during formatting: the clause does not fit the argument".to_owned());
        }
    }
    match args.next() {
        Some(_) => Err("too many arguments supplied to string.format".to_owned()),
        None => Ok(()),
    }
}

fn fits<'a, 't: 'a>(
    clause: FormatClause,
    arg: &IdedExpr,
    kind: &dyn Fn(&IdedExpr) -> &'a Type<'t>,
) -> bool {
    use Type::{Bool, Bytes, Double, Dynamic, Int, Text, Uint};
    let found = kind(arg);
    match clause {
        _ if matches!(found, Dynamic) && clause != FormatClause::Text => true,
        FormatClause::Text => is_text(arg, kind),
        FormatClause::Decimal | FormatClause::Octal => matches!(found, Int | Uint),
        FormatClause::Fixed(_) | FormatClause::Scientific(_) => matches!(found, Double | Text),
        FormatClause::Binary => matches!(found, Int | Uint | Bool),
        FormatClause::Hexadecimal(_) => matches!(found, Int | Uint | Text | Bytes),
    }
}

/// Whether `%s` writes a value, as far as its type is known.
fn is_text<'a, 't: 'a>(arg: &IdedExpr, kind: &dyn Fn(&IdedExpr) -> &'a Type<'t>) -> bool {
    use Type::{
        Bool, Bytes, Double, Duration, Dynamic, Int, Kind, List, Map, Null, Text, Time, Uint,
    };
    let is_known = matches!(
        kind(arg),
        Bool | Bytes
            | Double
            | Duration
            | Dynamic
            | Int
            | Kind
            | List(_)
            | Map(..)
            | Null
            | Text
            | Time
            | Uint
    );
    is_known
        && match &arg.expr {
            Expr::List(list) => list.elements.iter().all(|it| is_text(it, kind)),
            Expr::Map(map) => map.entries.iter().all(|it| match &it.expr {
                EntryExpr::MapEntry(entry) => {
                    is_text(&entry.key, kind) && is_text(&entry.value, kind)
                }
                EntryExpr::StructField(_) => true,
            }),
            _ => true,
        }
}
