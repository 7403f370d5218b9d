use super::*;
use crate::metrics::Dependence;

/// A scenario of twenty lines.
const SMALL: &str = r#"
name = "small"
duration = "10s"
metrics = ["main.goodput", "path1.utilisation"]

[topology]
kind = "disjoint-paths"
limit = "50p"
path1 = { rate = "10mbit", delay = "20ms" }
path2 = { rate = "5mbit", delay = "40ms", up.loss = "1%" }

[[flow]]
name = "main"
transport = "sctp"
profile = "cmt"
receive-buffer = "128KB"
retransmission = "rtx_csi:tau=10"

[[sweep]]
name = "rbuf"
sets = "flow.main.receive-buffer"
values = ["32KB", "128KB"]

[[sweep]]
name = "loss"
sets = ["topology.path1.up.loss", "topology.path2.up.loss"]
values = ["1%", "2%", "4%"]

[quick]
seeds = 2
sweep = { loss = ["1%"] }
"#;

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse("small.toml", text, &|name| Err(format!("there is no file `{name}`")))
}

/// The message after replacing a piece of the scenario.
fn error(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    parse(&SMALL.replacen(from, to, 1)).expect_err("a mistake").to_string()
}

#[test]
fn points_are_the_product_and_the_quick_form_keeps_some() {
    let s = parse(SMALL).unwrap();
    let values = |choice| -> Vec<String> {
        s.chosen(choice).unwrap().points().unwrap().iter().map(|p| p.values.join(" ")).collect()
    };
    let full = values(Choice::default());
    assert_eq!(full, ["32KB 1%", "32KB 2%", "32KB 4%", "128KB 1%", "128KB 2%", "128KB 4%"]);
    let quick = Choice { quick: true, seeds: None };
    assert_eq!(values(quick), ["32KB 1%", "128KB 1%"]);
    assert_eq!((s.seeds, s.chosen(quick).unwrap().seeds), (10, 2));
    let hashes: std::collections::BTreeSet<u64> = s.points().unwrap().iter().map(|p| p.hash).collect();
    assert_eq!(hashes.len(), 6);
}

