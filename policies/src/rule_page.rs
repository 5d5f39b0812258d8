//! The fenced blocks of a rule page: examples and their expected findings.

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The info string after the opening fence.
    pub info: String,
    /// The content, without the fences.
    pub text: String,
    /// The line of the opening fence, from 1.
    pub line: usize,
}

/// The blocks of a page, in order. An unclosed block ends at the end of the page.
#[must_use]
pub fn blocks(page: &str) -> Vec<Block> {
    let mut out = Vec::new();
    let mut lines = (1_usize..).zip(page.lines());
    while let Some((line, text)) = lines.next() {
        let Some(info) = text.strip_prefix("```") else {
            continue;
        };
        let inside = lines.by_ref().map(|(_, text)| text);
        let text: Vec<&str> = inside.take_while(|text| !text.starts_with("```")).collect();
        out.push(Block {
            info: info.to_owned(),
            text: text.join("\n"),
            line,
        });
    }
    out
}
