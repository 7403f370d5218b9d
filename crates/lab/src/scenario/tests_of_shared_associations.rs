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

/// Each member joins its own: what the link of one of them holds up is late there, and nowhere else.
#[test]
fn groups_share_member_by_member() {
    let two = r#"
name = "two"
duration = "5s"
metrics = ["chat.messages", "chat.message-delay-max", "state.message-delay-max"]
series = ["state.throughput", "chat.throughput"]
[topology]
kind = "shared-bottleneck"
pairs = 2
bottleneck = { rate = "4mbit", delay = "5ms" }
access = { rate = "100mbit", delay = "5ms" }
[topology.cable]
receiver2 = { delay = "400ms" }
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
    let two_plan = plan(two);
    let ends: Vec<_> = two_plan.flows.iter().map(|f| (f.name.as_str(), f.to.as_str())).collect();
    let expected =
        [("state.1", "receiver1"), ("state.2", "receiver2"), ("chat.1", "receiver1"), ("chat.2", "receiver2")];
    assert_eq!(ends, expected);
    // The far member has fewer in five seconds, and later ones.
    let far = two.replace("to = [\"receiver1\", \"receiver2\"]", "to = \"receiver2\"");
    let near = two.replace("to = [\"receiver1\", \"receiver2\"]", "to = \"receiver1\"");
    let run = |text: &str| {
        let point = scenario(text).expect("a scenario").points().expect("points").remove(0);
        run_one(&point, 1).expect("a run").values.iter().map(|v| v.expect("a value")).collect::<Vec<_>>()
    };
    let (both, far, near) = (run(two), run(&far), run(&near));
    assert!(far[0] < near[0] - 2.0 && far[1] > near[1] + 0.3, "{far:?} {near:?}");
    assert_eq!(both[0], far[0] + near[0]);
    // They share a queue.
    assert!((1..=2).all(|i| (both[i] - far[i]).abs() < 0.001), "{both:?} {far:?}");
}

/// One that always has more leaves room in the send buffer for the others, and does not overtake what matters more.
#[test]
fn a_transfer_without_end_does_not_starve_the_others() {
    let endless = GAME
        .replace("traffic = { kind = \"cbr\", rate = \"240kbit\", size = 1000 }", "class = 3\ntraffic = \"bulk\"")
        .replace("lifetime = \"100ms\"\nstreams", "streams")
        .replace("\"state.deadline-misses\", ", "");
    let point = scenario(&endless).expect("a scenario").points().expect("points").remove(0);
    for seed in 1..=3 {
        let row = run_one(&point, seed).expect("a run");
        let [Some(bulk), _, _, Some(chat), _, _, Some(talk), _] = row.values[..] else { panic!("{:?}", row.values) };
        // 300 of one and 750 of the other are made.
        assert!(bulk > 2_000.0 && chat > 250.0 && talk > 600.0, "{:?}", row.values);
    }
}

#[test]
fn a_message_that_cannot_be_sent_names_its_flow() {
    let large = GAME.replace("rate = \"32kbit\", size = 160", "rate = \"320kbit\", size = 60000");
    let large = large.replace("streams = 2", "streams = 2\nsend-buffer = \"20KB\"");
    let why = scenario(&large).expect_err("too large");
    assert!(
        why.contains("flow `talk`: `traffic.size`: messages of 60000 bytes do not fit the send buffer of 20480"),
        "{why}"
    );
    // Transfers are drawn: only the run finds one that is too large.
    let drawn = GAME.replace(
        "kind = \"cbr\", rate = \"32kbit\", size = 160",
        "kind = \"web\", clients = 1, mean-gap = \"1ms\", min-size = \"30KB\", max-size = \"1MB\"",
    );
    let drawn = drawn.replace("streams = 2", "streams = 2\nsend-buffer = \"20KB\"");
    let point = scenario(&drawn).expect("a scenario").points().expect("points").remove(0);
    let why = run_one(&point, 1).expect_err("too large").to_string();
    assert!(why.contains("flow `talk`: a message of ") && why.ends_with("raise `send-buffer`"), "{why}");
}

/// Frames of a film count as those of one with an association of its own, and in-order delays are a flow's own.
#[test]
fn frames_and_delays_in_order_are_a_flows_own() {
    let film = GAME
        .replace("name = \"talk\"", "name = \"film\"")
        .replace(
            "class = 0\ntraffic = { kind = \"cbr\", rate = \"32kbit\", size = 160 }",
            "playout = \"200ms\"\ntraffic = { kind = \"video\", rate = \"500kbit\" }",
        )
        .replace("deadline = \"200ms\"\n", "")
        .replace(
            "\"talk.messages\", \"talk.unusable-packets\"",
            "\"film.whole-frames\", \"chat.in-order-delay-max\", \"film.offline-frames\"",
        );
    let point = scenario(&film).expect("a scenario").points().expect("points").remove(0);
    let values = run_one(&point, 2).expect("a run").values;
    let [whole, in_order, offline] = values[values.len() - 3..] else { panic!("{values:?}") };
    assert!(whole.is_some_and(|w| w > 0.9) && offline.is_some_and(|o| o > 0.99), "{values:?}");
    assert!(in_order.is_some_and(|d| (0.02..0.5).contains(&d)), "{values:?}");
}

#[test]
fn mistakes_say_where_the_key_belongs() {
    let mistake = |from: &str, to: &str| scenario(&GAME.replacen(from, to, 1)).expect_err("a mistake");
    let cases = [
        ("association = \"state\"", "association = \"sate\"", "there is no flow `sate` above it"),
        ("association = \"state\"", "association = \"talk\"", "there is no flow `talk` above it"),
        ("association = \"state\"", "association = \"sate\"\nstart = \"1s\"", "there is no flow `sate` above it"),
        ("association = \"state\"", "association = \"foo\"\ntransport = \"sctp\"", "there is no flow `foo` above it"),
        ("association = \"state\"", "association = \"foo\"\nmedia-hint = true", "there is no flow `foo` above it"),
        ("class = 0", "profile = \"live\"", "`profile` is one of its association: say it in flow `state`"),
        ("class = 0", "clas = 0", "did you mean `class`?"),
        ("class = 0", "media-hint = true", "`media-hint` needs an association of its own"),
        ("class = 0", "streams = 2047", "have more than 2048 streams together"),
        ("streams = 2", "streams = 65535", "have more than 2048 streams together"),
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
