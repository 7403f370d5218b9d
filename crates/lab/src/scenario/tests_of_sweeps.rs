//! Sweeps whose steps set several keys, replace flows and add them.

use super::*;
use anabranch_sim::traffic::TrafficConfig;

const TWO: &str = r#"name = "s"
duration = "5s"
metrics = ["main.goodput", "other.goodput"]
[topology]
kind = "disjoint-paths"
path1 = { rate = "10mbit", delay = "20ms" }
path2 = { rate = "5mbit", delay = "40ms" }
[[flow]]
name = "main"
transport = "sctp"
receive-buffer = "64KB"
[[flow]]
name = "other"
transport = "tcp"
recovery = "sack"
"#;

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse("s.toml", text, &|name| Err(format!("cannot read `{name}`")))
}

/// The points of the scenario with this sweep.
fn points(base: &str, sweep: &str) -> Vec<Point> {
    read(&format!("{base}[[sweep]]\n{sweep}")).and_then(|s| s.points()).unwrap_or_else(|e| panic!("{e}"))
}

fn mistake(sweep: &str) -> String {
    read(&format!("{TWO}[[sweep]]\n{sweep}")).expect_err("a mistake").to_string()
}

/// Name, transport and kind of traffic of each flow.
fn flows(p: &Point) -> Vec<(&str, &str, bool)> {
    let transport = |f: &Flow| f.transport.name();
    p.plan.flows.iter().map(|f| (f.name.as_str(), transport(f), matches!(f.traffic, TrafficConfig::Bulk(_)))).collect()
}

#[test]
fn a_step_sets_several_keys_to_different_values() {
    let sweep = r#"name = "network"
values = ["slow", "far", "as it is"]
as = [
  { "topology.path1.rate" = "1mbit", "flow.main.profile" = "live" },
  { "topology.path2.delay" = "90ms", "flow.main" = { paths = 1, streams = 3 } },
  {},
]
"#;
    let all = points(TWO, sweep);
    let of = |p: &Point| {
        let cable = |i: usize| p.plan.topology.cables[i].forward.clone();
        let Transport::Sctp(s) = &p.plan.flows[0].transport else { panic!("sctp") };
        let rate = cable(0).rate.map(|r| r.bytes_per_sec() / 125);
        (p.values[0].clone(), rate, cable(1).delay.as_nanos() / 1_000_000, s.profile.name().to_owned(), s.paths)
    };
    let found: Vec<_> = all.iter().map(of).collect();
    let want = [
        ("slow".to_owned(), Some(1_000), 40, "live".to_owned(), None),
        ("far".to_owned(), Some(10_000), 90, "cmt".to_owned(), Some(1)),
        ("as it is".to_owned(), Some(10_000), 40, "cmt".to_owned(), None),
    ];
    assert_eq!(found, want);
    let s = read(&format!("{TWO}[[sweep]]\n{sweep}")).expect("a scenario");
    let keys = ["flow.main.profile", "topology.path1.rate", "flow.main", "topology.path2.delay"];
    assert_eq!(s.sets()["network"], keys);
    // The quick form keeps the step that belongs to the value.
    let quick = format!("{TWO}[[sweep]]\n{sweep}[quick]\nsweep = {{ network = [\"far\"] }}\n");
    let quick = read(&quick).and_then(|s| s.chosen(Choice { quick: true, seeds: None })?.points()).expect("points");
    assert_eq!((quick.len(), of(&quick[0])), (1, want[1].clone()));
}

#[test]
fn a_mistake_in_a_step_has_its_own_line() {
    let step = |step: &str| mistake(&format!("name = \"n\"\nvalues = [\"a\", \"b\"]\nas = [\n{{}},\n{step}\n]\n"));
    let at = |what: &str| format!("s.toml:21: {what}");
    assert_eq!(
        step("{ \"topology.path1.rate\" = \"1\" },"),
        at("[topology.path1]: `rate` needs a rate with its unit, such as 6mbit, 800kbit or 1mbyte (a second), or \
            `unlimited`, not `1` (at n = b)")
    );
    let misspelt = step("{ \"topology.path1.reta\" = \"1mbit\" },");
    assert!(misspelt.starts_with(&at("[topology.path1]: unknown key `reta`; did you mean `rate`?")), "{misspelt}");
    assert_eq!(
        step("{ \"flow.mian.paths\" = 1 },"),
        at("sweep `n`: `flow.mian.paths`: there is no flow `mian` (at n = b)")
    );
    assert_eq!(
        step("{ \"topologie.path1.rate\" = \"1mbit\" },"),
        at("sweep `n`: `topologie.path1.rate` is no key of the network; it begins with topology, flow, duration, \
            measure-from, measure-to, phases, bin, events")
    );
    assert_eq!(
        step("{ topology.path1.rate = \"1mbit\" },"),
        at("sweep `n`: `topology`: write the whole key in quotes, such as \"topology.path1.KEY\"")
    );
    assert_eq!(step("{ \"flow.main.name\" = \"x\" },"), at("sweep `n`: the name of a flow stays: metrics go by it"));
    let text = step("\"1mbit\",");
    assert!(text.starts_with(&at("sweep `n`: `as`: needs `sets`, or in `as` a table for each value")), "{text}");
    let none = mistake("name = \"n\"\nvalues = [\"a\", \"b\"]\n");
    assert!(none.starts_with("s.toml:16: sweep `n`: needs `sets`, or in `as` a table"), "{none}");
    let fewer = mistake("name = \"n\"\nvalues = [\"a\", \"b\"]\nas = [{}]\n");
    assert_eq!(fewer, "s.toml:19: sweep `n`: `as`: needs one entry for each of `values`");
    let twice = mistake(
        "name = \"m\"\nsets = \"topology.path1.up.loss\"\nvalues = [\"1%\"]\n[[sweep]]\nname = \"n\"\nvalues = [\"a\"]\n\
         as = [\n{ \"topology.path1\" = { rate = \"1mbit\" } }]\n",
    );
    assert_eq!(twice, "s.toml:24: sweep `n`: `topology.path1` overrules what the sweep `m` sets");
}

