//! Probes, and hooks of the lifecycle.

use super::context::PodContext;
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{
    integer, integer_of, is_set, list, optional_text, set, text, text_or, texts, value,
};
use crate::builtin::validation::formats::{header_name, port_name};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// Signals on Linux without those of real time.
const SIGNALS: &[&str] = &[
    "SIGABRT",
    "SIGALRM",
    "SIGBUS",
    "SIGCHLD",
    "SIGCLD",
    "SIGCONT",
    "SIGFPE",
    "SIGHUP",
    "SIGILL",
    "SIGINT",
    "SIGIO",
    "SIGIOT",
    "SIGKILL",
    "SIGPIPE",
    "SIGPOLL",
    "SIGPROF",
    "SIGPWR",
    "SIGQUIT",
    "SIGSEGV",
    "SIGSTKFLT",
    "SIGSTOP",
    "SIGSYS",
    "SIGTERM",
    "SIGTRAP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGUSR1",
    "SIGUSR2",
    "SIGVTALRM",
    "SIGWINCH",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGRTMIN",
    "SIGRTMAX",
];

/// Validates the probes of a container that has them.
pub(super) fn validate_probes(container: &Value, path: &FieldPath, out: &mut Causes) {
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = set(container, key) else {
            continue;
        };
        let path = path.child(key);
        handler(
            probe,
            &["exec", "httpGet", "tcpSocket", "grpc"],
            0,
            &path,
            out,
        );
        for key in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            out.nonnegative(path.child(key), integer(probe, key));
        }
        let grace = integer(probe, "terminationGracePeriodSeconds");
        let grace_path = path.child("terminationGracePeriodSeconds");
        if grace.is_some_and(|it| it <= 0) {
            out.invalid(grace_path.clone(), "must be greater than 0");
        }
        if key == "readinessProbe" {
            if grace.is_some() {
                out.invalid(grace_path, "must not be set for readinessProbes");
            }
        } else if !matches!(integer(probe, "successThreshold"), None | Some(0 | 1)) {
            out.invalid(path.child("successThreshold"), "must be 1");
        }
    }
}

/// Validates the lifecycle of a container.
pub(super) fn validate_lifecycle(
    lifecycle: &Value,
    pod: &PodContext<'_>,
    path: &FieldPath,
    out: &mut Causes,
) {
    for key in ["postStart", "preStop"] {
        if let Some(hook) = set(lifecycle, key) {
            let kinds = ["exec", "httpGet", "tcpSocket", "sleep"];
            handler(hook, &kinds, pod.grace_period(), &path.child(key), out);
        }
    }
    let uses_signal = |it: &Value| is_set(value(it, "lifecycle"), "stopSignal");
    let Some(signal) = optional_text(lifecycle, "stopSignal").filter(|_| pod.keeps(uses_signal))
    else {
        return;
    };
    let path = path.child("stopSignal");
    match pod.os() {
        None => out.forbidden(
            path,
            "may not be set for containers with empty `spec.os.name`",
        ),
        Some("windows") => out.one_of(path, signal, &["SIGKILL", "SIGTERM"]),
        Some("linux") if !is_real_time(signal) => out.one_of(path, signal, SIGNALS),
        Some(_) => {}
    }
}

fn is_real_time(signal: &str) -> bool {
    let number = |prefix: &str| signal.strip_prefix(prefix)?.parse::<u8>().ok();
    number("SIGRTMIN+").is_some_and(|it| (1..=15).contains(&it))
        || number("SIGRTMAX-").is_some_and(|it| (1..=14).contains(&it))
}

fn handler(
    handler: &Value,
    kinds: &[&'static str],
    grace_period: i64,
    path: &FieldPath,
    out: &mut Causes,
) {
    let mut count: usize = 0;
    for key in kinds {
        let Some(action) = set(handler, key) else {
            continue;
        };
        let path = path.child(key);
        count = count.saturating_add(1);
        if count > 1 {
            out.forbidden(path, "may not specify more than 1 handler type");
            continue;
        }
        match *key {
            "exec" => {
                if texts(action, "command").is_empty() {
                    out.required(path.child("command"), "");
                }
            }
            "httpGet" => http_get(action, &path, out),
            "tcpSocket" => port(value(action, "port"), &path.child("port"), out),
            "grpc" => out.range(
                path.child("port"),
                Some(integer(action, "port").unwrap_or(0)),
                1,
                65535,
            ),
            _ => {
                let seconds = integer(action, "seconds").unwrap_or(0);
                if seconds < 0 || seconds > grace_period {
                    let detail = format!(
                        "must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
                    );
                    out.invalid(path, detail);
                }
            }
        }
    }
    if count == 0 {
        out.required(path.clone(), "must specify a handler type");
    }
}

fn http_get(action: &Value, path: &FieldPath, out: &mut Causes) {
    port(value(action, "port"), &path.child("port"), out);
    let scheme = text_or(action, "scheme", "HTTP");
    out.one_of(path.child("scheme"), scheme, &["HTTP", "HTTPS"]);
    for header in list(action, "httpHeaders") {
        let name = text(header, "name");
        out.reasons(&path.child("httpHeaders"), name, header_name(name));
    }
}

/// Validates the number or name of a port.
pub(in super::super) fn port(port: &Value, path: &FieldPath, out: &mut Causes) {
    match port {
        Value::String(name) => out.reasons(path, name, port_name(name)),
        other => {
            let number = integer_of(other).unwrap_or(0);
            out.range(path.clone(), Some(number), 1, 65535);
        }
    }
}
