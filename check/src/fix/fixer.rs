use super::{defaults, typos};
use crate::kinds::KindRegistry;
use crate::source::ParsedSource;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::settings::Settings;

/// Corrects typos and adds defaults.
pub struct Fixer {
    /// The kinds with schemas and defaults.
    pub kinds: KindRegistry,
    /// The objects that defaults look up, such as the default priority class.
    pub index: Index,
    /// The settings of the rules.
    pub settings: Settings,
    /// Whether defaults are written, or only typos corrected.
    pub adds_defaults: bool,
}

/// The text of a file before and after its corrections.
pub struct FixedFile {
    /// The text as it was read.
    pub before: String,
    /// The corrected text; the same if there is nothing to correct.
    pub after: String,
    /// The number of corrected words.
    pub typos_fixed: usize,
    /// The number of fields added.
    pub defaults_added: usize,
    /// Defaults that cannot be inserted safely: anchors, tags or empty fields prevent it.
    pub skipped_fields: Vec<FieldPath>,
}

impl Fixer {
    /// Applies all corrections that are safe. A correction is safe if the text then parses to exactly the intended
    /// objects.
    #[must_use]
    pub fn fix(&self, source: ParsedSource) -> FixedFile {
        let before = source.text.clone();
        let (source, typos_fixed) = typos::fix_typos(&self.kinds, source);
        let (after, defaults_added, skipped_fields) = if self.adds_defaults {
            defaults::add_defaults(&self.kinds, &self.context(), source)
        } else {
            (source.text, 0, Vec::new())
        };
        FixedFile {
            before,
            after,
            typos_fixed,
            defaults_added,
            skipped_fields,
        }
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context {
            cluster: &self.index,
            settings: &self.settings,
        }
    }
}