#[test]
fn a_step_replaces_a_flow_or_adds_one() {
    let competitors = r#"name = "competitor"
sets = "flow.other"
values = ["tcp", "sctp", "udp", "more"]
as = [
  {},
  { replace = true, transport = "sctp", profile = "sctp" },
  { replace = true, transport = "udp", traffic = { kind = "cbr", rate = "1mbit", size = 500 } },
  { congestion = "cubic" },
]
"#;
    let all = points(TWO, competitors);
    let other: Vec<_> = all.iter().map(|p| flows(p)[1]).collect();
    let want = [("other", "tcp", true), ("other", "sctp", true), ("other", "udp", false), ("other", "tcp", true)];
    assert_eq!(other, want);
    // A flow that the file has not.
    let without = TWO.split("[[flow]]\nname = \"other\"").next().expect("the first flow");
    let added = r#"name = "competitor"
values = ["none", "udp"]
as = [{}, { "flow.other" = { transport = "udp", traffic = { kind = "cbr", rate = "1mbit", size = 500 } } }]
"#;
    let all = points(without, added);
    assert_eq!(flows(&all[0]), [("main", "sctp", true)]);
    assert_eq!(flows(&all[1]), [("main", "sctp", true), ("other", "udp", false)]);
    // All flows.
    let whole = r#"name = "who"
values = ["one", "two"]
as = [
  { flow = [{ name = "main", transport = "sctp" }] },
  { flow = [{ name = "other", transport = "tcp" }, { name = "main", transport = "tcp" }] },
]
"#;
    let no_flows = TWO.split("[[flow]]").next().expect("a beginning");
    let all = points(no_flows, whole);
    assert_eq!(flows(&all[0]), [("main", "sctp", true)]);
    assert_eq!(flows(&all[1]), [("other", "tcp", true), ("main", "tcp", true)]);
    // The quick form and --set do the same.
    let mut s = read(TWO).expect("a scenario");
    s.set("flow.other", "{ replace = true, transport = \"sctp\" }").expect("a flow");
    s.set("flow.third", "{ transport = \"tcp\" }").expect("a flow");
    assert_eq!(
        flows(&s.points().expect("points")[0]),
        [("main", "sctp", true), ("other", "sctp", true), ("third", "tcp", true)]
    );
}

#[test]
fn a_flow_is_replaced_whole_or_not_at_all() {
    let with =
        |value: &str| mistake(&format!("name = \"n\"\nsets = \"flow.other\"\nvalues = [\"a\"]\nas = [{value}]\n"));
    let of = |what: &str| format!("s.toml:18: sweep `n`: `sets`: `flow.other`: {what}");
    assert_eq!(
        with("{ replace = true, profile = \"cmt\" }"),
        of("`replace` needs all of the flow: give its `transport`")
    );
    assert_eq!(with("{ replace = 1, transport = \"tcp\" }"), of("`replace` is true or false"));
    assert_eq!(with("{ name = \"x\" }"), of("the name of a flow stays: metrics go by it"));
    let new = mistake("name = \"n\"\nsets = \"flow.third\"\nvalues = [\"a\"]\nas = [{ paths = 1 }]\n");
    assert_eq!(
        new,
        "s.toml:18: sweep `n`: `sets`: `flow.third`: there is no flow `third`; to add it, give its `transport`"
    );
    let left = with("{ replace = true, transport = \"sctp\", recovery = \"sack\" }");
    assert!(left.contains("flow `other`"), "{left}");
    let twice = "{ name = \"main\", transport = \"sctp\" }";
    let twice = mistake(&format!("name = \"n\"\nvalues = [\"a\"]\nas = [{{ flow = [{twice}, {twice}] }}]\n"));
    assert!(twice.contains("there are two flows of this name"), "{twice}");
    let list = mistake("name = \"n\"\nsets = \"flow\"\nvalues = [\"a\"]\n");
    assert!(list.contains("`flow` needs a list of flows, such as"), "{list}");
    // A flow that only some points have is measured there.
    let gone =
        mistake("name = \"n\"\nvalues = [\"a\"]\nas = [{ flow = [{ name = \"main\", transport = \"sctp\" }] }]\n");
    assert!(gone.ends_with("`other.goodput` would always be empty: no flow `other` is enabled"), "{gone}");
}
