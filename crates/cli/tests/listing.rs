//! Help, and the listing of policies.

mod common;

use common::*;

#[test]
fn every_command_has_examples() {
    for command in ["send", "recv", "tunnel", "emulate", "policies"] {
        let e = run(&[command, "--help"]);
        e.check(0, None);
        assert!(e.out().contains("Examples:\n"), "{command}");
        assert!(e.out().contains(&format!("anabranch {command}")), "{command}");
    }
    let e = run(&["--help"]);
    e.check(0, None);
    assert!(e.out().contains("Exit codes"));
    run(&["--version"]).check(0, None);
}

#[test]
fn policies_for_programs() {
    let e = run(&["policies", "-J"]);
    e.check(0, None);
    let all: serde_json::Value = serde_json::from_str(&e.out()).unwrap();
    let policies = all["policies"].as_array().unwrap();
    assert!(policies.len() > 30, "{}", policies.len());
    for p in policies {
        for key in ["hook", "name", "source", "file"] {
            assert!(p[key].as_str().is_some_and(|s| !s.is_empty()), "{key} of {p}");
        }
        for q in p["parameters"].as_array().unwrap() {
            assert!(q["name"].is_string() && !q["default"].is_null() && q["unit"].is_string(), "{q}");
        }
    }
    let names: Vec<_> = all["profiles"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"sctp") && names.contains(&"cmt"), "{names:?}");
}

#[test]
fn policies_for_people() {
    let e = run(&["policies"]);
    e.check(0, None);
    assert!(e.out().contains("round_robin") && e.out().contains("--set window=NAME"));
    let e = run(&["policies", "--markdown"]);
    e.check(0, None);
    assert!(e.out().starts_with("# Algorithms"));
}
