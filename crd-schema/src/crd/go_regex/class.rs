//! Classes of signs: `[…]`, `\d` and `\p{…}`.

use super::cursor::Cursor;
use super::escape;
use super::names::{is_ascii_class, unicode_class};

/// A class that matches nothing.
pub(super) const NOTHING: &str = "[a&&b]";

/// All signs, as a part of a class.
const ALL: &str = r"\x00-\x{10FFFF}";

/// The range of surrogates, which no text contains and the crate `regex` refuses.
const SURROGATES: std::ops::RangeInclusive<u32> = 0xd800..=0xdfff;

/// Go refuses the pattern.
pub(super) struct Refused;

/// Reads `[…]` (`parseClass` of Go) and appends it; `None` if Go refuses it.
pub(super) fn bracketed(at: &mut Cursor<'_>, out: &mut String) -> Option<()> {
    at.next()?;
    let is_negated = at.take("^");
    let mut items = String::new();
    let mut is_first = true;
    while is_first || at.peek() != Some(']') {
        is_first = false;
        if let Some(item) = named(at).ok()? {
            items.push_str(&item);
        } else if let Some(class) = escaped(at).ok()? {
            items.push_str(&class);
        } else {
            range(at, &mut items)?;
        }
    }
    at.next()?;
    match (items.is_empty(), is_negated) {
        (true, false) => out.push_str(NOTHING),
        (true, true) => {
            out.push('[');
            out.push_str(ALL);
            out.push(']');
        }
        (false, _) => {
            out.push_str(if is_negated { "[^" } else { "[" });
            out.push_str(&items);
            out.push(']');
        }
    }
    Some(())
}

/// Reads an ASCII class such as `[:alpha:]`; `None` if there is none.
fn named(at: &mut Cursor<'_>) -> Result<Option<String>, Refused> {
    let mut ahead = *at;
    if !ahead.take("[:") {
        return Ok(None);
    }
    let Some(name) = ahead.take_until(":]") else {
        return Ok(None);
    };
    if !is_ascii_class(name) {
        return Err(Refused);
    }
    *at = ahead;
    Ok(Some(format!("[:{name}:]")))
}

/// Reads a class such as `\d` or `\p{L}`, as a part of a class; `None` if there is none.
pub(super) fn escaped(at: &mut Cursor<'_>) -> Result<Option<String>, Refused> {
    let mut ahead = *at;
    if !ahead.take("\\") {
        return Ok(None);
    }
    let Some(letter) = ahead.next() else {
        return Ok(None);
    };
    let class = match letter {
        'd' => "0-9".to_owned(),
        'w' => "0-9A-Za-z_".to_owned(),
        's' => r"\t\n\x0c\r\x20".to_owned(),
        'D' => "[^0-9]".to_owned(),
        'W' => "[^0-9A-Za-z_]".to_owned(),
        'S' => r"[^\t\n\x0c\r\x20]".to_owned(),
        'p' => unicode(&mut ahead, false).ok_or(Refused)?,
        'P' => unicode(&mut ahead, true).ok_or(Refused)?,
        _ => return Ok(None),
    };
    *at = ahead;
    Ok(Some(class))
}

/// Reads the name of `\p{…}` (`parseUnicodeClass` of Go).
fn unicode(at: &mut Cursor<'_>, is_negated: bool) -> Option<String> {
    let first = *at;
    let name = if at.take("{") {
        at.take_until("}")?
    } else {
        at.next()?;
        let length = first.0.len().checked_sub(at.0.len())?;
        first.0.get(..length)?
    };
    let bare = name.strip_prefix('^');
    let is_negated = is_negated != bare.is_some();
    let class = unicode_class(bare.unwrap_or(name))?;
    Some(match (class.is_empty(), is_negated) {
        (true, false) => String::new(),
        (true, true) => ALL.to_owned(),
        (false, false) => format!("\\p{class}"),
        (false, true) => format!("\\P{class}"),
    })
}

/// Reads a sign or a range of signs.
fn range(at: &mut Cursor<'_>, out: &mut String) -> Option<()> {
    let low = code(at)?;
    let mut high = low;
    // A minus before the end of the class is a literal.
    if at.0.starts_with('-') && at.0.len() > 1 && !at.0.starts_with("-]") {
        at.next()?;
        high = code(at)?;
        if high < low {
            return None;
        }
    }
    let low = if SURROGATES.contains(&low) {
        SURROGATES.end().checked_add(1)?
    } else {
        low
    };
    let high = if SURROGATES.contains(&high) {
        SURROGATES.start().checked_sub(1)?
    } else {
        high
    };
    if low <= high {
        escape::push_sign(char::from_u32(low)?, out);
        if low < high {
            out.push('-');
            escape::push_sign(char::from_u32(high)?, out);
        }
    }
    Some(())
}

/// Reads a sign of a class: its code point.
fn code(at: &mut Cursor<'_>) -> Option<u32> {
    if at.take("\\") {
        escape::code(at)
    } else {
        at.next().map(u32::from)
    }
}