#[test]
fn mistakes_are_one_line_with_file_line_and_key() {
    let cases = [
        (
            "receive-buffer = \"128KB\"",
            "recieve-buffer = \"128KB\"",
            "small.toml:16: flow `main`: unknown key `recieve-buffer`; did you mean `receive-buffer`?",
        ),
        (
            "duration = \"10s\"",
            "durration = \"10s\"",
            "small.toml:3: unknown key `durration`; did you mean `duration`?",
        ),
        (
            "duration = \"10s\"",
            "duration = \"10\"",
            "small.toml:3: `duration`: needs a time with its unit, such as 30ms or 1.5s, not `10`",
        ),
        (
            "tau=10",
            "tau=0",
            "small.toml:17: flow `main`: `retransmission`: rtx_csi: tau=0 does not fit: a number from 0.001 to 86400 (s)",
        ),
        (
            "delay = \"20ms\" }",
            "dellay = \"20ms\" }",
            "small.toml:9: [topology.path1]: unknown key `dellay`; did you mean `delay`?",
        ),
        (
            "delay = \"20ms\" }",
            "delay = \"20\" }",
            "small.toml:9: [topology.path1]: `delay` needs a time with its unit, such as 30ms or 1.5s, not `20`",
        ),
        (
            "main.goodput",
            "main.godput",
            "small.toml:4: `metrics`: no metric is called `godput`; did you mean `goodput`?",
        ),
        (
            "main.goodput",
            "mian.goodput",
            "small.toml:4: `metrics`: `mian.goodput`: no flow or cable is called `mian`; did you mean `main`?",
        ),
        (
            "profile = \"cmt\"",
            "profile = \"cmt\"\nto = \"reciever\"",
            "small.toml:16: flow `main`: `to`: there is no host `reciever`; did you mean `receiver`?",
        ),
        (
            "profile = \"cmt\"",
            "profile = \"cmt\"\npaths = 3",
            "small.toml:16: flow `main`: `paths`: must lie between 1 and 2, the paths between its hosts",
        ),
        (
            "profile = \"cmt\"",
            "profile = \"cmt\"\nsegment = 20",
            "small.toml:16: flow `main`: `segment` says nothing in a flow over sctp: remove it",
        ),
        (
            "flow.main.receive",
            "flow.mian.receive",
            "small.toml:21: sweep `rbuf`: `sets`: `flow.mian.receive-buffer`: there is no flow `mian`",
        ),
        (
            "sweep = { loss = [\"1%\"]",
            "sweep = { loss = [\"3%\"]",
            "small.toml:31: [quick.sweep]: `loss`: `3%` is none of its values",
        ),
        (
            "name = \"rbuf\"",
            "name = \"seed\"",
            "small.toml:20: sweep `seed`: `name`: is a column of the results already: choose another one",
        ),
        ("\"4%\"]", "\"4%\", \"400%\"]", "`loss 400%` is more than 100% (at rbuf = 32KB, loss = 400%)"),
    ];
    let mut wrong = Vec::new();
    for (from, to, want) in cases {
        let got = error(from, to);
        assert!(!got.contains('\n'), "{got}");
        let right = if want.starts_with("small") { got == want } else { got.ends_with(want) };
        wrong.extend((!right).then(|| format!("{got}\n{want}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn keys_are_set_from_outside_as_by_a_sweep() {
    let mut s = parse(SMALL).unwrap();
    s.set("duration", "5s").unwrap();
    s.set("flow.main.streams", "4").unwrap();
    let plan = &s.points().unwrap()[0].plan;
    assert_eq!(plan.duration, anabranch_base::Duration::from_secs(5));
    let Transport::Sctp(sctp) = &plan.flows[0].transport else { panic!("sctp") };
    assert_eq!(sctp.delivery.stream_count(), 4);
    for (key, value) in [("flow.main.streems", "4"), ("flow.main.receive-buffer", "64KB"), ("seeds", "3")] {
        assert!(s.clone().set(key, value).is_err(), "{key}");
    }
}

#[test]
fn a_base_lends_what_is_not_given() {
    let base = SMALL.replace("name = \"small\"", "name = \"base\"");
    let child = "name = 'child'\nextends = 'base.toml'\ntopology.path1.delay = '99ms'\n[[flow]]\nname = 'more'\ntransport = 'tcp'\n";
    let s = Scenario::parse("child.toml", child, &|_| Ok(base.clone())).unwrap();
    let plan = &s.points().unwrap()[0].plan;
    assert_eq!((s.name.as_str(), plan.flows.len()), ("child", 2));
    assert_eq!(plan.topology.cables[0].forward.delay, anabranch_base::Duration::from_millis(99));
    let missing = Scenario::parse("child.toml", child, &|n| Err(format!("cannot read `{n}`"))).unwrap_err();
    assert_eq!(missing.to_string(), "child.toml:2: `extends`: cannot read `base.toml`");
}

#[test]
fn traces_come_from_files() {
    let reader = |name: &str| match name {
        "cell.trace" => Ok("1\n1\n4\n10\n".to_owned()),
        "loss.txt" => Ok("0010\n".to_owned()),
        "film.txt" => Ok("I 9000\nP 1000\n".to_owned()),
        "bad.trace" => Ok("5\n3\n".to_owned()),
        other => Err(format!("there is no file `{other}`")),
    };
    let path = "{ deliveries = { file = \"cell.trace\" }, delay = \"20ms\", down.loss = { file = \"loss.txt\" } }";
    let text = SMALL.replace("{ rate = \"5mbit\", delay = \"40ms\", up.loss = \"1%\" }", path).replace(
        "retransmission =",
        "traffic = { kind = \"video-trace\", frames = { file = \"film.txt\" } }\nretransmission =",
    );
    let s = Scenario::parse("small.toml", &text, &reader).unwrap();
    let plan = s.points().unwrap().remove(0).plan;
    let cable = plan.topology.cables.iter().find(|c| c.forward.deliveries.is_some()).expect("a recorded link");
    assert_eq!(cable.forward.mean_rate().map(|r| r.bytes_per_sec()), Some(600_000));
    assert_eq!(cable.backward.loss.mean(), 0.25);
    assert!((cable.forward.loss.mean() - 0.01).abs() < 1e-12);

    let swept = text
        .replace("sets = \"flow.main.receive-buffer\"", "sets = \"topology.path2.deliveries\"")
        .replace("[\"32KB\", \"128KB\"]", "[{ file = \"cell.trace\" }]");
    let s = Scenario::parse("small.toml", &swept, &reader).unwrap();
    assert_eq!(s.keys()[0].1, ["cell.trace"]);

    let error = |from: &str, to: &str| {
        let e = Scenario::parse("small.toml", &text.replacen(from, to, 1), &reader).expect_err("a mistake");
        e.to_string()
    };
    let bad = error("cell.trace", "bad.trace");
    assert!(bad.ends_with("`deliveries`: bad.trace: line 2: 3 ms comes after 5 ms: times must not fall"), "{bad}");
    let missing = error("cell.trace", "none.trace");
    assert!(missing.ends_with("`deliveries`: there is no file `none.trace`"), "{missing}");
    let both = error("{ deliveries", "{ rate = \"1mbit\", deliveries");
    assert!(both.ends_with("a link has a rate or a trace of deliveries, not both"), "{both}");
    let key = error("{ file = \"loss.txt\" }", "{ file = \"loss.txt\", repaet = true }");
    assert!(key.contains("unknown key `repaet`; did you mean `repeat`?"), "{key}");
    let film = error("film.txt", "loss.txt");
    assert!(film.contains("loss.txt: line 1:"), "{film}");
}

#[test]
fn viewers_need_frames_and_a_star_takes_several_flows() {
    let profile = "profile = \"cmt\"";
    let playout = format!("{profile}\nplayout = \"300ms\"");
    let blind = error("main.goodput", "main.underflows");
    assert!(blind.contains("`main.underflows` would always be empty: flow `main` needs `playout`"), "{blind}");
    let bulk = error(profile, &playout);
    assert!(bulk.contains("`playout`") && bulk.contains("is for traffic of kind video"), "{bulk}");
    let unknown = error("main.goodput", "na*.goodput");
    assert!(unknown.contains("no flow or cable is called `na*`"), "{unknown}");
    let film = SMALL.replacen(profile, &format!("{playout}\ntraffic = {{ kind = \"video\" }}"), 1).replacen(
        "main.goodput",
        "ma*.decodable-frames\", \"*.jain",
        1,
    );
    let points = parse(&film).and_then(|s| s.points()).expect("a scenario");
    let watched = Playout {
        after: anabranch_base::Duration::from_millis(300),
        fps: 25.0,
        dependence: Dependence::Display { closed: false },
    };
    assert_eq!(points[0].plan.flows[0].playout, Some(watched));
}

#[test]
fn series_are_of_flows_and_cables_and_have_names() {
    let with = |name: &str| error("name = \"small\"", &format!("name = \"small\"\nseries = [\"{name}\"]"));
    assert!(with("mian.share").contains("`mian.share`: no flow or cable is called `mian`; did you mean `main`?"));
    assert!(with("main.troughput").contains("no series is called `troughput`; did you mean `throughput`?"));
    assert!(with("main").contains("`main` is no FLOW.SERIES"));
    assert!(with("path1.cwnd").contains("no series is called `cwnd`; there are queue, queue-bytes"));
    let other = |transport: &str, name: &str| {
        let flow = format!("[[flow]]\nname = \"other\"\ntransport = \"{transport}\"\n\n[quick]");
        let flow = if transport == "udp" {
            flow.replace("[quick]", "traffic = { kind = \"cbr\", rate = \"1mbit\", size = 200 }\n\n[quick]")
        } else {
            flow
        };
        let text = SMALL.replacen("[quick]", &flow, 1);
        parse(&text.replacen("name = \"small\"", &format!("name = \"small\"\nseries = [\"{name}\"]"), 1))
    };
    assert!(other("tcp", "other.srtt").is_ok() && other("udp", "other.share").is_ok());
    let message = |transport, name| other(transport, name).expect_err("a mistake").to_string();
    assert!(message("tcp", "other.in-flight").contains("flow `other` is carried by tcp and has no in-flight"));
    assert!(message("udp", "other.cwnd").contains("flow `other` is carried by udp and has no cwnd"));
}

#[test]
fn a_cable_of_the_dual_dumbbell_has_two_directions() {
    let text = r#"
        name = "both"
        duration = "2s"
        metrics = ["main.goodput"]
        [topology]
        kind = "dual-dumbbell"
        access = { rate = "100mbit", up.loss = "1%" }
        edge = { rate = "50mbit", down.delay = "7ms" }
        path1 = { rate = "10mbit" }
        path2 = { rate = "10mbit" }
        [[flow]]
        name = "main"
        transport = "sctp"
    "#;
    let plan = &parse(text).unwrap().points().unwrap()[0].plan;
    for (name, loss, delay) in
        [("path1.left", 0.01, 0), ("path2.right", 0.01, 0), ("left1.1", 0.0, 7), ("right2.5", 0.0, 7)]
    {
        let c = plan.topology.cables.iter().find(|c| c.name == name).unwrap();
        assert_eq!((c.forward.loss.mean(), c.backward.loss.mean()), (loss, 0.0), "{name}");
        let ms = anabranch_base::Duration::from_millis;
        assert_eq!((c.forward.delay, c.backward.delay), (ms(0), ms(delay)), "{name}");
    }
}

#[test]
fn a_metric_that_is_always_empty_is_a_mistake() {
    let others = r#"
[[flow]]
name = "other"
transport = "tcp"
[[flow]]
name = "noise"
transport = "udp"
traffic = { kind = "cbr", rate = "100kbit", size = 200 }
[quick]"#;
    let text = SMALL.replacen("[quick]", others, 1);
    let with = |metric: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        parse(&text.replacen("main.goodput", metric, 1).replacen(from, to, 1))
    };
    let message = |metric: &str| with(metric, "small", "small").expect_err(metric).to_string();
    let empty = |metric: &str, why: &str| {
        let whole = format!("small.toml:4: `metrics`: `{metric}` would always be empty: {why}");
        assert_eq!(message(metric), whole);
    };
    empty("other.holes-max", "flow `other` is over tcp, and only sctp has that");
    empty(
        "noise.message-delay-p99",
        "flow `noise` is over udp, and only sctp or tcp or mptcp or nc-mptcp or fmtcp has that; `delay` is of any",
    );
    let stream = "flow `other` sends a stream without messages: `delay` is of its segments";
    empty("other.message-delay-p99", stream);
    let counts = "; tcp has `retransmissions`, `timeouts` and `recoveries`";
    empty("other.losses", &format!("flow `other` is over tcp, and only sctp or udp has that{counts}"));
    let repairing = "flow `noise` is over udp, and only sctp or tcp or mptcp or nc-mptcp or fmtcp has that";
    empty("noise.timeouts", &format!("{repairing}; udp has `losses`"));
    empty("*.spurious", repairing);
    empty("main.deadline-misses", "flow `main` needs a `lifetime`, such as \"150ms\"");
    empty("other.decisions", "flow `other` is over tcp, and only sctp has that");
    let cable = with("main.goodput", "rate = \"10mbit\", delay", "delay").expect_err("a mistake").to_string();
    assert!(cable.ends_with("`path1.utilisation` would always be empty: cable `path1` needs a `rate`"), "{cable}");
    // Each is fine where there is one that has it.
    for metric in
        ["other.spurious", "other.timeouts", "noise.losses", "*.message-delay", "*.goodput", "main.stage-draw"]
    {
        with(metric, "small", "small").unwrap_or_else(|e| panic!("{e}"));
    }
    // One point of a sweep is enough.
    let cwnd = ("retransmission = \"rtx_csi:tau=10\"", "retransmission = \"rtx_cwnd\"");
    let stages = with("main.stage-age", cwnd.0, cwnd.1).expect_err("a mistake").to_string();
    let why = "flow `main` has `retransmission = \"rtx_cwnd\"`, and only rtx_csi decides in stages";
    assert!(stages.ends_with(why), "{stages}");
    let sweep = "[[sweep]]\nname = \"p\"\nsets = \"flow.main.retransmission\"\nvalues = [\"rtx_cwnd\", \"rtx_csi\"]\n";
    with("main.stage-age", "[[sweep]]", &format!("{sweep}[[sweep]]")).unwrap_or_else(|e| panic!("{e}"));
    let off = ("name = \"other\"", "name = \"other\"\nenabled = false");
    let disabled = with("other.goodput", off.0, off.1).expect_err("a mistake").to_string();
    assert!(disabled.ends_with("would always be empty: no flow `other` is enabled"), "{disabled}");
    // What is set from outside may leave one empty.
    let mut s = with("main.stage-age", "small", "small").unwrap();
    s.set("flow.main.retransmission", "rtx_cwnd").unwrap();
}

#[test]
fn the_quick_form_is_checked_with_the_rest() {
    let set = |set: &str| error("seeds = 2", &format!("seeds = 2\nset = {{ {set} }}"));
    let wrong = [
        ("\"flow.main.recieve-buffer\" = \"1KB\"", "unknown key `recieve-buffer`; did you mean `receive-buffer`?"),
        ("\"durration\" = \"1s\"", "`durration` is no key of the network"),
        ("\"duration\" = \"1\"", "`duration`: needs a time with its unit"),
        ("\"flow.mian.paths\" = 1", "`flow.mian.paths`: there is no flow `mian`"),
        ("\"flow.main.receive-buffer\" = \"1MB\"", "is swept by `rbuf`"),
        ("\"topology.path1.dellay\" = \"1ms\"", "unknown key `dellay`"),
    ];
    for (key, what) in wrong {
        let e = set(key);
        assert!(e.starts_with("small.toml:31: [quick.set]: ") && e.contains(what), "{e}");
    }
    // Two that do not fit each other.
    let both = set("duration = \"4s\", \"flow.main.start\" = \"5s\"");
    assert!(both.starts_with("small.toml:") && both.contains("[quick") && both.contains("`start`"), "{both}");
    let none = error("seeds = 2", "seeds = 0");
    assert_eq!(none, "small.toml:30: [quick]: `seeds`: is 0, and must lie between 1 and 1000000");
}

#[test]
fn paths_are_the_pairs_that_reach_each_other() {
    // The sender has a third cable, but it leads to another host.
    let text = r#"
        name = "free"
        duration = "2s"
        metrics = ["main.goodput"]
        [topology]
        kind = "free"
        hosts = ["sender", "receiver", "other"]
        cable = [
          { from = "sender", to = "receiver", name = "a", rate = "1mbit" },
          { from = "sender", to = "other", name = "b", rate = "1mbit" },
          { from = "sender", to = "receiver", name = "c", rate = "1mbit" },
        ]
        [[flow]]
        name = "main"
        transport = "sctp"
        paths = 2
    "#;
    parse(text).unwrap_or_else(|e| panic!("{e}"));
    let e = parse(&text.replace("paths = 2", "paths = 3")).expect_err("a mistake").to_string();
    assert_eq!(e, "small.toml:16: flow `main`: `paths`: must lie between 1 and 2, the paths between its hosts");
}

#[test]
fn names_and_sizes_that_would_harm_the_results_are_mistakes() {
    let cases = [
        ("name = \"small\"", "name = \"../small\"", "small.toml:2: `name`: `../small` becomes the name of files"),
        ("name = \"small\"", "name = \"\"", "small.toml:2: `name`: `` becomes the name of files"),
        ("name = \"loss\"", "name = \"rbuf\"", "sweep `rbuf`: `name`: there are two sweeps of this name"),
        ("name = \"rbuf\"", "name = \"seed\"", "sweep `seed`: `name`: is a column of the results already"),
        ("name = \"rbuf\"", "name = \"main.goodput\"", "`name`: is a column of the results already"),
        (
            "\"topology.path1.up.loss\"",
            "\"flow.main.receive-buffer\"",
            "`flow.main.receive-buffer` overrules what the sweep `rbuf` sets",
        ),
        ("\"topology.path1.up.loss\"", "\"flow.m*.receive-buffer\"", "overrules what the sweep `rbuf` sets"),
        ("\"topology.path1.up.loss\"", "\"flow.main.name\"", "the name of a flow stays"),
        ("duration = \"10s\"", "duration = \"0s\"", "small.toml:3: `duration`: needs a time longer than zero"),
        ("duration = \"10s\"", "duration = \"10s\"\nseeds = 100000000000", "must lie between 1 and 1000000"),
        ("\nseeds = 2", "\nseeds = 0", "[quick]: `seeds`: is 0, and must lie between 1 and 1000000"),
        ("loss = [\"1%\"]", "loss = []", "small.toml:31: [quick.sweep]: `loss`: needs one of its values or more"),
        ("tau=10", "tau=10,tau=20", "rtx_csi: tau is given twice"),
        ("receive-buffer = \"128KB\"", "send-buffer = 1000", "`send-buffer` is 1000, and must hold a packet"),
    ];
    for (from, to, what) in cases {
        let e = error(from, to);
        assert!(e.contains(what), "{e}");
    }
    // `path` is a column of a series, and free without one.
    let path = SMALL.replacen("name = \"rbuf\"", "name = \"path\"", 1);
    parse(&path).expect("a scenario");
    let e = parse(&path.replacen("[topology]", "series = [\"main.cwnd\"]\n[topology]", 1)).expect_err("a mistake");
    assert!(e.to_string().contains("`name`: is a column of the results already"), "{e}");
    // A product that no memory holds.
    let sweep = |i: usize| {
        let values: Vec<String> = (1..=2_000).map(|v| format!("\"{v}ms\"")).collect();
        format!(
            "[[sweep]]\nname = \"s{i}\"\nsets = \"topology.path{i}.down.delay\"\nvalues = [{}]\n",
            values.join(", ")
        )
    };
    let many = SMALL.replace("[quick]", &format!("{}{}[quick]", sweep(1), sweep(2)));
    let e = parse(&many).expect_err("a mistake").to_string();
    assert!(e.ends_with("`sweep`: makes more than 1000000 points: choose fewer values"), "{e}");
}

#[test]
fn a_sweep_sets_several_keys_of_a_flow() {
    let swept = "sets = \"flow.main\"\nvalues = [\"one\", \"all\"]\nas = [{ streams = 3, paths = 1 }, { streams = 4 }]";
    let text = SMALL.replace("sets = \"flow.main.receive-buffer\"\nvalues = [\"32KB\", \"128KB\"]", swept);
    assert!(text.contains(swept), "{text}");
    let of = |p: &super::Point| match &p.plan.flows[0].transport {
        Transport::Sctp(s) => (s.delivery.stream_count(), s.paths, s.profile.name().to_owned()),
        _ => panic!("sctp"),
    };
    let points = parse(&text).unwrap().points().unwrap();
    let found: Vec<_> = points.iter().map(of).collect();
    assert!(found.contains(&(3, Some(1), "cmt".into())) && found.contains(&(4, None, "cmt".into())), "{found:?}");
    let wrong = parse(&text.replace("streams = 4", "steams = 4")).unwrap_err().to_string();
    assert!(wrong.contains("unknown key `steams`; did you mean `streams`?"), "{wrong}");
}

#[test]
fn events_are_spans_in_order_within_the_run() {
    let with = |events: &str| SMALL.replace("duration =", &format!("events = [{events}]\nduration ="));
    let plan = parse(&with("\"1s-1.5s\", \"2s-2s\"")).unwrap().points().unwrap().remove(0).plan;
    let ms = anabranch_base::Duration::from_millis;
    assert_eq!(plan.events, [(ms(1_000), ms(1_500)), (ms(2_000), ms(2_000))]);
    for (events, want) in [
        ("\"2s-1s\"", "`events`: needs a span such as 8s-9.5s, not `2s-1s`"),
        ("\"2s\"", "needs a span such as 8s-9.5s, not `2s`"),
        ("\"1s-3s\", \"2s-4s\"", "`events`: number 2: begins before the one before it has ended"),
        ("\"1s-3000s\"", "`events`: number 1: ends after the run"),
    ] {
        let got = parse(&with(events)).unwrap_err().to_string();
        assert!(got.contains(want), "{got}");
    }
    let blind = error("main.goodput", "main.recovery");
    assert!(blind.contains("`main.recovery` would always be empty"), "{blind}");
}
