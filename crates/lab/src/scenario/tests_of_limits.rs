//! Values that do not fit the flow, the run or their own kind.

use super::tests_of_mistakes::{TWO, all, error, parsed};
use super::*;

/// Who starts too late is named by the key that makes it so.
#[test]
fn a_start_after_the_end_is_named_by_its_key() {
    all(&[
        (17, "start = \"2s\"", "flow `main`: `start`: must come before the end, `duration`"),
        (17, "start = \"3600s\"", "flow `main`: `start`: must come before the end, `duration`"),
        (
            17,
            "start-within = \"2s\"",
            "flow `main`: `start-within`: the latest start must come before the end, `duration`",
        ),
        (
            17,
            "start-within = \"10s\"",
            "flow `main`: `start-within`: the latest start must come before the end, `duration`",
        ),
    ]);
    let both = error(17, "start = \"1s\"\nstart-within = \"1s\"");
    assert!(both.starts_with("two.toml:18: flow `main`: `start-within`: the latest start"), "{both}");
    let late = error(17, "start = \"3s\"\nstart-within = \"1s\"");
    assert!(late.starts_with("two.toml:17: flow `main`: `start`: "), "{late}");
}

#[test]
fn packets_that_are_too_small_for_a_flow_are_a_mistake() {
    let small = |mtu: u32, flow: &str, least: u32| {
        format!(
            "[topology.path1]: `mtu`: packets of {mtu} bytes at cable `path1` are too small for flow `{flow}`, which needs \
             {least}: use `down` to cut a path"
        )
    };
    for mtu in [1, 10, 40, 100, 531] {
        all(&[(9, &format!("mtu = {mtu}"), &small(mtu, "main", 532))]);
    }
    // TCP sends full segments whatever the path takes.
    for mtu in [532, 1_499] {
        all(&[(9, &format!("mtu = {mtu}"), &small(mtu, "other", 1_500))]);
    }
    let alone = |flow: &str, mtu: u32| {
        let text = format!(
            "name = \"one\"\nduration = \"2s\"\nmetrics = [\"main.goodput\"]\n[topology]\nkind = \"single-path\"\nmtu = \
             {mtu}\n[[flow]]\nname = \"main\"\n{flow}"
        );
        Scenario::parse("one.toml", &text, &|_| Err(String::new())).map(drop).map_err(|e| e.to_string())
    };
    let cbr = |size: u32| format!("traffic = {{ kind = \"cbr\", rate = \"80kbit\", size = {size} }}");
    for (flow, least) in [
        ("transport = \"sctp\"".to_owned(), 532),
        ("transport = \"sctp\"\nencapsulation = \"udp\"".to_owned(), 540),
        ("transport = \"tcp\"\nsegment = 500".to_owned(), 552),
        (format!("transport = \"udp\"\n{}", cbr(100)), 128),
    ] {
        assert_eq!(alone(&flow, least), Ok(()), "{flow}");
        let why = alone(&flow, least - 1).expect_err("too small");
        assert!(
            why.starts_with("one.toml:6: [topology]: `mtu`: ") && why.contains(&format!("needs {least}:")),
            "{why}"
        );
    }
}

#[test]
fn messages_larger_than_the_send_buffer_are_a_mistake() {
    let flow = |keys: &str| error(17, &format!("send-buffer = \"64KB\"\n{keys}"));
    for (traffic, size) in [
        ("\"bulk\", size = 65537", 65_537),
        ("\"bulk\", size = \"1MB\"", 1_048_576),
        ("\"bulk\", size = \"1MB\", total = 70000", 70_000),
        ("\"cbr\", rate = \"1mbit\", size = 70000", 70_000),
        ("\"pareto-on-off\", mean = \"1mbit\", size = 70000", 70_000),
        ("\"vbr\", rate = \"1mbit\", min-size = 100, max-size = 70000, interval = \"1s\"", 70_000),
    ] {
        let key = if traffic.contains("vbr") { "max-size" } else { "size" };
        let what = format!("messages of {size} bytes do not fit the send buffer of 65536: raise `send-buffer`");
        let want = format!("two.toml:18: flow `main`: `traffic.{key}`: {what}");
        assert_eq!(flow(&format!("traffic = {{ kind = {traffic} }}")), want);
    }
    let mut lines: Vec<&str> = TWO.lines().collect();
    lines[16] = "send-buffer = \"64KB\"\ntraffic = { kind = \"bulk\", size = 65536 }";
    let read = |name: &str| Err(format!("cannot read `{name}`"));
    assert!(Scenario::parse("two.toml", &lines.join("\n"), &read).is_ok());
}

#[test]
fn a_metric_is_asked_for_once() {
    all(&[
        (3, "metrics = [\"main.goodput\", \"main.goodput\"]", "`metrics`: `main.goodput` is there twice: remove one"),
        (
            3,
            "metrics = [\"main.goodput\", \"main.delay\", \"other.goodput\", \"main.delay\"]",
            "`metrics`: `main.delay` is there twice: remove one",
        ),
    ]);
    let lines = error(3, "metrics = [\n  \"main.goodput\",\n  \"main.delay\",\n  \"main.goodput\",\n]");
    assert_eq!(lines, "two.toml:6: `metrics`: `main.goodput` is there twice: remove one");
}

