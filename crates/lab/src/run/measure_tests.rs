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
    assert_eq!(busy("mtu = 900"), [0.0, 0.0, 0.0, 1.0, 0.0]);
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
