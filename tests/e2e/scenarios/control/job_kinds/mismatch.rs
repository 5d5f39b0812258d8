//! A declaration that does not fit the definition of its kind.

use super::super::fixture::ControllerFixture;
use super::super::render;
use super::training_run::{apply, declaration, definition, install, spot_queue};
use crate::fixture::{DEFAULTS, Fixture};
use serde_json::Value;

const NAME: &str = "trainingruns.mismatch.example.com";

/// The webhook rejects a declaration that does not fit; the controller reports in conditions when the definition or its rights
/// change.
pub(super) fn definition_mismatch_is_reported(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    install(&mut site, &own(&definition()));
    spot_queue(&site);
    let items = own(&declaration("item.replicas"))["items"].clone();
    let wrong = items[0].to_string().replace("spec.roles", "spec.rolls");
    let kubectl = site.stage.cluster().kubectl();
    let output = kubectl.apply(&wrong, &[]).expect_rejected();
    let expected = "spec.podSets[0].forEach: Invalid value: \"spec.rolls\": spec has no field \"rolls\"; did you mean spec.roles?";
    assert!(output.stderr.contains("JK002"), "{}", output.stderr);
    assert!(output.stderr.contains(expected), "{}", output.stderr);

    // Without rights.
    apply(&mut site, &items[0].to_string());
    let forbidden = wait(&site, |it| reason(it, "Active") == "Forbidden");
    assert!(!render::has_status(&forbidden, "Active", "True"));
    assert!(render::has_status(&forbidden, "Misconfigured", "False"));
    apply(&mut site, &items[1].to_string());
    let active = wait(&site, |it| render::has_status(it, "Active", "True"));
    assert_eq!(active["status"]["observedGeneration"], 1);
    assert_eq!(reason(&active, "Misconfigured"), "Valid");

    // The project renames a field.
    let renamed = own(&definition())
        .to_string()
        .replace("\"roles\"", "\"groups\"");
    install(&mut site, &serde_json::from_str(&renamed).unwrap());
    let reported = wait(&site, |it| render::has_status(it, "Misconfigured", "True"));
    assert_eq!(reason(&reported, "Misconfigured"), "DefinitionMismatch");
    let message = render::message(&reported, "Misconfigured");
    assert_eq!(
        message,
        "spec.podSets[0].forEach: spec has no field \"roles\""
    );
    install(&mut site, &own(&definition()));
    wait(&site, |it| render::has_status(it, "Misconfigured", "False"));

    // The project is uninstalled.
    let kubectl = site.stage.cluster().kubectl();
    kubectl.run(&["delete", "crd", NAME]).expect_accepted();
    let gone = wait(&site, |it| render::has_status(it, "Active", "False"));
    assert_eq!(reason(&gone, "Active"), "KindNotInstalled");
    assert_eq!(reason(&gone, "Misconfigured"), "NotChecked");
    site.objects.delete("JobKind", NAME);
    site.stop();
}

/// The reason of a condition, whatever its status.
fn reason<'a>(object: &'a Value, of: &str) -> &'a str {
    let condition = render::condition(object, of);
    condition
        .and_then(|it| it["reason"].as_str())
        .unwrap_or_default()
}

/// The objects of the other trials, with a definition of this trial only.
fn own(object: &Value) -> Value {
    let text = object
        .to_string()
        .replace("training.example.com", "mismatch.example.com");
    serde_json::from_str(&text.replace("kind-trainingruns", "kind-mismatch")).unwrap()
}

#[track_caller]
fn wait(site: &ControllerFixture<'_>, is_reached: impl Fn(&Value) -> bool) -> Value {
    site.objects.wait_until("JobKind", NAME, is_reached)
}
