//! Video in the lab is what `anabranch send` makes of it: classes, frames and deadlines matter.

use crate::node::{Delivery, Streams};
use crate::run::run_one;
use crate::scenario::{Scenario, Transport};
use anabranch_base::Duration;

/// 3 Mbit/s of video over paths of 2.7 Mbit/s that lose packets in bursts: not all of it can come.
const SCARCE: &str = r#"
name = "scarce"
duration = "20s"
metrics = ["film.decodable-frames", "film.deadline-misses"]
[topology]
kind = "disjoint-paths"
limit = "40p"
path1 = { rate = "2mbit", delay = "20ms", up.loss = "4% burst 6" }
path2 = { rate = "700kbit", delay = "40ms" }
[[flow]]
name = "film"
transport = "sctp"
profile = "live"
playout = "400ms"
traffic = { kind = "video", rate = "3mbit" }
"#;

fn text(keys: &str) -> String {
    let profile = if keys.starts_with("profile") { "" } else { "profile = \"live\"\n" };
    SCARCE.replace("profile = \"live\"", &format!("{profile}{keys}"))
}

fn scenario_of(text: &str) -> Scenario {
    Scenario::parse("scarce.toml", text, &|_| Err(String::new())).unwrap_or_else(|e| panic!("{e}"))
}

fn run(keys: &str) -> (u64, f64) {
    run_text(&text(keys))
}

fn run_text(text: &str) -> (u64, f64) {
    let point = scenario_of(text).points().expect("points").remove(0);
    let row = run_one(&point, 1).expect("runs");
    (row.fingerprint, row.values[0].expect("frames"))
}

fn delivery(keys: &str) -> Delivery {
    delivery_of(&text(keys))
}

fn delivery_of(text: &str) -> Delivery {
    let plan = scenario_of(text).points().expect("points").remove(0).plan;
    let Transport::Sctp(s) = &plan.flows[0].transport else { panic!("sctp") };
    s.delivery
}

/// Each of these does nothing to messages that have neither class nor group.
#[test]
fn what_asks_for_class_and_frame_gets_them() {
    let arrival = "arrival:drain=1";
    let pairs = [
        // Where windows are small and nothing looks at deadlines first, what is lost waits.
        ["class_then_tsn", "tsn"].map(|order| {
            let cmt =
                "profile = \"cmt\"\nwindow = \"rfc9260\"\npath-scheduler = \"round_robin\"\nabandon = \"arrival\"";
            format!("{cmt}\nretransmission-order = \"{order}\"")
        }),
        ["frame_importance", "fcfs"].map(|next| format!("stream-scheduler = \"{next}\"")),
        ["1", "0"].map(|whole| format!("abandon = \"{arrival},whole={whole}\"")),
    ];
    for [with, without] in pairs {
        assert_ne!(run(&with).0, run(&without).0, "{with}");
    }
}

/// I before P before B is worth many frames where not all of them can come.
#[test]
fn importance_saves_frames() {
    let run = |next: &str| {
        let profile = format!("profile = \"cmt\"\nabandon = \"lifetime\"\nstream-scheduler = \"{next}\"");
        let text = SCARCE
            .replace("profile = \"live\"", &profile)
            .replace(", up.loss = \"4% burst 6\"", "")
            .replace("40p", "10p");
        run_text(&text).1
    };
    let (with, without) = (run("frame_importance"), run("fcfs"));
    assert!(with > 2.0 * without && with > 0.1, "{with} {without}");
}

