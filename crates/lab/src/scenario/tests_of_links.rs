//! Links of a scenario: losses in series.

use super::*;
use anabranch_sim::{LinkConfig, LossConfig};

/// A scenario with these keys of `[topology]` and these lines at its end.
fn text(topology: &str, rest: &str) -> String {
    format!(
        "name = \"l\"\nduration = \"5s\"\nmetrics = [\"main.goodput\"]\n[topology]\n{topology}\n\
         [[flow]]\nname = \"main\"\ntransport = \"sctp\"\n{rest}"
    )
}

fn read(topology: &str, rest: &str) -> Result<Scenario, ScenarioError> {
    let files = |name: &str| match name {
        "losses.txt" => Ok("0010\n".to_owned()),
        other => Err(format!("cannot read `{other}`")),
    };
    Scenario::parse("l.toml", &text(topology, rest), &files)
}

fn plan(topology: &str, rest: &str) -> Plan {
    read(topology, rest).and_then(|s| s.points()).expect("a scenario").remove(0).plan
}

/// The links of `path1`, up and down.
fn path1(link: &str) -> [LinkConfig; 2] {
    let cable = plan(&format!("kind = \"single-path\"\n{link}"), "").topology.cables.remove(0);
    [cable.forward, cable.backward]
}

fn mistake(topology: &str, rest: &str) -> String {
    read(topology, rest).expect_err("a mistake").to_string()
}

#[test]
fn losses_may_come_in_series() {
    let losses = |link: &str| path1(link).map(|l| l.loss);
    let (random, bursts) = (LossConfig::bernoulli(0.01), LossConfig::bursts(0.02, 5.0));
    let both = LossConfig::Series(vec![random.clone(), bursts.clone()]);
    assert_eq!(losses("loss = [\"1%\", \"2% burst 5\"]"), [both.clone(), both.clone()]);
    assert_eq!(losses("loss = \"1% and 2% burst 5\""), [both.clone(), both.clone()]);
    assert_eq!(losses("loss = [\"1%\"]"), [random.clone(), random.clone()]);
    // A direction's own holds in place of what is said of both.
    assert_eq!(losses("loss = \"1%\"\nup.loss = [\"1%\", \"2% burst 5\"]"), [both.clone(), random.clone()]);
    assert_eq!(losses("loss = [\"1%\", { file = \"losses.txt\" }]\ndown.loss = \"1%\"")[1], random);
    let [up, down] = losses("loss = \"2%\"\nup.loss = [{ file = \"losses.txt\" }, \"1%\"]");
    // What is recorded draws nothing, and comes last.
    let LossConfig::Series(of) = &up else { panic!("{up:?}") };
    assert!(of[0] == random && matches!(&of[1], LossConfig::Trace(t) if t.lost.len() == 4) && of.len() == 2, "{up:?}");
    assert_eq!(down, LossConfig::bernoulli(0.02));
    let [up, down] = losses("loss = { file = \"losses.txt\" }\nup.loss = \"none\"");
    assert!(up.is_none() && matches!(down, LossConfig::Trace(_)), "{up:?} {down:?}");
    // Changes have the words of the text.
    let [up, _] = path1("up.loss = \"1%\"\nschedule = [\"2s up.loss 1% and 2% burst 5\"]");
    assert_eq!(up.schedule.changes()[0].set, anabranch_sim::Setting::Loss(both));
    // A sweep may set the list.
    let sweep = "[[sweep]]\nname = \"s\"\nsets = \"topology.up.loss\"\nvalues = [\"a\", \"b\"]\nas = [\"1%\", [\"1%\", \"2%\"]]";
    let points = read("kind = \"single-path\"", sweep).and_then(|s| s.points()).expect("a scenario");
    let models: Vec<usize> = points.iter().map(|p| p.plan.topology.cables[0].forward.loss.models().len()).collect();
    assert_eq!(models, [1, 2]);
}

#[test]
fn a_mistake_among_losses_has_its_own_line() {
    let error = |list: &str| mistake(&format!("kind = \"single-path\"\nloss = [\n\"1%\",\n{list}\n]"), "");
    let of = |line: usize, what: &str| format!("l.toml:{line}: [topology]: `loss`: {what}");
    assert_eq!(error("\"2% brust 5\","), of(8, "unknown word `brust`; did you mean `burst`?"));
    assert!(error("\"2\",").starts_with(&of(8, "`2`: `loss` needs a share")), "{}", error("\"2\","));
    assert_eq!(error("2,"), of(8, "needs texts such as \"1%\", or { file = \"losses.txt\" }"));
    assert_eq!(
        error("{ file = \"losses.txt\", repaet = true },"),
        "l.toml:8: [topology]: unknown key `repaet`; did you mean `repeat`?"
    );
    let empty = mistake("kind = \"single-path\"\nup.loss = []", "");
    assert_eq!(empty, "l.toml:6: [topology]: `up.loss`: needs one loss or more in its list, or \"none\"");
    let list = mistake("kind = \"single-path\"\ndelay = [\"1ms\"]", "");
    assert_eq!(list, "l.toml:6: [topology]: `delay`: needs a text or a whole number");
}

