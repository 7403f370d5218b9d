//! `association`: a flow on the association of another.

use super::{Plan, Scenario, Transport};
use crate::run::run_one;
use anabranch_base::Duration;

/// A player's state and chat on one association, over a path that loses packets.
const GAME: &str = r#"
name = "game"
duration = "40s"
# By then a handshake is over that loses its packets.
measure-from = "10s"
metrics = [
    "state.messages", "state.message-delay-p99", "state.deadline-misses", "state.retransmissions",
    "chat.messages", "chat.message-delay-p99", "chat.goodput", "talk.messages", "talk.unusable-packets",
]
[topology]
kind = "single-path"
rate = "4mbit"
delay = "25ms"
up.loss = "3%"
[[flow]]
name = "state"
transport = "sctp"
profile = "low-latency"
unordered = true
lifetime = "100ms"
streams = 2
start-within = "1s"
traffic = { kind = "cbr", rate = "240kbit", size = 1000 }
[[flow]]
name = "chat"
association = "state"
traffic = { kind = "cbr", rate = "6400bit", size = 80 }
[[flow]]
name = "talk"
association = "state"
lifetime = "200ms"
deadline = "200ms"
class = 0
traffic = { kind = "cbr", rate = "32kbit", size = 160 }
"#;

fn scenario(text: &str) -> Result<Scenario, String> {
    Scenario::parse("game.toml", text, &|_| Err(String::new())).map_err(|e| e.to_string())
}

fn plan(text: &str) -> Plan {
    scenario(text).and_then(|s| s.points().map_err(|e| e.to_string())).expect("points").remove(0).plan.clone()
}

#[test]
fn streams_follow_each_other_and_the_rest_is_the_associations() {
    let plan = plan(GAME);
    let of = |i: usize| {
        let Transport::Sctp(s) = &plan.flows[i].transport else { panic!("sctp") };
        s
    };
    assert_eq!([0, 1, 2].map(|i| of(i).delivery.first_stream), [0, 2, 3]);
    assert_eq!([0, 1, 2].map(|i| plan.flows[i].association.as_deref()), [None, Some("state"), Some("state")]);
    assert!(of(0).config(0).expect("a configuration").0.limits.outbound_streams >= 4);
    assert_eq!([0, 1, 2].map(|i| of(i).profile.name()), ["low-latency"; 3]);
    assert_eq!([0, 1, 2].map(|i| of(i).delivery.unordered), [true, false, false]);
    let lifetimes = [0, 1, 2].map(|i| of(i).delivery.lifetime[2].map(Duration::as_millis));
    assert_eq!(lifetimes, [Some(100), None, Some(200)]);
}

/// What is counted of each is its own: 30, 10 and 25 messages a second, of half a minute.
#[test]
fn each_flow_counts_its_own_messages() {
    let point = scenario(GAME).expect("a scenario").points().expect("points").remove(0);
    for seed in 1..=3 {
        let row = run_one(&point, seed).expect("a run");
        let values: Vec<f64> = row.values.iter().map(|v| v.expect("a value")).collect();
        let [state, _, misses, again, chat, chat_p99, goodput, talk, unusable] = values[..] else {
            panic!("{values:?}")
        };
        // What is lost twice comes too late, and is given up.
        assert!((880.0..=901.0).contains(&state) && misses < 0.02, "{values:?}");
        assert!((299.0..=301.0).contains(&chat) && chat_p99 < 0.2, "{values:?}");
        assert!((745.0..=751.0).contains(&talk) && unusable < 0.01, "{values:?}");
        assert!((6_350.0..=6_450.0).contains(&goodput), "{values:?}");
        // Of the association, so of all three.
        assert!(again > 0.02 * (state + chat + talk), "{values:?}");
    }
}

#[test]
fn one_that_is_not_enabled_changes_nothing() {
    let (alone, _) = GAME.split_once("[[flow]]\nname = \"chat\"").expect("two parts");
    let (metrics, rest) = alone.split_once("\n    \"chat.messages\"").expect("metrics");
    let alone = format!("{metrics}\n]{}", rest.split_once("\n]").expect("the end of the list").1);
    let silent = format!("{alone}[[flow]]\nname = \"chat\"\nassociation = \"state\"\nenabled = false\n");
    let run = |text: &str| {
        let point = scenario(text).expect("a scenario").points().expect("points").remove(0);
        let row = run_one(&point, 7).expect("a run");
        (row.values, row.fingerprint)
    };
    assert_eq!(run(&alone), run(&silent));
}

#[test]
fn groups_share_member_by_member() {
    let two = r#"
name = "two"
duration = "5s"
metrics = ["state.messages", "chat.messages"]
[topology]
kind = "shared-bottleneck"
pairs = 2
bottleneck = { rate = "4mbit", delay = "5ms" }
access = { rate = "100mbit", delay = "5ms" }
[[flow]]
name = "state"
transport = "sctp"
from = "sender1"
to = ["receiver1", "receiver2"]
traffic = { kind = "cbr", rate = "80kbit", size = 1000 }
[[flow]]
name = "chat"
association = "state"
traffic = { kind = "cbr", rate = "8kbit", size = 100 }
"#;
    let plan = plan(two);
    let ends: Vec<_> = plan.flows.iter().map(|f| (f.name.as_str(), f.to.as_str())).collect();
    let expected =
        [("state.1", "receiver1"), ("state.2", "receiver2"), ("chat.1", "receiver1"), ("chat.2", "receiver2")];
    assert_eq!(ends, expected);
    let point = scenario(two).expect("a scenario").points().expect("points").remove(0);
    let values = run_one(&point, 1).expect("a run").values;
    assert!(values.iter().all(|v| v.is_some_and(|n| (95.0..=102.0).contains(&n))), "{values:?}");
}

#[test]
fn mistakes_say_where_the_key_belongs() {
    let mistake = |from: &str, to: &str| scenario(&GAME.replacen(from, to, 1)).expect_err("a mistake");
    let cases = [
        ("association = \"state\"", "association = \"sate\"", "there is no flow `sate` above it"),
        ("association = \"state\"", "association = \"talk\"", "there is no flow `talk` above it"),
        ("class = 0", "profile = \"live\"", "`profile` is one of its association: say it in flow `state`"),
        ("class = 0", "start = \"1s\"", "`start` is one of its association: say it in flow `state`"),
        ("class = 0", "transport = \"sctp\"", "`transport` is one of its association"),
        ("name = \"talk\"\nassociation = \"state\"", "name = \"talk\"\nassociation = \"chat\"", "shares one itself"),
        ("\"talk.messages\"", "\"talk.retransmissions\"", "shares the association of `state`"),
        (
            "transport = \"sctp\"\nprofile = \"low-latency\"\nunordered = true\nlifetime = \"100ms\"\nstreams = 2",
            "transport = \"udp\"",
            "is over udp, and only sctp has streams",
        ),
    ];
    for (from, to, says) in cases {
        let said = mistake(from, to);
        assert!(said.contains(says), "{to}: {said}");
    }
    let sampled = GAME.replacen("[topology]", "series = [\"chat.cwnd\"]\n[topology]", 1);
    let said = scenario(&sampled).expect_err("a mistake");
    assert!(said.contains("shares the association of `state`: ask `state`"), "{said}");
}
