//! Patterns for the names of files and folders.

use std::path::Path;
use std::str::FromStr;

/// A pattern such as `templates`, `*.json` or `charts/**/ci`: `*` and `?` match within a name, `**` matches any number
/// of folders. A pattern without a slash matches a name in any folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    /// The parts between slashes.
    parts: Vec<String>,
    /// Whether the whole path must match.
    is_path: bool,
}

/// The pattern is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern is empty; give a name such as templates or a path such as charts/**/ci")]
pub struct PatternError;

impl FromStr for NamePattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        Self::parse(text)
    }
}

impl NamePattern {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// The pattern is empty.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let trimmed = text.trim_start_matches("./").trim_end_matches('/');
        if trimmed.is_empty() {
            return Err(PatternError);
        }
        Ok(Self {
            parts: trimmed.split('/').map(str::to_owned).collect(),
            is_path: trimmed.contains('/'),
        })
    }

    /// Whether the pattern matches a path as the user gave it, or below it.
    #[must_use]
    pub fn matches(&self, path: &Path) -> bool {
        let names: Vec<String> = path
            .iter()
            .map(|it| it.to_string_lossy().into_owned())
            .filter(|it| it != ".")
            .collect();
        let parts: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if self.is_path {
            matches_parts(&parts, &names)
        } else {
            let last = names.last().zip(parts.first());
            last.is_some_and(|(name, part)| matches_name(part.as_bytes(), name.as_bytes()))
        }
    }
}

/// Matches folder by folder. `reachable[i]` is whether the parts so far match the first `i` names.
fn matches_parts(parts: &[&str], names: &[&str]) -> bool {
    let mut reachable = vec![false; names.len().saturating_add(1)];
    if let Some(first) = reachable.first_mut() {
        *first = true;
    }
    for part in parts {
        let mut next = vec![false; reachable.len()];
        let mut is_after = false;
        for (at, slot) in next.iter_mut().enumerate() {
            let before = at.checked_sub(1);
            *slot = if *part == "**" {
                is_after |= reachable.get(at) == Some(&true);
                is_after
            } else {
                let name = before.and_then(|it| names.get(it));
                let was = before.and_then(|it| reachable.get(it)) == Some(&true);
                was && name.is_some_and(|it| matches_name(part.as_bytes(), it.as_bytes()))
            };
        }
        reachable = next;
    }
    reachable.last() == Some(&true)
}

/// Matches a name with `*` and `?`. On a mismatch, the last star takes one more byte.
fn matches_name(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name) = (0_usize, 0_usize);
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = name.get(in_name) {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at = at.saturating_add(1);
            }
            Some(it) if *it == b'?' || it == byte => {
                at = at.saturating_add(1);
                in_name = in_name.saturating_add(1);
            }
            _ => {
                let Some((star_at, taken)) = star else {
                    return false;
                };
                at = star_at.saturating_add(1);
                in_name = taken.saturating_add(1);
                star = Some((star_at, in_name));
            }
        }
    }
    pattern.iter().skip(at).all(|it| *it == b'*')
}

#[cfg(test)]
mod tests {
    use super::NamePattern;
    use std::path::Path;

    #[test]
    fn name_pattern_matches_names_and_paths() {
        for (pattern, path, expected) in [
            ("templates", "charts/a/templates", true),
            ("templates", "charts/templates/a.yaml", false),
            ("templates/", "./templates", true),
            ("*.json", "a/b.json", true),
            ("*.json", "a.json/b", false),
            ("a*b*c", "aXbYbc", true),
            ("a?c", "ac", false),
            ("charts/*/ci", "charts/a/ci", true),
            ("charts/*/ci", "charts/a/b/ci", false),
            ("charts/**/ci", "./charts/a/b/ci", true),
            ("charts/**/ci", "charts/ci", true),
            ("**/ci", "ci", true),
            ("charts/**", "charts/a", true),
            ("./charts/a", "charts/a", true),
        ] {
            let parsed = NamePattern::parse(pattern).unwrap();
            assert_eq!(
                parsed.matches(Path::new(path)),
                expected,
                "{pattern} {path}"
            );
        }
        assert!(NamePattern::parse("./").is_err());
    }
}