/// The names and the delay up of all cables, in milliseconds.
fn delays(topology: &str, rest: &str) -> Vec<(String, u64)> {
    let cables = plan(topology, rest).topology.cables;
    cables.into_iter().map(|c| (c.name, c.forward.delay.as_nanos() / 1_000_000)).collect()
}

#[test]
fn every_kind_with_paths_takes_any_number_of_them() {
    for n in [1_usize, 3, 5, 8] {
        let paths: String =
            (1..=n).map(|i| format!("path{i} = {{ rate = \"{i}mbit\", delay = \"{i}ms\" }}\n")).collect();
        for (kind, cables) in [("disjoint-paths", n), ("dual-dumbbell", 7 * n)] {
            let edge = if kind == "dual-dumbbell" { "edge-hosts = 2\n" } else { "" };
            let p = plan(&format!("kind = \"{kind}\"\n{edge}{paths}"), &format!("paths = {n}\n"));
            assert_eq!(p.topology.cables.len(), cables, "{kind} {n}");
            let last = p.topology.cables.iter().find(|c| c.name == format!("path{n}")).expect("the last path");
            assert_eq!(last.forward.delay.as_nanos(), n as u64 * 1_000_000);
            // One path more than there are.
            let more = mistake(&format!("kind = \"{kind}\"\n{edge}{paths}"), &format!("paths = {}\n", n + 1));
            let want = format!("`paths`: must lie between 1 and {n}, the paths between its hosts");
            assert!(more.ends_with(&want), "{more}");
            // Data arrives over all of them.
            let s = read(&format!("kind = \"{kind}\"\n{edge}{paths}"), "").expect("a scenario");
            let row = crate::run::run_one(&s.points().expect("points")[0], 1).expect("a run");
            let sum = (1..=n).sum::<usize>() as f64 * 1e6;
            assert!(row.values[0].is_some_and(|v| v > 0.5 * sum && v < sum), "{kind} {n}: {:?}", row.values);
        }
    }
    let one = mistake("kind = \"single-path\"\npath2 = { rate = \"1mbit\" }", "");
    assert_eq!(
        one,
        "l.toml:6: [topology]: `path2`: this kind has one path, whose keys are those of [topology]; use kind \
         `disjoint-paths`"
    );
    let gap = mistake("kind = \"dual-dumbbell\"\npath1 = {}\npath3 = {}", "");
    assert_eq!(gap, "l.toml:7: [topology]: `path3`: there is no `path2` before it");
    let access = mistake("kind = \"dual-dumbbell\"\npath1 = {}\npath2-access = { delay = \"1ms\" }", "");
    assert!(access.ends_with("`path2-access`: there is no `path2`"), "{access}");
}

