use super::messages::SyntaxError;
use super::values_max::VALUES_MAX;
use serde_json::Value;

/// The most parser events per value: mappings and lists have a start and an end.
const EVENTS_PER_VALUE: usize = 3;

/// Decodes all documents of a YAML or JSON text. Null documents are skipped.
///
/// # Errors
///
/// The text is not valid YAML, has more than [`VALUES_MAX`] values, or its aliases expand to more values than the
/// parser's limit for aliases.
pub fn parse_documents(text: &str) -> Result<Vec<Value>, SyntaxError> {
    let options = serde_saphyr::options! {
        // The limits for anchors and aliases are the parser's own: a short text must not become a large value.
        budget: serde_saphyr::budget! {
            max_nodes: VALUES_MAX,
            max_documents: VALUES_MAX,
            max_events: VALUES_MAX.saturating_mul(EVENTS_PER_VALUE),
        },
    };
    serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| SyntaxError::in_text(&error, text))
}

#[cfg(test)]
mod tests {
    use super::parse_documents;
    use std::fmt::Write as _;

    fn message(text: &str) -> String {
        parse_documents(text).unwrap_err().to_string()
    }

    #[test]
    fn parse_documents_reads_many_documents_and_values() {
        let many = "a: 1\n---\n".repeat(40_000);
        assert_eq!(parse_documents(&many).unwrap().len(), 40_000);
        let wide = format!("items: [{}]\n", "{a: 1, b: 2}, ".repeat(120_000));
        let documents = parse_documents(&wide).unwrap();
        assert_eq!(documents[0]["items"].as_array().unwrap().len(), 120_000);
    }

    #[test]
    fn parse_documents_rejects_alias_bombs() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
            let _ = writeln!(bomb, "a{level}: &a{level} [{aliases}]");
        }
        let message = message(&bomb);
        assert!(message.contains("anchors and aliases"), "{message}");
    }

    #[test]
    fn parse_documents_describes_templates_without_parser_terms() {
        for (text, line) in [
            ("kind: Job\nname: {{ .Values.name }}\n", 2),
            ("{{- if .Values.on }}\nkind: Job\n{{- end }}\n", 1),
        ] {
            let message = message(text);
            assert!(message.starts_with(&format!("{line}:")), "{message}");
            assert!(message.contains("a template, not a manifest"), "{message}");
        }
        assert!(message("a: [1\n").contains("unclosed bracket"));
        assert!(message("a: 1\na: 2\n").contains("duplicate key a"));
    }
}