#[test]
fn numbers_out_of_range_are_answered_with_the_range() {
    for n in ["70000", "65536", "-1"] {
        for (key, value) in [
            ("max-retransmissions", n.to_owned()),
            ("max-burst", n.to_owned()),
            ("path-max-retrans", n.to_owned()),
            ("streams", n.to_owned()),
        ] {
            let want = format!("flow `main`: `{key}`: needs a whole number from 0 to 65535, not the number {n}");
            all(&[(17, &format!("{key} = {value}"), &want)]);
        }
    }
    let listed = error(17, "max-retransmissions = [1, 2, 70000]");
    assert!(listed.contains("needs a whole number from 0 to 65535, not the number 70000"), "{listed}");
}

#[test]
fn a_mean_is_a_rate_or_a_table() {
    let mean = |kind: &str, mean: &str| error(17, &format!("traffic = {{ kind = \"{kind}\", mean = {mean} }}"));
    for kind in ["mix", "pareto-on-off\", size = \"500B"] {
        for (value, says) in [
            (
                "true",
                "`traffic.mean`: needs a rate such as \"1mbit\", or { from = \"0\", to = \"2mbit\", every = \"10s\" }",
            ),
            ("2", "`traffic.mean`: needs a rate such as \"1mbit\", or { from"),
            ("\"2mbt\"", "`traffic.mean`"),
            ("{ to = \"2mbit\" }", "`traffic.mean`: the key `every` is missing"),
            ("{ to = \"2mbit\", evry = \"1s\" }", "did you mean `every`?"),
            ("{ to = \"2mbit\", every = \"1\" }", "`traffic.mean.every`: needs a time"),
        ] {
            let why = mean(kind, value);
            assert!(why.starts_with("two.toml:17: flow `main`: ") && why.contains(says), "{kind} {value}: {why}");
        }
    }
}

#[test]
fn a_queue_must_hold_what_is_really_sent() {
    let with = |line: usize, by: &str, flow: &str| {
        let mut lines: Vec<&str> = TWO.lines().collect();
        lines[line - 1] = by;
        parsed(&lines.join("\n").replace("receive-buffer = \"1MB\"", flow))
    };
    // Headers of the link count.
    let short = with(9, "limit = \"1500B\"\noverhead = 14", "").expect_err("too small").to_string();
    assert!(short.starts_with("two.toml:9: [topology.path1]: `limit`: 1500 bytes at cable"), "{short}");
    assert!(short.contains("which has 1514:"), "{short}");
    with(9, "limit = \"1514B\"\noverhead = 14", "").expect("just enough");
    // One direction, and what holds for all.
    let up = with(13, "up.limit = \"100B\"", "").expect_err("too small").to_string();
    assert!(up.starts_with("two.toml:13: [topology.path2]: `up.limit`: 100 bytes"), "{up}");
    let whole = with(6, "limit = \"100B\"", "").expect_err("too small").to_string();
    assert!(whole.starts_with("two.toml:6: [topology]: `limit`: 100 bytes"), "{whole}");
    // Small packets go through; large datagrams are cut.
    with(9, "limit = \"1000B\"", "traffic = { kind = \"bulk\", total = 400 }").expect_err("that of `other`");
    let one = |limit: &str, transport: &str, traffic: &str| {
        let text =
            TWO.replace("transport = \"sctp\"\nreceive-buffer = \"1MB\"", &format!("{transport}\ntraffic = {traffic}"));
        let text = text.replace("[[flow]]\ntransport = \"tcp\"\nname = \"other\"\n", "");
        parsed(&text.replacen("delay = \"20ms\"", &format!("limit = \"{limit}\""), 1))
    };
    one("1000B", "transport = \"sctp\"", "{ kind = \"bulk\", total = 400 }").expect("one small packet");
    one("1500B", "transport = \"udp\"", "{ kind = \"cbr\", rate = \"1mbit\", size = 4000 }").expect("three datagrams");
    one("1499B", "transport = \"udp\"", "{ kind = \"cbr\", rate = \"1mbit\", size = 4000 }").expect_err("too small");
    one("1000B", "transport = \"tcp\"", "{ kind = \"bulk\", size = 100 }").expect_err("a stream in full segments");
    let wide = one("1500B", "transport = \"udp\"\nheader = 70000", "\"vbr\"").expect_err("too wide").to_string();
    assert!(wide.ends_with("`header`: an IP packet holds 65535 bytes"), "{wide}");
}

#[test]
fn a_limit_set_by_a_sweep_is_reported_with_its_value() {
    for sets in ["topology.limit", "topology.path1.up.limit"] {
        let text = TWO.replace("topology.path2.delay", sets).replace("\"10ms\",\n", "\"64KB\",\n");
        let text = text.replace("  \"20ms\",\n", "  \"100B\",\n").replace("d = [\"10ms\"]", "d = [\"64KB\"]");
        let e = parsed(&text).expect_err("the second value").to_string();
        assert!(e.starts_with("two.toml:26: ") && e.contains("100 bytes at cable"), "{sets}: {e}");
    }
}