#[test]
fn single_cables_have_keys_of_their_own() {
    let dumbbell = "kind = \"dual-dumbbell\"\nedge-hosts = 2\naccess = { delay = \"3ms\" }\nedge = { delay = \"4ms\" }\n\
                    path1 = { delay = \"10ms\" }\npath2 = { delay = \"20ms\" }\npath1-access = { rate = \"5mbit\" }\n";
    let own =
        "[topology.cable]\n\"path1.left\".delay = \"31ms\"\n\"left*\".delay = \"41ms\"\n\"left2.1\".delay = \"42ms\"\n";
    let all = delays(&format!("{dumbbell}{own}"), "");
    let of = |all: &[(String, u64)], name: &str| all.iter().find(|c| c.0 == name).expect(name).1;
    let names = ["path1.left", "path1", "path2.left", "left1.1", "left2.1", "left2.2", "right2.1"];
    assert_eq!(names.map(|name| of(&all, name)), [31, 10, 3, 41, 42, 41, 4]);
    // What the cable has beside it stays.
    let p = plan(&format!("{dumbbell}{own}"), "");
    assert!(p.topology.cables[0].name == "path1.left" && p.topology.cables[0].forward.rate.is_some());
    // By --set and by sweeps, with a star over what was said before.
    let set = |topology: &str, rest: &str, sets: &[(&str, &str)]| {
        let mut s = read(topology, rest).expect("a scenario");
        sets.iter().for_each(|(key, value)| s.set(key, value).unwrap_or_else(|e| panic!("{e}")));
        let cables = s.points().expect("points").remove(0).plan.topology.cables;
        let delay = |c: anabranch_sim::topology::Cable| (c.name, c.forward.delay.as_nanos() / 1_000_000);
        cables.into_iter().map(delay).collect::<Vec<_>>()
    };
    let sets = [("topology.cable.path2.left.up.delay", "7ms"), ("topology.cable.left2*.delay", "8ms")];
    let all = set(&format!("{dumbbell}{own}"), "", &sets);
    assert_eq!(names.map(|name| of(&all, name)), [31, 10, 7, 41, 8, 8, 4]);
    let whole = set(dumbbell, "", &[("topology.cable.right2.1", "{ delay = \"9ms\", loss = \"1%\" }")]);
    assert_eq!(of(&whole, "right2.1"), 9);
    let bottleneck = "kind = \"shared-bottleneck\"\nbottleneck = { rate = \"1mbit\", delay = \"9ms\" }\n\
                      access2 = { delay = \"2ms\" }";
    let ends = "from = \"sender1\"\nto = \"receiver1\"\n";
    let shared =
        set(bottleneck, ends, &[("topology.cable.sender2.delay", "6ms"), ("topology.cable.bottleneck.delay", "8ms")]);
    let want = [("bottleneck", 8), ("sender1", 5), ("receiver1", 5), ("sender2", 6), ("receiver2", 2)];
    assert_eq!(shared, want.map(|(name, ms)| (name.to_owned(), ms)));
    // Several paths of a pair over the one bottleneck.
    let several = format!("{bottleneck}\npairs = 2\npaths = 3");
    let shared =
        set(&several, ends, &[("topology.cable.sender1.2.delay", "6ms"), ("topology.cable.sender1.3.delay", "7ms")]);
    let names = ["bottleneck", "sender1.1", "receiver1.1", "sender1.2", "receiver1.2", "sender1.3", "sender2.1"];
    assert_eq!((shared.len(), names.map(|name| of(&shared, name))), (13, [9, 5, 5, 6, 5, 7, 2]));
    assert!(mistake(&format!("{bottleneck}\npaths = 65"), ends).contains("`paths`: 65 are more than 64"));
    let free = "kind = \"free\"\nhosts = [\"sender\", \"receiver\"]\ncable = [{ from = \"sender\", to = \"receiver\", \
                rate = \"1mbit\" }, { from = \"sender\", to = \"receiver\", name = \"b.2\", delay = \"3ms\" }]";
    let sets = [("topology.cable.sender-receiver.delay", "6ms"), ("topology.cable.b.2.up.delay", "4ms")];
    assert_eq!(set(free, "", &sets), [("sender-receiver".to_owned(), 6), ("b.2".to_owned(), 4)]);
    assert_eq!(set(free, "", &[("topology.cable.*.delay", "5ms")]).iter().map(|c| c.1).collect::<Vec<_>>(), [5, 5]);
    let sweep = "[[sweep]]\nname = \"d\"\nsets = [\"topology.cable.path1.left.delay\", \"topology.cable.right*.delay\"]\n\
                 values = [\"1ms\", \"2ms\"]\n";
    let points = read(dumbbell, sweep).and_then(|s| s.points()).expect("points");
    let left: Vec<u64> =
        points.iter().map(|p| p.plan.topology.cables[0].forward.delay.as_nanos() / 1_000_000).collect();
    assert_eq!(left, [1, 2]);
}

#[test]
fn a_cable_that_is_not_there_is_a_mistake() {
    let dumbbell = "kind = \"dual-dumbbell\"\nedge-hosts = 1\npath1 = {}\npath2 = {}\n";
    let with = |cable: &str| mistake(&format!("{dumbbell}[topology.cable]\n{cable}"), "");
    assert_eq!(
        with("\"path1.lfet\".delay = \"1ms\""),
        "l.toml:10: [topology.cable]: there is no cable `path1.lfet`; did you mean `path1.left`?"
    );
    assert_eq!(
        with("\"left1.1\".dealy = \"1ms\""),
        "l.toml:10: cable `left1.1`: unknown key `dealy`; did you mean `delay`?"
    );
    let value = with("\"left1.1\" = 3");
    assert_eq!(value, "l.toml:10: [topology.cable]: `left1.1`: needs keys of a link, such as { delay = \"10ms\" }");
    let small = with("\"path1.left\".limit = \"100B\"");
    assert!(small.starts_with("l.toml:10: cable `path1.left`: `limit`: 100 bytes at cable `path1.left`"), "{small}");
    let list = mistake(&format!("{dumbbell}cable = []\n"), "");
    assert!(list.starts_with("l.toml:9: [topology]: `cable`: needs a table by the names of cables"), "{list}");
    let mut free = read(
        "kind = \"free\"\nhosts = [\"sender\", \"receiver\"]\ncable = [{ from = \"sender\", to = \"receiver\" }]",
        "",
    )
    .expect("a scenario");
    let none = free.set("topology.cable.x.delay", "1ms").expect_err("a mistake").to_string();
    assert_eq!(none, "--set: `topology.cable.x.delay`: there is no cable `x`");
    let twice = "[[sweep]]\nname = \"a\"\nsets = \"topology.cable.path1.left.delay\"\nvalues = [\"1ms\"]\n\
                 [[sweep]]\nname = \"b\"\nsets = \"topology.cable.path1*.delay\"\nvalues = [\"1ms\"]\n";
    let twice = mistake(dumbbell, twice);
    assert!(twice.ends_with("`topology.cable.path1*.delay` overrules what the sweep `a` sets"), "{twice}");
}

