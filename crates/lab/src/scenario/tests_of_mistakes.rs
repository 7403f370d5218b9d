//! Mistakes are reported with their line and key.

use super::*;

/// Keys of one name in several tables.
pub(super) const TWO: &str = r#"name = "two"
duration = "2s"
metrics = ["main.goodput"]
[topology]
kind = "disjoint-paths"
limit = "50p"
[topology.path1]
rate = "10mbit"
delay = "20ms"
[topology.path2]
rate = "10mbit"
delay = "20ms"
up.loss = "1%"
[[flow]]
name = "main"
transport = "sctp"
receive-buffer = "1MB"
[[flow]]
transport = "tcp"
name = "other"
[[sweep]]
name = "d"
sets = "topology.path2.delay"
values = [
  "10ms",
  "20ms",
]
[quick]
seeds = 1
sweep = { d = ["10ms"] }
set = { duration = "1s" }
"#;

/// The message after replacing a line, counted from 1.
pub(super) fn error(line: usize, by: &str) -> String {
    let mut lines: Vec<&str> = TWO.lines().collect();
    lines[line - 1] = by;
    let read = |name: &str| Err(format!("cannot read `{name}`"));
    Scenario::parse("two.toml", &lines.join("\n"), &read).expect_err(by).to_string()
}

pub(super) fn parsed(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse("two.toml", text, &|_| Err(String::new()))
}

