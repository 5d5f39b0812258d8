//! Rules of users, and a configuration that names them.

use super::*;

/// A rule page with this expression. No other rule applies to Nodes.
fn page(expression: &str) -> String {
    format!(
        "---\nid: TEAM001\nname: node-without-owner\nkinds: [{{version: v1, kind: Node, plural: nodes}}]\n\
         validations:\n- expression: {expression}\n---\n# A node has an owner\n"
    )
}

/// The output of a command with a rule page and a configuration, or its error.
fn emitted(command: &[&str], page: Option<&str>, config: &str) -> Result<String, String> {
    let folder = TempDir::new().unwrap();
    let (rules, file) = (
        folder.path().join("rules"),
        folder.path().join("config.yaml"),
    );
    let (rules_shown, shown) = (rules.to_str().unwrap(), file.to_str().unwrap());
    fs::write(&file, config).unwrap();
    let mut words = [command, &["--config", shown]].concat();
    if let Some(page) = page {
        fs::create_dir(&rules).unwrap();
        fs::write(rules.join("owner.md"), page).unwrap();
        words.extend(["--rules", rules_shown]);
    }
    let mut out = Vec::new();
    match run(parse(&words).unwrap(), &mut out) {
        Ok(()) => Ok(String::from_utf8(out).unwrap()),
        Err(error) => Err(error
            .to_string()
            .replace(rules_shown, "RULES")
            .replace(shown, "CONFIG")),
    }
}

const COMMANDS: [&[&str]; 3] = [&["definitions"], &["policies"], SERVICE];

#[test]
fn configuration_may_name_user_rules() {
    let good = page("'has(object.metadata.labels)'");
    for (config, key) in [
        ("rules: {actions: {TEAM001: warn}}\n", "rules.actions"),
        (
            "rules: {namespaces: {one: {actions: {TEAM001: audit}}}}\n",
            "rules.namespaces.one.actions",
        ),
        (
            "rules: {exceptions: [{rules: [TEAM001], selector: {names: [old]}, reason: gone soon, expires: 2027-01-01}]}\n",
            "rules.exceptions[0].rules",
        ),
    ] {
        for command in COMMANDS {
            let with = emitted(command, Some(&good), config);
            let plain = emitted(command, Some(&good), "");
            assert!(with.is_ok(), "{command:?} {config}: {:?}", with.err());
            assert!(with == plain, "{command:?} {config}");
            let error = emitted(command, None, config).unwrap_err();
            let expected = format!("the configuration CONFIG is invalid: {key}: there is no rule ");
            assert!(error.starts_with(&expected), "{command:?}: {error}");
        }
    }
}

#[test]
fn webhooks_cover_kinds_of_enabled_user_rules() {
    let good = page("'has(object.metadata.labels)'");
    let sends_nodes = |config: &str| {
        let text = emitted(SERVICE, Some(&good), config).unwrap();
        text.contains("- nodes\n")
    };
    assert!(sends_nodes(""));
    assert!(sends_nodes("rules: {actions: {TEAM001: audit}}\n"));
    assert!(!sends_nodes("rules: {actions: {TEAM001: 'off'}}\n"));
}

#[test]
fn uncompilable_user_rule_error_names_rule_and_line() {
    for command in COMMANDS {
        let error = emitted(command, Some(&page("object.spec ==")), "").unwrap_err();
        let (place, reason) = error.split_once(" Syntax error: ").expect(&error);
        assert_eq!(
            place,
            "RULES/owner.md:6:15: the expression of TEAM001, at its 1:15:"
        );
        assert!(reason.starts_with("mismatched input '<EOF>'"), "{reason}");
    }
}
