//! Texts and files, right and wrong.

use super::*;
use anabranch_base::Rate;
use anabranch_sim::loss::{GilbertElliottParams, Outages};
use anabranch_sim::{Change, Direction, Jitter, Limit, LossConfig, LossPoint, Schedule, Setting};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
fn mbit(n: u64) -> Option<Rate> {
    Some(Rate::from_bits_per_sec(n * 1_000_000))
}
fn change(at_ms: u64, set: Setting) -> Change {
    Change { at: ms(at_ms), set }
}
fn error(text: &str) -> String {
    parse_link(text).unwrap_err().to_string()
}

#[test]
fn a_link_in_netems_words() {
    let link = parse_link("rate 6mbit delay 30ms jitter 4ms loss 0.1% limit 40 duplicate 1% reorder 5% mtu 1400");
    let want = LinkConfig {
        rate: mbit(6),
        delay: ms(30),
        jitter: Jitter::Uniform(ms(4)),
        loss: LossConfig::bernoulli(0.001),
        limit: Limit::packets(40),
        overhead: 28,
        duplicate: 0.01,
        reorder: 0.05,
        mtu: Some(1400),
        ..LinkConfig::ideal()
    };
    assert_eq!(link, Ok(want));
}

#[test]
fn defaults_and_variants() {
    let link = |text| parse_link(text).unwrap();
    let plain = LinkConfig { limit: Limit::packets(1000), overhead: 28, ..LinkConfig::ideal() };
    assert_eq!(link(""), plain);
    assert_eq!(link("delay 30ms 4ms distribution normal").jitter, Jitter::Normal(ms(4)));
    assert_eq!(link("delay 30ms 4ms limit 3").jitter, Jitter::Uniform(ms(4)));
    assert_eq!(link("jitter 4ms normal").jitter, Jitter::Normal(ms(4)));
    assert_eq!(link("jitter 4ms exponential").jitter, Jitter::Exponential(ms(4)));
    assert_eq!(link("jitter 0ms normal rate=1mbit").rate, mbit(1));
    assert_eq!(link("overhead 0").overhead, 0);
    assert!(link("order free").jitter_reorders);
    assert_eq!(link("loss-at entry").loss_point, LossPoint::Entry);
    assert_eq!(["arq 7", "arq none", "arq=255"].map(|text| link(text).repeats), [7, 0, 255]);
    for (text, why) in [
        ("arq 256", "`arq` needs a number of repetitions from 0 to 255, not `256`"),
        ("at 1s arq 3", "`arq` cannot change while a path runs; give it at the start, before any `at`"),
        ("report 100ms", "unknown word `report`; known are rate, delay"),
    ] {
        assert!(parse_link(text).unwrap_err().to_string().starts_with(why), "{}", parse_link(text).unwrap_err());
    }
    assert_eq!(link("limit_bytes=9000 limit 5").limit, Limit { packets: Some(5), bytes: Some(9000), ..Limit::NONE });
    assert_eq!(link("limit none").limit, Limit::NONE);
    assert_eq!(link("rate 1mbit rate 2mbit").rate, mbit(2));
}

#[test]
fn losses() {
    let loss = |text: &str| parse_link(&format!("loss {text} delay 1ms")).unwrap().loss;
    let ge = |to_bad, to_good, loss_bad, loss_good| {
        LossConfig::GilbertElliott(GilbertElliottParams { to_bad, to_good, loss_bad, loss_good })
    };
    assert_eq!(loss("none"), LossConfig::None);
    assert_eq!(loss("random 2%"), LossConfig::bernoulli(0.02));
    assert_eq!(loss("1% burst 5"), LossConfig::bursts(0.01, 5.0));
    assert_eq!(loss("gemodel p=1% r=20%"), ge(0.01, 0.2, 1.0, 0.0));
    assert_eq!(loss("gemodel 1% 20% 70% 3%"), ge(0.01, 0.2, 0.7, 0.03));
    assert_eq!(loss("gemodel p=1% r=20% 1-h=70% 1-k=3%"), ge(0.01, 0.2, 0.7, 0.03));
    let timed = LossConfig::TimedTwoState { mean_good: ms(450), mean_bad: ms(50) };
    assert_eq!(loss("timed good=450ms bad=50ms"), timed.clone());
    let series = LossConfig::Series(vec![LossConfig::bernoulli(0.01), timed.clone(), LossConfig::bursts(0.02, 3.0)]);
    assert_eq!(loss("1% and timed good=450ms bad=50ms and 2% burst 3"), series);
    assert_eq!(loss("packets 3,17"), LossConfig::Packets(vec![3, 17]));
    assert_eq!(loss("pattern 0110"), LossConfig::Pattern(vec![false, true, true, false]));
    let times = vec![(ms(2_000), ms(4_000)), (ms(7_000), ms(8_000))];
    let outages = |period| LossConfig::Outages(Outages { times: times.clone(), period });
    assert_eq!(loss("outages 2s-4s,7s-8s"), outages(None));
    assert_eq!(loss("outages 2s-4s,7s-8s period=10s"), outages(Some(ms(10_000))));
}