#[test]
fn a_scenario_may_want_other_streams_times_and_limits() {
    let playout = Some(Duration::from_millis(400));
    assert_eq!(delivery(""), Delivery::of_video(playout));
    let d = delivery("lifetime = [\"600ms\", \"400ms\", \"200ms\"]\nmax-retransmissions = [3, 2, 0]");
    assert_eq!(d.lifetime, [600, 400, 200].map(|ms| Some(Duration::from_millis(ms))));
    assert_eq!((d.max_retransmissions, d.streams), ([Some(3), Some(2), Some(0)], Streams::ByClass(3)));
    let d = delivery(
        "lifetime = [\"none\", \"500ms\", \"200ms\"]\nmax-retransmissions = [\"none\", \"none\", 1]\nclass-streams = 2",
    );
    assert_eq!(d.lifetime, [None, Some(Duration::from_millis(500)), Some(Duration::from_millis(200))]);
    assert_eq!((d.max_retransmissions, d.streams), ([None, None, Some(1)], Streams::ByClass(2)));
    let endless = text("lifetime = \"none\"").replace(", \"film.deadline-misses\"", "");
    assert_eq!(delivery_of(&endless).lifetime, [None; 3]);
    let d = delivery("lifetime = \"1s\"\nunordered = false\nstreams = 5");
    assert_eq!((d.lifetime, d.unordered, d.streams), ([Some(Duration::from_secs(1)); 3], false, Streams::InTurn(5)));
}

/// Cheng et al. 2011 §III: who sends a film says so when the association begins, and who knows that says it again.
#[test]
fn a_handshake_says_on_which_streams_the_classes_go() {
    let said = |keys: &str| {
        let plan = scenario_of(&text(keys)).points().expect("points").remove(0).plan;
        let Transport::Sctp(s) = &plan.flows[0].transport else { panic!("not SCTP") };
        let own = s.config(0).expect("a configuration").0.extensions.own_parameters;
        own.iter().map(|p| (p.kind, p.value.as_deref().map(<[u8]>::to_vec))).collect::<Vec<_>>()
    };
    assert_eq!(said(""), []);
    assert_eq!(said("media-hint = false"), []);
    assert_eq!(said("media-hint = true"), [(0xbf43, Some(vec![1, 3, 0, 1, 2]))]);
    let plan = scenario_of(&text("media-hint = true\npeer = \"sctp\"")).points().expect("points").remove(0).plan;
    let Transport::Sctp(s) = &plan.flows[0].transport else { panic!("not SCTP") };
    let peer = s.peer_config(0).expect("a configuration").expect("a peer");
    assert_eq!(peer.extensions.own_parameters, s.config(0).expect("a configuration").0.extensions.own_parameters);
    assert_eq!(said("media-hint = true\nclass-streams = 2"), [(0xbf43, Some(vec![1, 2, 0, 1, 1]))]);
    let mistake =
        |keys| Scenario::parse("x.toml", &text(keys), &|_| Err(String::new())).expect_err("wrong").to_string();
    let in_turn = mistake("media-hint = true\nstreams = 3");
    assert!(in_turn.contains("`media-hint`: is for video whose classes have streams of their own"), "{in_turn}");
}

#[test]
fn times_by_class_are_three_and_for_video() {
    let mistake = |text: &str| Scenario::parse("x.toml", text, &|_| Err(String::new())).expect_err("wrong").to_string();
    let with = |keys: &str| SCARCE.replace("profile = \"live\"", keys);
    let two = mistake(&with("lifetime = [\"1s\", \"2s\"]"));
    assert!(two.ends_with("`lifetime`: needs one value, or a list of three for I, P and B"), "{two}");
    let word = mistake(&with("lifetime = [\"1s\", \"2s\", \"fast\"]"));
    assert!(word.contains("`lifetime`") && word.contains("fast"), "{word}");
    let list = "transport = \"sctp\"\nlifetime = [\"1s\", \"1s\", \"1s\"]";
    let bulk = SCARCE
        .replace("transport = \"sctp\"", list)
        .replace("playout = \"400ms\"\ntraffic = { kind = \"video\", rate = \"3mbit\" }", "")
        .replace("film.decodable-frames", "film.goodput");
    let bulk = mistake(&bulk);
    assert!(bulk.contains("`lifetime`: is a list by class of frames"), "{bulk}");
}