pub(super) fn all(cases: &[(usize, &str, &str)]) {
    let mut wrong = Vec::new();
    for (line, by, want) in cases {
        let got = error(*line, by);
        // The line that was replaced is the one that is named.
        let whole = format!("two.toml:{line}: {want}");
        wrong.extend((got != whole).then(|| format!("{got}\n{whole}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_line_is_that_of_the_table_which_is_spoken_of() {
    let time = "needs a time with its unit, such as 30ms or 1.5s, not `20`";
    let in_path = format!("[topology.path2]: `delay` {time}");
    let swept = format!("{in_path} (at d = 20)");
    let rate = "needs a rate with its unit, such as 6mbit, 800kbit or 1mbyte (a second), or `unlimited`, not `5mb`";
    let in_rate = format!("[topology.path2]: `rate` {rate}");
    let nothing = "`limit`: `limit 0` drops everything; use `down` to cut a path";
    let (one, shared) = (format!("[topology.path1]: {nothing}"), format!("[topology]: {nothing}"));
    all(&[
        (11, "rate = \"5mb\"", &in_rate),
        (9, "limit = \"0p\"", &one),
        (6, "limit = \"0p\"", &shared),
        (13, "up.dleay = \"1ms\"", "[topology.path2]: unknown key `dleay`; did you mean `delay`?"),
        (13, "up.loss = { file = \"none.txt\" }", "[topology.path2.up]: `loss`: cannot read `none.txt`"),
        // What a sweep sets is there and not where it goes to.
        (26, "  \"20\",", &swept),
        (23, "sets = \"topology.path2.dleay\"", "[topology.path2]: unknown key `dleay`; did you mean `delay`?"),
        (20, "name = \"main\"", "flow `main`: `name`: there are two flows of this name"),
        (20, "name = \"o.o\"", "[[flow]]: `name`: needs letters, without dots, stars, commas and quotes"),
        (30, "sweep = { d = [\"11ms\"] }", "[quick.sweep]: `d`: `11ms` is none of its values"),
        (31, "set = { duration = \"1\" }", &format!("[quick.set]: `duration`: {}", time.replace("20", "1"))),
        (17, "packet-size = 10", "flow `main`: `packet-size` is 10, and must lie between 532 and 65535 bytes"),
    ]);
}

#[test]
fn tables_in_one_line_and_what_is_lent_are_found() {
    let text = TWO
        .replace("[topology.path1]\nrate = \"10mbit\"\ndelay = \"20ms\"\n", "path1 = { rate = \"10mbit\" }\n")
        .replace("[topology.path2]\nrate = \"10mbit\"\ndelay = \"20ms\"\nup.loss", "path2 = { rate = \"5mb\" }\nloss");
    let message = |text: &str, below: &str| {
        Scenario::parse("two.toml", text, &|_| Ok(below.to_owned())).expect_err("a mistake").to_string()
    };
    let e = message(&text, "");
    assert!(e.starts_with("two.toml:8: [topology.path2]: `rate` needs a rate"), "{e}");
    // What is lent is wrong in the file that lends it.
    let own = "name = \"own\"\nextends = \"../all/base.toml\"\n[topology.path2]\ndelay = \"1ms\"\n";
    let parsed = |file: &str, below: &str| {
        Scenario::parse(file, own, &|_| Ok(below.to_owned())).expect_err("a mistake").to_string()
    };
    let e = parsed("set/two.toml", &text);
    assert!(e.starts_with("all/base.toml:8: [topology.path2]: `rate` needs a rate"), "{e}");
    assert!(e.ends_with("not `5mb` (set/two.toml:2 extends it)"), "{e}");
    let e = parsed("two.toml", &text.replace("limit = \"50p\"", "limit ="));
    assert!(e.starts_with("../all/base.toml:6: ") && e.ends_with(" (two.toml:2 extends it)"), "{e}");
}

#[test]
fn keys_of_traffic_are_named() {
    let of = |keys: &str| error(16, &format!("traffic = {keys}"));
    let mut wrong = Vec::new();
    for (keys, want) in [
        ("\"blk\"", "`traffic.kind`: no kind is called `blk`; did you mean `bulk`?"),
        ("3", "`traffic`: needs a kind, such as \"bulk\", or { kind = \"web\" }"),
        ("{ size = 3 }", "`traffic`: the key `kind` is missing"),
        ("{ kind = \"cbr\", rate = \"1mbit\" }", "`traffic`: the key `size` is missing"),
        ("{ kind = \"cbr\", rate = \"0mbit\", size = 9 }", "`traffic.rate`: `0mbit` sends nothing"),
        (
            "{ kind = \"cbr\", rate = \"1mbit\", size = 1.5 }",
            "`traffic.size`: needs a number of bytes, such as \"64KB\" or 1500, not the number 1.5",
        ),
        ("{ kind = \"cbr\", rate = \"1mbit\", sizes = 9 }", "unknown key `sizes`; did you mean `size`?"),
        (
            "{ kind = \"thin\", app = \"doom\" }",
            "`traffic.app`: unknown value `doom`; known are anarchy-online, remote-desktop, ssh, world-of-warcraft, \
             skype, casa",
        ),
        (
            "{ kind = \"mix\", peak = \"1mbit\", stream-share = 0.9 }",
            "`traffic.stream-share`: needs a share such as \"1%\", not the number 0.9",
        ),
        (
            "{ kind = \"mix\", peak = \"1mbit\", stream-share = \"150%\" }",
            "`traffic.stream-share`: `150%` is more than 100%",
        ),
    ] {
        // The transport that this line replaces comes after.
        let (got, whole) = (of(&format!("{keys}\ntransport = \"sctp\"")), format!("two.toml:16: flow `main`: {want}"));
        wrong.extend((got != whole).then(|| format!("{got}\n{whole}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn keys_of_tcp_and_of_links_are_named() {
    let tcp = |key: &str| error(19, &format!("transport = \"tcp\"\n{key} = 0"));
    for (key, unit) in [("segment", "byte"), ("window", "segment"), ("initial-window", "segment")] {
        assert_eq!(tcp(key), format!("two.toml:20: flow `other`: `{key}`: needs one {unit} or more"));
    }
    let of = |keys: &str| error(19, &format!("transport = \"tcp\"\n{keys}"));
    for (keys, key, what) in [
        ("congestion = \"bbr\"", "congestion", "is reno or cubic, not `bbr`"),
        ("rules = \"bsd\"", "rules", "is rfc, ns2 or linux, not `bsd`"),
        ("recovery = \"fack\"", "recovery", "is tahoe, reno, newreno, sack, sack-pipe or rack, not `fack`"),
        (
            "recovery = \"reno\"\ncongestion = \"cubic\"",
            "recovery",
            "is sack, sack-pipe or rack with `congestion = \"cubic\"`",
        ),
        ("rto-min = \"90s\"", "rto-min", "must not be above the longest time-out, 60 s"),
    ] {
        assert_eq!(of(keys), format!("two.toml:20: flow `other`: `{key}`: {what}"));
    }
    let words = "distribution, normal, uniform, exponential";
    let gauss = format!("[topology.path2]: `jitter`: unknown word `gauss` after `2ms`; known are {words}");
    all(&[
        (13, "loss = \"1% brust 3\"", "[topology.path2]: `loss`: unknown word `brust`; did you mean `burst`?"),
        (
            13,
            "up.loss = \"1% burst 0\"",
            "[topology.path2]: `up.loss`: `burst` needs a mean number of packets of 1 or more, not `0`",
        ),
        (13, "jitter = \"2ms gauss\"", &gauss),
        (13, "mtu = \"900 x\"", "[topology.path2]: `mtu`: unknown word `x` after `900`: remove it"),
        (
            13,
            "schedule = [\"1s down\", \"7s donw\"]",
            "[topology.path2]: `schedule`: `7s donw`: unknown word `donw`; did you mean `down`?",
        ),
    ]);
}

#[test]
fn values_that_contradict_each_other_are_mistakes() {
    let down = "use `down` to cut a path";
    let room = |n: u32, flow: &str, has: u32| {
        format!(
            "[topology.path1]: `limit`: {n} bytes at cable `path1` hold no packet of flow `{flow}`, which has {has}: {down}"
        )
    };
    let small = room(100, "main", 1_500);
    let bits = "a small `b` would be bits; write";
    all(&[
        (9, "limit = \"100B\"", &small),
        (9, "limit = \"100B waiting\"", &small),
        (
            17,
            "timer = \"rfc9260:rto_min=5000,rto_max=1000\"",
            "flow `main`: `timer`: rfc9260: rto_min=5000 must not be above rto_max=1000",
        ),
        (
            13,
            "schedule = [\"7s down\", \"3s up\"]",
            "[topology.path2]: `schedule`: `3s up` comes after `7s down`: write changes in the order of their times",
        ),
        (17, "send-buffer = \"32Kb\"", &format!("flow `main`: `send-buffer`: `32Kb`: {bits} 32KB for bytes")),
        (9, "limit = \"64kb\"", &format!("[topology.path1]: `limit`: `limit 64kb`: {bits} 64kB for bytes")),
    ]);
    let tcp = |key: &str| error(19, &format!("transport = \"tcp\"\n{key} = 100000"));
    let holds = "an IP packet holds 65535 bytes, and this makes it one of";
    assert_eq!(tcp("segment"), format!("two.toml:20: flow `other`: `segment`: {holds} 100052"));
    assert_eq!(tcp("header"), format!("two.toml:20: flow `other`: `header`: {holds} 101448"));
    // Just enough is no mistake: a packet, changes at one time.
    for fine in ["limit = \"1500B\"", "schedule = [\"1s down\", \"1s rate 1mbit\"]"] {
        let text = TWO.replacen("delay = \"20ms\"", fine, 1);
        Scenario::parse("two.toml", &text, &|_| Err(String::new())).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// A scenario with most kinds of keys, each on a line of its own.
const MANY: &str = r#"name = "many"
title = "All"
source = "none"
seeds = 2
duration = "5s"
measure-from = "1s"
bin = "100ms"
events = ["2s-3s"]
metrics = ["main.goodput", "a.utilisation"]
series = ["main.cwnd"]

[topology]
kind = "free"
hosts = ["sender", "receiver"]
routers = ["r"]

[[topology.cable]]
from = "sender"
to = "r"
name = "a"
rate = "10mbit"
delay = "20ms 2ms"
jitter = "1ms"
order = "kept"
loss = "1% burst 3"
loss-at = "wire"
arq = 3
technology = "wlan"
modulation = "qam16"
frame = "1500B"
report = "100ms"
limit = "60p"
limit-bytes = "100KB"
queue = "codel target=5ms"
overhead = 14
mtu = 1500
duplicate = "1%"
reorder = "1%"
up.delay = "9ms"
down.loss = "1%"
schedule = ["1s down", "2s up"]
every = "4s"

[[topology.cable]]
from = "r"
to = "receiver"

[[flow]]
name = "main"
transport = "sctp"
from = "sender"
to = "receiver"
start = "100ms"
start-within = "10ms"
enabled = true
playout = "300ms"
follow-rate = "low"
least-rate = "100kbit"
rate-lag = "1s"
profile = "live"
peer = "sctp"
streams = 4
unordered = true
lifetime = "200ms"
max-retransmissions = [1, 2, 3]
read-rate = "5mbit"
paths = 1
encapsulation = "udp"
packet-size = 1200
receive-buffer = "1MB"
send-buffer = "1MB"
max-burst = 4
sack-delay = "100ms"
heartbeat-interval = "1s"
path-max-retrans = 3
association-max-retrans = 9
initial-window = "4KB"
initial-ssthresh = "64KB"
receive-overhead = 0
ecn = true
retransmission = "rtx_csi:tau=10"
[flow.traffic]
kind = "video"
rate = "1mbit"
fps = 25.0
group = 12
anchor-every = 3
sigma = 0.1

[[flow]]
name = "other"
transport = "tcp"
recovery = "reno"
rules = "rfc"
segment = 1000
header = 40
window = 20
initial-window = 2
initial-ssthresh = 8
delayed-ack = "0"
traffic = { kind = "bulk", total = "1MB" }

[[flow]]
name = "noise"
transport = "udp"
header = 28
traffic = { kind = "cbr", rate = "100kbit", size = 200 }
"#;

/// The line of what is wrong when one line of MANY is another; none when it is fine.
fn line_of(line: usize, by: &str) -> Option<(Option<usize>, String)> {
    let mut lines: Vec<&str> = MANY.lines().collect();
    lines[line - 1] = by;
    let read = |name: &str| Err(format!("cannot read `{name}`"));
    Scenario::parse("many.toml", &lines.join("\n"), &read).err().map(|e| (e.line, e.to_string()))
}

#[test]
fn every_key_that_is_misspelt_and_every_value_of_another_kind_is_found_on_its_line() {
    assert_eq!(line_of(1, "name = \"many\""), None);
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (i, text) in MANY.lines().enumerate() {
        let Some((key, value)) = text.split_once(" = ") else { continue };
        // Without a name or kind a table is no such table, and says so where it begins.
        let named = matches!(key, "name" | "kind" | "from" | "to" | "transport" | "metrics" | "duration" | "hosts");
        let spelt = format!("{key}x = {value}");
        // What takes almost any text of a person.
        let free = matches!(key, "title" | "source" | "name");
        let listed = value.starts_with('[') && key != "max-retransmissions";
        let typed = if listed || value.starts_with('{') { "3" } else { "[[]]" };
        let tries = [(!named).then_some(spelt), Some(format!("{key} = {typed}"))];
        let garbled = format!("{key} = \"~\"");
        let tries = tries.into_iter().chain([(!free).then_some(garbled)]).flatten();
        for by in tries {
            tried += 1;
            match line_of(i + 1, &by) {
                Some((Some(line), e)) if line == i + 1 && !e.contains('\n') => {}
                other => wrong.push(format!("{}: {by}: {other:?}", i + 1)),
            }
        }
    }
    assert!(tried > 200, "{tried}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn phases_must_lie_in_the_run() {
    let lines = |by: &str| -> String {
        let mut lines: Vec<&str> = TWO.lines().collect();
        lines[2] = by;
        let read = |_: &str| Err(String::new());
        Scenario::parse("two.toml", &lines.join("\n"), &read).expect_err(by).to_string()
    };
    let metrics = "metrics = [\"main.goodput@jump\"]";
    for (line, keys, want) in [
        (
            3,
            String::new(),
            "`metrics`: `main.goodput@jump`: the scenario needs `phases`, such as { jump = \"5s-10s\" }",
        ),
        (
            3,
            "phases = { jumps = \"0s-1s\" }".to_owned(),
            "`metrics`: `main.goodput@jump`: no phase is called `jump`; did you mean `jumps`?",
        ),
        (4, "phases = { jump = \"1s-3s\" }".to_owned(), "`phases.jump`: ends after the run, `duration`"),
        (
            4,
            "phases = { jump = \"1s-1s\" }".to_owned(),
            "`phases.jump`: begins where it ends: there is nothing to measure",
        ),
        (
            5,
            "phases.jump = \"0s-1s\"\nphases.other = \"1.5-2s\"".to_owned(),
            "`phases.other`: needs a time with its unit, such as 30ms or 1.5s, not `1.5`",
        ),
        (
            4,
            "phases = { jump = \"0s-1s\", \"a.b\" = \"0s-1s\" }".to_owned(),
            "`phases.a.b`: the name of a phase needs letters, digits, `-` and `_`",
        ),
        (4, "phases.jump = \"soon\"".to_owned(), "`phases.jump`: needs a span such as 8s-9.5s, not `soon`"),
        (4, "phases = \"0s-1s\"".to_owned(), ""),
        (5, "phases.jump = \"0s-1s\"\nmeasure-to = \"3s\"".to_owned(), "`measure-to`: comes after the end, `duration`"),
        (
            5,
            "phases.jump = \"0s-1s\"\nmeasure-to = \"1s\"\nmeasure-from = \"1s\"".to_owned(),
            "`measure-to`: must come after `measure-from`",
        ),
    ] {
        let got = lines(&format!("{metrics}\n{keys}"));
        if !want.is_empty() {
            assert_eq!(got, format!("two.toml:{line}: {want}"));
        }
        assert!(got.starts_with("two.toml:") && !got.contains('\n'), "{got}");
    }
    let text = TWO.replacen("metrics = [", "phases.jump = \"0s-500ms\"\nmetrics = [\"main.goodput@jump\", ", 1);
    let late = text.replacen("name = \"main\"", "name = \"main\"\nstart = \"500ms\"", 1);
    let got = Scenario::parse("two.toml", &late, &|_| Err(String::new())).expect_err("late").to_string();
    let want = "`metrics`: `main.goodput@jump` would always be empty: flow `main` starts when that is over";
    assert_eq!(got, format!("two.toml:4: {want}"));
    let early = text.replacen("name = \"main\"", "name = \"main\"\nstart = \"499ms\"", 1);
    assert!(Scenario::parse("two.toml", &early, &|_| Err(String::new())).is_ok());
}