#[test]
fn a_link_layer_has_words_of_its_own() {
    use anabranch_base::{Duration, Modulation, Technology};
    use anabranch_sim::FrameReports;
    let [up, down] = path1("loss = \"5%\"\narq = 3\ntechnology = \"wcdma\"\nframe = \"300B\"\nreport = \"100ms\"");
    let every = Some(Duration::from_millis(100));
    let umts = FrameReports { technology: Technology::Wcdma, modulation: Modulation::Unknown, frame: 300, every };
    assert_eq!((up.repeats, up.frames, down.repeats, down.frames), (3, umts, 3, umts));
    assert_eq!(up.frames.modulated(), Modulation::Qpsk);
    let [up, down] = path1("up.arq = 7\nmodulation = \"qam64\"\ntechnology = \"wimax\"\nreport = \"none\"");
    assert_eq!((up.repeats, down.repeats, up.frames.modulated()), (7, 0, Modulation::Qam64));
    assert_eq!((down.frames.frame, down.frames.every), (1_500, None));
    let of = |link: &str| mistake(&format!("kind = \"single-path\"\n{link}"), "");
    for (link, why) in [
        ("technology = \"wifi\"", "`technology` needs wcdma, wimax or wlan, not `wifi`"),
        ("modulation = \"qam\"", "`modulation` needs dbpsk, dqpsk, bpsk, qpsk, qam16, qam64 or qam256, not `qam`"),
        ("frame = \"0B\"", "`frame` needs 1 to 4294967295 bytes, not `0B`"),
        ("frame = \"5GB\"", "`frame` needs 1 to 4294967295 bytes, not `5GB`"),
        ("technology = \"wlan\"", "`technology`: is only said in reports: add report = \"100ms\", or leave it out"),
        ("frame = \"9KB\"\narq = 2", "`frame`: is only said in reports"),
        ("delay = \"1ms\"\nmodulation = \"qpsk\"", "`modulation`: is only said in reports"),
        ("report = \"1us\"", "`report` needs 1ms or more, not `1us`"),
        ("arq = -1", "`arq` needs a number of repetitions from 0 to 255, not `-1`"),
        ("up.report = \"1s\"", "`up.report`: holds for both directions: write it beside `up` and `down`"),
        (
            "loss-at = \"entry\"\narq = 1",
            "what is lost at the entrance is not sent again: leave out arq or loss-at entry",
        ),
        ("schedule = [\"1s report 1s\"]", "cannot change while a path runs"),
    ] {
        assert!(of(link).contains(why), "{link}: {}", of(link));
    }
    // Between routers it reaches no host.
    let dumbbell = |path: &str| {
        format!("kind = \"dual-dumbbell\"\npath1 = {{ rate = \"1mbit\"{path} }}\npath2 = {{ rate = \"1mbit\" }}")
    };
    let error = mistake(&dumbbell(", report = \"1s\""), "");
    assert!(error.contains("cable `path1`: `report`: is for the cable of a host"), "{error}");
    let at_the_host = "path1-access = { rate = \"1mbit\", report = \"1s\" }";
    assert!(read(&format!("{}\n{at_the_host}", dumbbell("")), "").is_ok());
}

/// The bound plays losses packet by packet, and with repetitions it would be none.
#[test]
fn the_bound_of_frames_knows_no_repetitions() {
    let film = |link: &str| {
        let film = "traffic = \"video\"\nplayout = \"300ms\"";
        let text = text(&format!("kind = \"single-path\"\nrate = \"4mbit\"\n{link}"), film);
        let text = text.replace("main.goodput", "main.possible-frames");
        Scenario::parse("l.toml", &text, &|_| Err(String::new())).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(film("loss = \"5%\""), Ok(()));
    assert_eq!(film("arq = 3"), Ok(()), "nothing is lost");
    let error = film("loss = \"5%\"\narq = 3").expect_err("a mistake");
    assert!(error.contains("it knows no repetitions, and cable `path1` has `arq`"), "{error}");
}
