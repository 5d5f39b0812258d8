//! Coordinates of plots: whole tenths of a pixel, so that they do not depend on the rounding of floating-point numbers.

use std::fmt::Write;

/// Returns where a value of a range of `span` is on an axis of a length. All are at least 0; the result is at most `length`.
pub(crate) fn position(value: i64, span: i64, length: i64) -> i64 {
    let value = value.clamp(0, span.max(0));
    let product = i128::from(value).saturating_mul(i128::from(length));
    let at = product.checked_div(i128::from(span.max(1)));
    i64::try_from(at.unwrap_or_default()).unwrap_or_default()
}

/// A path of horizontal and vertical lines, in tenths of a pixel.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepPath {
    text: String,
    x: i64,
    y: i64,
}

impl StepPath {
    /// Moves to a point without a line.
    pub(crate) fn move_to(&mut self, x: i64, y: i64) {
        // A write into a string does not fail.
        let _ = write!(self.text, "M{x} {y}");
        (self.x, self.y) = (x, y);
    }

    /// Draws a horizontal line.
    pub(crate) fn horizontal_to(&mut self, x: i64) {
        let by = x.saturating_sub(self.x);
        if by != 0 {
            let _ = write!(self.text, "h{by}");
            self.x = x;
        }
    }

    /// Draws a vertical line.
    pub(crate) fn vertical_to(&mut self, y: i64) {
        let by = y.saturating_sub(self.y);
        if by != 0 {
            let _ = write!(self.text, "v{by}");
            self.y = y;
        }
    }

    /// Adds a filled rectangle.
    pub(crate) fn rectangle(&mut self, (x, y): (i64, i64), width: i64, height: i64) {
        let _ = write!(self.text, "M{x} {y}h{width}v{height}h-{width}z");
    }

    /// Closes the path.
    pub(crate) fn close(&mut self) {
        self.text.push('z');
    }

    /// Adds other path commands.
    pub(crate) fn push(&mut self, commands: &str) {
        self.text.push_str(commands);
    }

    /// Returns the commands.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the path is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// Returns tenths of a pixel as a number of pixels, such as `12.5`.
pub(crate) fn pixels(tenths: i64) -> String {
    let (whole, part) = (tenths.div_euclid(10), tenths.rem_euclid(10));
    if part == 0 {
        return whole.to_string();
    }
    format!("{whole}.{part}")
}

#[cfg(test)]
mod tests {
    use super::{StepPath, pixels, position};

    #[test]
    fn position_does_not_overflow() {
        assert_eq!(position(i64::MAX, i64::MAX, 9_000), 9_000);
        assert_eq!(position(-1, 10, 90), 0);
        assert_eq!(position(5, 0, 90), 0);
        assert_eq!(
            (pixels(105), pixels(0), pixels(40)),
            ("10.5".to_owned(), "0".to_owned(), "4".to_owned())
        );
    }

    #[test]
    fn step_path_omits_empty_lines() {
        let mut path = StepPath::default();
        path.move_to(0, 10);
        path.horizontal_to(5);
        path.vertical_to(10);
        path.vertical_to(0);
        path.close();
        assert_eq!(path.as_str(), "M0 10h5v-10z");
    }
}
