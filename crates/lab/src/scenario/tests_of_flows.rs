//! Units of the keys of flows.

use super::*;

fn read(flow: &str) -> Result<Plan, String> {
    let text = format!(
        "name = \"f\"\nduration = \"5s\"\nmetrics = [\"main.goodput\"]\n[topology]\nkind = \"single-path\"\n\
         rate = \"1mbit\"\n[[flow]]\nname = \"main\"\n{flow}\n"
    );
    let s = Scenario::parse("f.toml", &text, &|_| Err(String::new())).and_then(|s| s.points());
    s.map(|mut points| points.remove(0).plan).map_err(|e| e.to_string())
}

/// Window and threshold at the beginning: of SCTP in bytes, of TCP in segments.
fn windows(flow: &str) -> (u64, u64) {
    match &read(flow).unwrap_or_else(|e| panic!("{e}")).flows[0].transport {
        Transport::Sctp(s) => {
            let sending = s.config(1).expect("a configuration").0.sending;
            (sending.initial_window.expect("a window"), sending.initial_ssthresh)
        }
        Transport::Tcp(c) => (c.initial_window.into(), c.initial_ssthresh.expect("a threshold").into()),
        Transport::Mptcp(m) => (m.config.tcp.initial_window.into(), m.config.receive_buffer),
        Transport::Udp(_) => panic!("udp has no window"),
    }
}

#[test]
fn windows_are_bytes_or_packets() {
    let sctp = |window: &str| {
        windows(&format!("transport = \"sctp\"\ninitial-window = {window}\ninitial-ssthresh = {window}"))
    };
    assert_eq!(sctp("5000"), (5_000, 5_000));
    assert_eq!(sctp("\"6KB\""), (6_144, 6_144));
    // A packet of 1500 bytes carries 1452: headers of IP, SCTP and DATA have 20, 12 and 16.
    assert_eq!(sctp("\"4p\""), (4 * 1_452, 4 * 1_452));
    let small =
        "transport = \"sctp\"\npacket-size = 1000\ninitial-window = \"1 packet\"\ninitial-ssthresh = \"2 packets\"";
    assert_eq!(windows(small), (952, 1_904));
    let tcp =
        |window: &str| windows(&format!("transport = \"tcp\"\ninitial-window = {window}\ninitial-ssthresh = {window}"));
    for window in ["10", "\"10p\"", "\"10 segments\""] {
        assert_eq!(tcp(window), (10, 10), "{window}");
    }
    let wrong = read("transport = \"tcp\"\ninitial-window = \"14KB\"").expect_err("bytes");
    assert_eq!(
        wrong,
        "f.toml:10: flow `main`: `initial-window`: is in segments: write a number, \"10p\" or \"10 segments\""
    );
    let wrong = read("transport = \"sctp\"\ninitial-window = \"4 seconds\"").expect_err("no window");
    assert!(wrong.starts_with("f.toml:10: flow `main`: `initial-window`: needs a number of bytes"), "{wrong}");
}

/// `"off"` is what zero is: none on a path that is confirmed.
#[test]
fn heartbeats_can_be_off() {
    fn interval(text: &str) -> Result<u64, String> {
        let plan = read(&format!("transport = \"sctp\"\nheartbeat-interval = {text}"))?;
        let Transport::Sctp(s) = &plan.flows[0].transport else { panic!("not sctp") };
        Ok(s.config(1).expect("a configuration").0.timers.heartbeat_interval.as_millis())
    }
    assert_eq!(interval("\"off\""), Ok(0));
    assert_eq!(interval("\"0s\""), Ok(0));
    assert_eq!(interval("\"2s\""), Ok(2_000));
    let wrong = interval("false").expect_err("no text");
    assert!(wrong.contains("`heartbeat-interval`") && wrong.contains("a time such as \"30s\", or \"off\""), "{wrong}");
}