#[test]
fn schedules() {
    let link = parse_link("delay 1ms at 16s delay 280ms rate 2mbit at 7s down at 10s up every 20s").unwrap();
    let want = Schedule::every(
        ms(20_000),
        vec![
            change(7_000, Setting::Down),
            change(10_000, Setting::Up),
            change(16_000, Setting::Delay(ms(280))),
            change(16_000, Setting::Rate(mbit(2))),
        ],
    );
    assert_eq!((link.delay, link.schedule), (ms(1), want));
    // Packets and bytes of a limit change apart.
    let link = parse_link("limit 40 at 1s limit-bytes 100 at 2s limit 3").unwrap();
    let limit = |packets, bytes| Setting::Limit(Limit { packets: Some(packets), bytes, ..Limit::NONE });
    assert_eq!(link.schedule.changes(), [change(1_000, limit(40, Some(100))), change(2_000, limit(3, Some(100)))]);
    let down_at_first = parse_link("down at 1s up").unwrap().schedule;
    assert_eq!(down_at_first.changes(), [change(0, Setting::Down), change(1_000, Setting::Up)]);
}

#[test]
fn a_path_with_directions() {
    let text = "name wlan listen 127.0.0.1:9101 to [::1]:9899 delay 30ms limit 40 down.delay 5ms \
                at 7s up.down at 8s rebind at 9s down.rate 1mbit";
    let path = parse_path(text).unwrap();
    assert_eq!((path.name.as_str(), path.listen.port(), path.to.port(), path.from), ("wlan", 9101, 9899, None));
    assert_eq!((path.up.delay, path.down.delay), (ms(30), ms(5)));
    assert_eq!((path.up.overhead, path.down.overhead), (48, 48));
    assert_eq!((path.up.limit, path.down.limit), (Limit::packets(40), Limit::packets(40)));
    assert_eq!(path.up.schedule.changes(), [change(7_000, Setting::Down)]);
    assert_eq!(path.down.schedule.changes(), [change(9_000, Setting::Rate(mbit(1)))]);
    assert_eq!((path.rebinds, path.rebinds_every), (vec![ms(8_000)], None));
}

#[test]
fn changes_of_a_running_path() {
    let changes = parse_changes("up.delay 280ms down rebind").unwrap();
    let delay = PathChange::Link { direction: Some(Direction::Forward), set: Setting::Delay(ms(280)) };
    assert_eq!(changes, [delay, PathChange::both(Setting::Down), PathChange::Rebind]);
    for bad in ["at 7s down", "every 7s", "listen 127.0.0.1:1", "overhead 3", "name x"] {
        assert!(parse_changes(bad).is_err(), "{bad}");
    }
}