/// What comes is on time or not, and what does not come is missing whether it was sent or not.
#[test]
fn frames_are_counted_by_what_the_source_made() {
    let dark = r#"
name = "dark"
duration = "12s"
events = ["4s-6s"]
metrics = ["film.frames", "film.whole-frames", "film.lost-per-event", "film.recovery", "film.late-bytes", "film.wasted-bytes"]
[topology]
kind = "single-path"
rate = "4mbit"
delay = "20ms"
schedule = ["4s down", "6s up"]
[[flow]]
name = "film"
transport = "TRANSPORT"
playout = "200ms"
traffic = { kind = "video", rate = "1mbit" }
"#;
    let values = |transport: &str, text: &str| -> Vec<f64> {
        let s = scenario_of(&text.replace("TRANSPORT", transport));
        let row = run_one(&s.points().expect("points").remove(0), 1).expect("runs");
        row.values.into_iter().map(|v| v.expect("a value")).collect()
    };
    // Datagrams that find the line down are gone, and no other suffers: the last one was due 200 ms after it was up.
    let [frames, whole, lost, recovery, late, wasted] = values("udp", dark)[..] else { panic!("six") };
    assert_eq!((frames, lost, late), (296.0, 50.0, 0.0), "25 frames a second up to 200 ms before the end");
    assert!((whole - 246.0 / 296.0).abs() < 1e-9 && recovery == 0.2 && wasted < 0.01, "{recovery} {wasted}");
    // TCP delivers them late, and an association that ends sends nothing more: its frames are missing all the same.
    let [frames, whole, .., recovery, late, wasted] = values("tcp", dark)[..] else { panic!("six") };
    assert!(frames == 296.0 && whole < 246.0 / 296.0 && late > 0.1 && wasted >= late && recovery > 0.0, "{late}");
    // An I frame of each twelve, two or three of them in the dark; all three classes together are all frames.
    let classes = dark.replace(
        "\"film.recovery\", \"film.late-bytes\", \"film.wasted-bytes\"",
        "\"film.whole-frames-i\", \"film.whole-frames-p\", \"film.whole-frames-b\"",
    );
    let [frames, whole, _, i, p, b] = values("udp", &classes)[..] else { panic!("six") };
    let of = [25.0, 74.0, 197.0];
    let all: f64 = [i, p, b].iter().zip(of).map(|(part, n)| part * n).sum();
    assert!((all - whole * frames).abs() < 1e-6 && (i - 21.0 / 25.0).abs() < 0.041, "{i} {p} {b}");
    // So it is of the packets that were sent; two seconds of twelve are dark, and I frames have the most packets.
    let parts = dark.replace(
        "\"film.recovery\", \"film.late-bytes\", \"film.wasted-bytes\"",
        "\"film.unusable-packets-i\", \"film.unusable-packets-p\", \"film.unusable-packets-b\"",
    );
    let parts = parts.replace("film.lost-per-event", "film.unusable-packets");
    let [.., all, i, p, b] = values("udp", &parts)[..] else { panic!("six") };
    let (least, most) = (i.min(p).min(b), i.max(p).max(b));
    assert!(least <= all && all <= most && least > 0.05 && most < 0.3, "{all}: {i} {p} {b}");
    let ended = dark.replace("\"6s up\"", "\"11s up\"").replace("playout", "association-max-retrans = 1\nplayout");
    let [frames, whole, ..] = values("sctp", &ended)[..] else { panic!("six") };
    assert!(frames == 296.0 && whole < 101.0 / 296.0, "{frames} {whole}");
}

