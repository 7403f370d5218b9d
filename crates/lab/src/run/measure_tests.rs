use crate::run::run_one;
use crate::scenario::Scenario;

/// A line of 10 Mbit/s that is asked for twice as much, in packets of 1,000 bytes with their headers.
const BUSY: &str = r#"
name = "busy"
duration = "10s"
metrics = ["a.goodput", "path1.utilisation", "path1.down-drops", "path1.mtu-drops", "path1.loss-drops"]
[topology]
kind = "single-path"
rate = "10mbit"
delay = "10ms"
limit = "20p"
[[flow]]
name = "a"
transport = "udp"
traffic = { kind = "cbr", rate = "20mbit", size = 972 }
"#;

fn values(text: &str) -> Vec<f64> {
    let s = Scenario::parse("busy.toml", text, &|_| Err(String::new())).expect("a scenario");
    let point = s.points().expect("points").remove(0);
    run_one(&point, 1).expect("runs").values.into_iter().map(|v| v.expect("a value")).collect()
}

fn busy(keys: &str) -> Vec<f64> {
    values(&BUSY.replace("limit = \"20p\"", &format!("limit = \"20p\"\n{keys}")))
}

#[test]
fn a_busy_line_is_used_whole_whatever_happens_to_its_packets() {
    let kinds =
        ["", "up.loss = \"40%\"", "up.loss = \"40%\"\nloss-at = \"entry\"", "duplicate = \"50%\"", "overhead = 200"];
    for keys in kinds.into_iter().chain(["schedule = [\"2s down\", \"6s up\"]", "schedule = [\"5s rate 1mbit\"]"]) {
        let used = busy(keys)[1];
        assert!((0.98..=1.0).contains(&used), "{keys}: {used}");
    }
    // A loss at the entry leaves six of ten packets: 12 Mbit/s of 20.
    let used = busy("up.loss = \"40%\"\nloss-at = \"entry\"\nup.rate = \"20mbit\"")[1];
    assert!((0.58..0.62).contains(&used), "{used}");
}

#[test]
fn what_finds_a_line_down_or_too_narrow_is_counted() {
    // Down for four of ten seconds.
    let v = busy("schedule = [\"2s down\", \"6s up\"]");
    assert!((v[2] - 0.4).abs() < 0.01 && v[3] == 0.0 && v[4] == 0.0, "{v:?}");
    // An MTU that fits nothing from the start is a mistake; one that comes to be so is not.
    assert_eq!(busy("schedule = [\"0s mtu 900\"]"), [0.0, 0.0, 0.0, 1.0, 0.0]);
}

/// A segment each 20 ms; those lost come at the next time-out or after three others.
#[test]
fn a_segment_sent_again_counts_from_its_first_time() {
    let lossy = r#"
name = "lossy"
duration = "60s"
metrics = ["a.delay", "a.delay-max", "a.retransmissions"]
[topology]
kind = "single-path"
rate = "10mbit"
delay = "50ms"
up.loss = "5%"
[[flow]]
name = "a"
transport = "tcp"
segment = 1000
traffic = { kind = "cbr", rate = "400kbit", size = 1000 }
"#;
    let [mean, longest, again] = values(lossy)[..] else { panic!("three values") };
    // Three more segments and their acknowledgements, and the way itself, at least.
    assert!(again > 50.0 && longest > 0.2 && mean > 0.055, "{mean} {longest} {again}");
    // Without losses each takes what the line takes, but for those that waited for the connection.
    let whole = values(&lossy.replace("up.loss = \"5%\"", "down.delay = \"5ms\""));
    assert!((whole[0] - 0.050_832).abs() < 2e-5 && whole[2] == 0.0, "{whole:?}");
}

/// Messages of 400 bytes, each 10 ms, over a round trip of 100 ms.
const SMALL: &str = r#"
name = "small"
duration = "30s"
measure-from = "1s"
metrics = ["a.message-delay", "a.message-delay-max", "a.in-order-delay", "a.delay", "a.messages"]
[topology]
kind = "single-path"
rate = "10mbit"
delay = "50ms"
[[flow]]
name = "a"
transport = "tcp"
rules = "linux"
traffic = { kind = "cbr", rate = "320kbit", size = 400 }
"#;

#[test]
fn messages_over_tcp_take_what_the_line_takes_and_wait_with_nagle() {
    let v = values(SMALL);
    // 452 bytes at 10 Mbit/s and the way.
    let alone = 0.050_361_6;
    assert!(v[..4].iter().all(|delay| (delay - alone).abs() < 1e-5), "{v:?}");
    // With Nagle those of a round trip wait for the acknowledgement of those before, up to a full segment: the fourth
    // small one makes one with what is short of it.
    let v = values(&SMALL.replace("rules = \"linux\"", "rules = \"linux\"\nnagle = true"));
    assert!(v[0] > alone + 0.01 && v[1] < alone + 0.05, "{v:?}");
    // A message waits before it leaves, and counts from then on for the other delay.
    assert!(v[2] < v[0] && v[4] < 2_900.0 * 0.5, "{v:?}");
}

#[test]
fn a_message_behind_a_lost_one_waits_for_it_in_order() {
    let lossy = SMALL.replace("delay = \"50ms\"", "delay = \"50ms\"\nup.loss = \"1%\"");
    let v = values(&lossy);
    // Fifteen of a round trip and a half wait for the one that was lost; most of them came meanwhile.
    assert!(v[0] > v[3] + 0.003 && v[1] > 0.15, "{v:?}");
}

/// A transfer counts from when it is asked for until all of it is there: its connection is opened first.
#[test]
fn transfers_over_tcp_are_messages() {
    let web = SMALL.replace(
        "{ kind = \"cbr\", rate = \"320kbit\", size = 400 }",
        "{ kind = \"web\", clients = 3, mean-gap = \"1s\", min-size = 1000, max-size = 1000 }",
    );
    let v = values(&web);
    assert!((v[0] - 0.151).abs() < 0.002, "{v:?}");
    assert!((v[2] - 0.051).abs() < 0.001 && (v[3] - v[2]).abs() < 1e-6, "{v:?}");
}