#[test]
fn errors_name_the_word_and_the_way_out() {
    for (text, has) in [
        ("dely 30ms", "did you mean `delay`?"),
        ("delay", "`delay` needs a time"),
        ("delay 30", "not `30`"),
        ("rate 6mbps", "6mbit"),
        ("loss 0.1", "in percent"),
        ("loss 120%", "more than 100%"),
        ("loss 90% burst 2", "lengthen the burst"),
        ("loss 100% burst 2", "leave out `burst`"),
        ("loss 1% burst 0.5", "1 or more"),
        ("loss gemodel p=1%", "needs p= and r="),
        ("loss gemodel p=1% b=5", "loss 1% burst 5"),
        ("loss gemodel p=1% r=2% q=3%", "not `q=3%`"),
        ("loss timed good=1s", "both mean stays"),
        ("loss pattern 0120", "`2` is neither 0 (arrived) nor 1 (lost)"),
        ("loss outages 2s", "such as 2s-4s"),
        ("loss outages 4s-2s", "end after they begin"),
        ("loss outages 2s-4s period=3s", "within their period"),
        ("limit 0", "use `down`"),
        ("mtu 0", "use `down` to cut a path, `mtu none` for no limit"),
        ("delay 10ms distribution pareto", "`delay` needs a jitter in front of `distribution`"),
        ("delay 10ms distribution normal", "such as `delay 30ms 4ms distribution normal`"),
        ("delay 10ms uniform", "`delay` needs a jitter in front of `uniform`"),
        ("delay 10ms paretonormal loss 1%", "`delay` needs a jitter in front of `paretonormal`"),
        ("limit many", "whole number"),
        ("order maybe", "`kept` or `free`"),
        ("delay 3ms 1ms distribution pareto", "`normal` or `uniform`"),
        ("up.delay 3ms", "no directions"),
        ("listen 127.0.0.1:1", "whole path"),
        ("rebind", "whole path"),
        ("at 7s overhead 3", "before any `at`"),
        ("every 5s", "no `at`"),
        ("at 7s down every 5s", "longer than the last `at`"),
        ("at soon down", "`at` needs a time"),
        ("frobnicate", "known are rate, delay"),
    ] {
        let message = error(text);
        assert!(message.contains(has) && !message.contains('\n'), "{text}: {message}");
    }
    let path = |text: &str| parse_path(text).unwrap_err().to_string();
    assert!(path("to 127.0.0.1:9").contains("needs `listen`"));
    for (schedule, has) in [
        ("at 5s", "`at 5s`: nothing happens then"),
        ("at 5s every 9s", "`at 5s`: nothing happens then"),
        ("at 5s at 6s down", "`at 5s`: nothing happens then"),
        ("at 9s down at 5.5s up", "5.5s comes after 9s"),
        ("at", "`at` needs a time"),
    ] {
        let message = path(&format!("listen 127.0.0.1:0 to 127.0.0.1:9 {schedule}"));
        assert!(message.contains(has) && !message.contains('\n'), "{schedule}: {message}");
    }
    assert!(parse_path("name at listen 127.0.0.1:0 to 127.0.0.1:9 at 5s down at 5s delay 1ms").is_ok());
    assert!(path("listen localhost:9 to 127.0.0.1:9").contains("127.0.0.1:9101"));
    assert!(path("listen 127.0.0.1:9 to 127.0.0.1:9 up.name x").contains("leave out the prefix"));
    assert!(path("listen 127.0.0.1:9 to 127.0.0.1:9 rebind").contains("at 5s rebind"));
}

#[test]
fn whole_configurations_are_checked() {
    let texts = |t: &[&str]| EmulatorConfig::from_texts(t.iter().copied()).map_err(|e| e.to_string());
    let (a, b) = ("listen 127.0.0.1:9101 to 127.0.0.1:9", "listen 127.0.0.1:9102 to 127.0.0.1:9");
    let names: Vec<_> = texts(&[a, b]).unwrap().paths.into_iter().map(|p| p.name).collect();
    assert_eq!(names, ["path0", "path1"]);
    assert!(texts(&[]).unwrap_err().contains("at least one"));
    assert!(texts(&[a, a]).unwrap_err().contains("two paths listen on"));
    assert!(texts(&[&format!("{a} name x"), &format!("{b} name x")]).unwrap_err().contains("called `x`"));
    assert!(texts(&["listen 127.0.0.1:0 to 127.0.0.1:0"]).unwrap_err().contains("other than 0"));
    assert!(texts(&[&format!("{a} from ::1")]).unwrap_err().contains("must both be IPv4"));
}

#[test]
fn a_file_means_what_the_text_means() {
    let file = EmulatorConfig::from_toml(
        r#"
        seed = 7
        [[path]]
        name = "wlan"
        listen = "127.0.0.1:9101"
        to = "127.0.0.1:9899"
        from = "127.0.0.2"
        rate = "6mbit"
        delay = "30ms 4ms distribution normal"
        loss = "1% burst 5"
        limit = 40
        limit_bytes = 60000
        down = { delay = "5ms", limit_bytes = "none" }
        schedule = ["7s down", "10s up", "16s up.delay 280ms", "17s rebind"]
        every = "60s"

        [[path]]
        listen = "127.0.0.1:9102"
        to = "127.0.0.1:9899"
        link = "rate 4mbit delay 160ms at 3s down"
        limit = 40
        [path.up]
        mtu = 1300
        loss = ["1%", "pattern 01"]
        "#,
    );
    let text = EmulatorConfig::from_texts([
        "name wlan listen 127.0.0.1:9101 to 127.0.0.1:9899 from 127.0.0.2 rate 6mbit \
         delay 30ms 4ms distribution normal loss 1% burst 5 limit 40 limit-bytes 60000 down.delay 5ms \
         down.limit-bytes none at 7s down at 10s up at 16s up.delay 280ms at 17s rebind every 60s",
        "listen 127.0.0.1:9102 to 127.0.0.1:9899 rate 4mbit delay 160ms limit 40 up.mtu 1300 \
         up.loss 1% and pattern 01 at 3s down",
    ]);
    assert_eq!(file, text.map(|c| c.with_seed(7)));
}