/// An encoder makes what it makes, whatever becomes of it: a transport without room for a frame does not unmake it.
#[test]
fn a_film_is_one_and_the_same_over_every_transport() {
    let text = |transport: &str, rate: &str| {
        format!(
            r#"
name = "narrow"
duration = "20s"
metrics = ["film.made-rate", "film.frames", "film.whole-frames", "film.decodable-frames", "film.unusable-packets", "film.rate-share"]
[topology]
kind = "single-path"
delay = "15ms"
limit = "50p"
rate = "{rate}"
[[flow]]
name = "film"
{transport}
playout = "1s"
traffic = {{ kind = "video", rate = "3mbit" }}
"#
        )
    };
    let values = |transport: &str, rate: &str| -> [f64; 6] {
        let row = run_one(&scenario_of(&text(transport, rate)).points().expect("points").remove(0), 1).expect("runs");
        let all: Vec<f64> = row.values.into_iter().map(|v| v.expect("a value")).collect();
        all.try_into().expect("six")
    };
    let transports = [
        "transport = \"udp\"",
        "transport = \"tcp\"",
        "transport = \"tcp\"\nrules = \"linux\"",
        "transport = \"mptcp\"",
        "transport = \"sctp\"\nprofile = \"sctp\"",
        "transport = \"sctp\"\nprofile = \"sctp\"\nlifetime = \"none\"\nsend-buffer = \"16KB\"",
        "transport = \"sctp\"\nprofile = \"live\"",
    ];
    for rate in ["500kbit", "1mbit", "10mbit"] {
        let [made, frames, ..] = values(transports[0], rate);
        assert!((made - 3e6).abs() < 1.5e5 && frames == 476.0, "{made} {frames}");
        for transport in transports {
            let of = format!("{transport} over {rate}");
            let [its, its_frames, whole, decodable, unusable, share] = values(transport, rate);
            // SCTP's messages and headers leave less for frames than TCP's: the share differs by a few percent.
            let link = if rate == "10mbit" {
                3e6
            } else if rate == "1mbit" {
                1e6
            } else {
                5e5
            };
            let expected = made / link;
            assert_eq!((its, its_frames), (made, frames), "{of}");
            assert!((share / expected - 1.0).abs() < 0.12, "{of}: {share} of {expected}");
            // Of the last frames it is not known yet whether they can be decoded.
            assert!(decodable <= whole + 3.0 / frames, "{of}: {decodable} {whole}");
            // What can come is 1/6, 1/3 or all of it.
            let most = if rate == "10mbit" { 0.01 } else { 1.0 - link / 3e6 - 0.03 };
            assert!(if rate == "10mbit" { unusable < most } else { unusable > most }, "{of}: {unusable}");
        }
    }
}

/// Nothing comes through an outage, whatever the plan.
#[test]
fn bounds_stand_beside_what_was_reached() {
    let text = r#"
name = "bounds"
duration = "12s"
measure-from = "1s"
events = ["4s-6s"]
metrics = ["film.frames", "film.lost-per-event", "film.possible-frames", "film.offline-frames", "film.offline-decodable", "film.lost-beyond-offline"]
[topology]
kind = "disjoint-paths"
rate = "1mbit"
delay = "20ms"
schedule = ["4s down", "6s up"]
path1 = { delay = "20ms" }
path2 = { delay = "40ms" }
[[flow]]
name = "film"
transport = "sctp"
profile = "live"
playout = "400ms"
traffic = { kind = "video", rate = "1mbit" }
"#;
    let row = |text: &str| run_one(&scenario_of(text).points().expect("points").remove(0), 1).expect("runs");
    let values: Vec<f64> = row(text).values.into_iter().map(|v| v.expect("a value")).collect();
    let [frames, lost, possible, offline, decodable, beyond] = values[..] else { panic!("six") };
    // Frames made between the beginning of the darkness and 400 ms before its end, and a few large ones behind it.
    let gone = 1.0 - 40.0 / frames;
    assert!((gone - 3.0 / frames..gone + 2.0 / frames).contains(&possible), "{possible} {gone}");
    assert!(offline <= possible && offline > possible - 6.0 / frames && decodable <= offline, "{offline} {decodable}");
    assert!((beyond - (lost - (1.0 - offline) * frames)).abs() < 1e-6, "{beyond} {lost}");
    // Over one path of the two half as much can come.
    let alone = row(&text.replace("profile", "paths = 1\nprofile").replace("\"1mbit\" }", "\"2mbit\" }"));
    assert!(alone.values[2].expect("a bound") < possible, "{:?}", alone.values);
    // What a recording brings is not known beforehand.
    let recorded = text.replace("rate = \"1mbit\"\ndelay", "deliveries = { file = \"cell.trace\" }\ndelay");
    let read = |_: &str| Ok("1\n3\n9\n".to_owned());
    let error = Scenario::parse("recorded.toml", &recorded, &read).expect_err("no bound").to_string();
    assert!(error.contains("`film.possible-frames` would always be empty"), "{error}");
}
