//! Units of the keys of flows, and what the frames of a film need.

use super::*;
use crate::metrics::Dependence;
use anabranch_policy::registry::Hook;

fn read(flow: &str) -> Result<Plan, String> {
    read_with(flow, &|_| Err(String::new()))
}

fn read_with(flow: &str, file: &dyn Fn(&str) -> Result<String, String>) -> Result<Plan, String> {
    let text = format!(
        "name = \"f\"\nduration = \"5s\"\nmetrics = [\"main.goodput\"]\n[topology]\nkind = \"single-path\"\n\
         rate = \"1mbit\"\n[[flow]]\nname = \"main\"\n{flow}\n"
    );
    let s = Scenario::parse("f.toml", &text, file).and_then(|s| s.points());
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

/// A scheduler that a flow names wins over what only comes with its profile.
#[test]
fn a_named_scheduler_switches_off_the_redundancy_of_the_profile() {
    let redundancy = |more: &str| {
        let plan = read(&format!("transport = \"sctp\"\nprofile = \"live\"\n{more}"))?;
        let Transport::Sctp(s) = &plan.flows[0].transport else { panic!("not sctp") };
        let profile = s.config(1).expect("a configuration").0.profile;
        Ok::<_, String>((profile.get(Hook::Redundancy), profile.check(2).is_ok()))
    };
    assert_eq!(redundancy("path-scheduler = \"redundant\""), Ok(("none", true)));
    assert_eq!(redundancy("path-scheduler = \"min_rtt\""), Ok(("deadline_copy", true)));
    let both = redundancy("path-scheduler = \"redundant\"\nredundancy = \"deadline_copy\"");
    assert!(both.is_err_and(|e| e.contains("take redundancy=none")));
}

/// So does a window that sets itself over the coupling of the profile; a coupling that is named beside one is refused.
#[test]
fn a_named_window_switches_off_the_coupling_of_the_profile() {
    let coupling = |more: &str| {
        let plan = read(&format!("transport = \"sctp\"\n{more}"))?;
        let Transport::Sctp(s) = &plan.flows[0].transport else { panic!("not sctp") };
        Ok::<_, String>(s.config(1).expect("a configuration").0.profile.spec(Hook::Coupling))
    };
    for window in ["bbr", "bbr3", "bbr_yielding", "none"] {
        let own = format!("profile = \"cmt-fair\"\nwindow = \"{window}\"");
        assert_eq!(coupling(&own), Ok("uncoupled".into()), "{window}");
        for named in ["lia", "shared_bottleneck", "one_flow:growth=0.3"] {
            let e = coupling(&format!("{own}\ncoupling = \"{named}\"")).expect_err(named);
            assert!(e.contains("use coupling=uncoupled") && e.lines().count() == 1, "{e}");
        }
    }
    assert_eq!(coupling("profile = \"cmt-fair\"\nwindow = \"cubic\""), Ok("one_flow:growth=0.3".into()));
    assert!(coupling("profile = \"live\"\ncoupling = \"lia\"").is_err(), "its own window sets itself");
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

#[test]
fn messages_have_the_class_that_the_flow_says() {
    let class = |flow: &str| -> Result<u8, String> {
        let plan = read(&format!("transport = \"sctp\"\n{flow}"))?;
        let Transport::Sctp(s) = &plan.flows[0].transport else { panic!("not sctp") };
        Ok(s.delivery.options(None, 0, anabranch_base::Instant::ZERO).class)
    };
    assert_eq!((class(""), class("class = 0"), class("class = 255")), (Ok(2), Ok(0), Ok(255)));
    let video = "class = 1\ntraffic = { kind = \"video\", rate = \"1mbit\" }";
    assert!(class(video).is_err_and(|e| e.contains("`class`: is that of each frame")));
}

/// The receiver's delays and counts are those of its own profile, whatever the flow says of the sender's.
#[test]
fn a_receiver_may_be_of_another_kind() {
    let configs = |flow: &str| {
        let plan = read(&format!("transport = \"sctp\"\n{flow}")).unwrap_or_else(|e| panic!("{e}"));
        let Transport::Sctp(s) = &plan.flows[0].transport else { panic!("not sctp") };
        (s.config(1).expect("a configuration").0, s.peer_config(1).expect("a configuration"))
    };
    assert!(configs("profile = \"live\"").1.is_none(), "both ends have one profile");
    let more = "sack-delay = \"7ms\"\nreceive-buffer = \"64KB\"\npacket-size = 1000";
    for (peer, delay) in [("sctp", 200), ("linux", 200), ("low-latency", 20)] {
        let (ours, theirs) = configs(&format!("profile = \"low-latency\"\npeer = \"{peer}\"\n{more}"));
        let theirs = theirs.expect("another one");
        assert_eq!((ours.timers.sack_delay.as_millis(), theirs.timers.sack_delay.as_millis()), (7, delay), "{peer}");
        assert_eq!(theirs.profile.name(), peer);
        assert_eq!(theirs.limits.receive_buffer, 65_536);
        assert_eq!(theirs.mtu.packet_size, 980);
    }
    let wrong = read("transport = \"sctp\"\npeer = \"sctpp\"").expect_err("no such profile");
    assert!(wrong.starts_with("f.toml:10: flow `main`: `peer`: ") && wrong.contains("sctp"), "{wrong}");
    let wrong = read("transport = \"tcp\"\npeer = \"sctp\"").expect_err("no policies");
    assert!(wrong.contains("`peer` says nothing in a flow over tcp"), "{wrong}");
}

/// A trace goes by what it says; one that says nothing is in decoding order unless the scenario has another.
#[test]
fn a_trace_is_judged_by_what_it_says() {
    let with = |trace: &str, keys: &str| {
        let frames = format!("kind = \"video-trace\", frames = {{ file = \"f.txt\" }}{keys}");
        let flow = format!("transport = \"udp\"\nplayout = \"300ms\"\ntraffic = {{ {frames} }}");
        let plan = read_with(&flow, &|_| Ok(trace.to_owned()))?;
        Ok::<_, String>(plan.flows[0].playout.clone().expect("a viewer").dependence)
    };
    let (silent, saying) = ("I 9\nP 9\n", "I 9 needs none\nP 9 needs 1\n");
    for (keys, expected) in [
        ("", Dependence::Decoding { closed: false }),
        (", closed-gop = true", Dependence::Decoding { closed: true }),
        (", order = \"decoding\"", Dependence::Decoding { closed: false }),
        (", order = \"display\"", Dependence::Display { closed: false }),
        (", order = \"display\", closed-gop = true", Dependence::Display { closed: true }),
    ] {
        assert_eq!(with(silent, keys), Ok(expected), "{keys}");
    }
    assert!(matches!(with(saying, ""), Ok(Dependence::Named(_))));
    for (keys, key) in [(", closed-gop = true", "closed-gop"), (", order = \"display\"", "order")] {
        let e = with(saying, keys).expect_err("it would do nothing");
        assert!(e.contains(&format!("f.txt says what each frame needs: remove `{key}`")), "{e}");
    }
    let e = with(silent, ", order = \"shown\"").expect_err("no order");
    assert!(e.contains("traffic.order") && e.contains("display"), "{e}");
}