#[test]
fn errors_in_files_are_one_clear_line() {
    let base = "[[path]]\nname = \"w\"\nlisten = \"127.0.0.1:1\"\nto = \"127.0.0.1:2\"\n";
    for (lines, has) in [
        ("dely = \"3ms\"", "path `w`: unknown word `dely`; did you mean `delay`?"),
        ("delay = \"30\"", "path `w`: `delay` needs a time"),
        ("delay = 30", "path `w`: `delay` needs a time"),
        ("queue = \"codel ecn=true\"", "a relay cannot mark packets"),
        ("loss = 0.1", "path `w`: `loss` needs a text"),
        ("down = \"5ms\"", "path `w`: `down` needs a table"),
        ("down = { dely = 3 }", "`down.dely`; did you mean `delay`?"),
        ("schedule = \"7s down\"", "a list of texts"),
        ("schedule = [\"down\"]", "`at` needs a time"),
        ("rebind = true", "`rebind` belongs into `schedule`"),
        ("link = 3", "`link` needs a text"),
        ("delay =", "line 5: "),
    ] {
        let message = EmulatorConfig::from_toml(&format!("{base}{lines}\n")).unwrap_err().to_string();
        assert!(message.contains(has) && !message.contains('\n'), "{lines}: {message}");
    }
    let message = EmulatorConfig::from_toml("sed = 3").unwrap_err().to_string();
    assert!(message.contains("unknown field `sed`") && !message.contains('\n'), "{message}");
    assert!(EmulatorConfig::from_toml("").unwrap_err().to_string().contains("at least one"));
    assert!(EmulatorConfig::from_toml("[[path]]\nlisten = \"127.0.0.1:1\"").unwrap_err().to_string().contains("path0"));
}

proptest::proptest! {
    /// No text makes the reader panic.
    #[test]
    fn any_text_is_answered(words in proptest::collection::vec(
        proptest::sample::select(vec![
            "rate", "6mbit", "delay", "30ms", "loss", "1%", "gemodel", "p=1%", "burst", "5", "up.", "down.", "up.delay",
            "at", "7s", "every", "=", "limit=", "name", "listen", "rebind", "distribution", "normal", "é%", "1e999s",
        ]), 0..12)) {
        let text = words.join(" ");
        let _ = (parse_link(&text), parse_path(&text), parse_changes(&text), EmulatorConfig::from_toml(&text));
    }
}

/// Blocks of the page in this language.
fn blocks(language: &str) -> Vec<String> {
    let page = include_str!("../../EMULATE.md");
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}

#[test]
fn the_page_says_what_is_taken() {
    let mut lines = 0;
    for line in blocks("text").iter().flat_map(|b| b.lines()) {
        let taken = if line.contains("listen") { parse_path(line).map(drop) } else { parse_link(line).map(drop) };
        assert_eq!(taken, Ok(()), "{line}");
        lines += 1;
    }
    assert!(lines >= 9, "{lines}");
    let files = blocks("toml");
    assert_eq!(files.len(), 1);
    for file in files {
        assert_eq!(EmulatorConfig::from_toml(&file).map(drop), Ok(()), "{file}");
    }
    let page = include_str!("../../EMULATE.md");
    for word in all_words() {
        assert!(page.contains(&format!("`{word}`")), "`{word}` is not on the page");
    }
}

#[test]
fn what_netem_has_and_this_has_not_is_refused_by_name() {
    for (text, needle) in [
        ("loss 1% 25%", "`25%`: netem's correlations are not supported"),
        ("delay 30ms 4ms 25%", "correlations are not supported"),
        ("duplicate 1% 50%", "correlations are not supported"),
        ("loss state 1%", "`loss state` is not supported"),
        ("corrupt 0.1% 25%", "netem's correlations are not supported"),
        ("reorder 25% gap 5", "netem's `gap` is not supported"),
        ("delay 30ms 4ms distribution pareto", "`pareto` is not supported"),
    ] {
        let message = error(text);
        assert!(message.contains(needle), "{text}: {message}");
    }
}
