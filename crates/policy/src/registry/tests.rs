//! Nothing is unregistered, undocumented, unread, or refused without a reason.

use super::*;
use crate::asks::Asks;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn sources() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))
}

#[test]
fn every_file_of_a_hook_is_registered_under_its_name() {
    for hook in Hook::ALL {
        let dir = fs::read_dir(sources().join(hook.name())).unwrap();
        let files: BTreeSet<String> = dir
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|f| f != "mod.rs" && !f.ends_with("_tests.rs"))
            .map(|f| f.trim_end_matches(".rs").to_owned())
            .collect();
        let names: BTreeSet<String> = hook.policies().iter().map(|p| p.name.to_owned()).collect();
        assert_eq!(files, names, "{hook}: files and registered names differ");
        assert_eq!(names.len(), hook.policies().len(), "{hook}: a name twice");
    }
}

#[test]
fn every_policy_says_where_it_is_and_where_it_comes_from() {
    for p in policies() {
        let file = p.file.replace('\\', "/");
        assert!(file.ends_with(&format!("src/{}/{}.rs", p.hook.name(), p.name)), "{file}");
        assert!(!p.source.is_empty() && p.summary.ends_with('.'), "{}", p.name);
        let text = fs::read_to_string(sources().join(p.hook.name()).join(format!("{}.rs", p.name))).unwrap();
        assert!(text.starts_with("//!"), "{}: no header", p.name);
        assert!(text.contains("#[cfg(test)]"), "{}: no tests", p.name);
    }
}

/// Every registered policy with its hook and its row, built with its defaults.
fn trials() -> impl Iterator<Item = (&'static PolicyInfo, Params<'static>, Asks)> {
    Hook::ALL.into_iter().flat_map(|hook| hook.policies().into_iter().enumerate()).map(|(at, info)| {
        let params = Params::defaults(info, 1);
        let (asks, _) = info.hook.trial(at, &params).expect("a row");
        (info, params, asks)
    })
}

#[test]
fn every_declared_parameter_is_read_and_nothing_else() {
    let mut hooks = BTreeSet::new();
    for (info, params, _) in trials() {
        hooks.insert(info.hook);
        let declared: BTreeSet<_> = info.params.iter().map(|q| q.name).collect();
        let asked: BTreeSet<_> = params.asked().into_iter().collect();
        assert_eq!(declared, asked, "{}: declared and read parameters differ", info.name);
    }
    assert!(hooks.into_iter().eq(Hook::ALL), "a hook without policies");
}

/// The engine leaves out the questions that a policy has no use for, and asks all others: what a policy answers itself
/// it must want to be asked, and nothing else. (What `redundancy=erasure` asks depends on its parameters, see there.)
#[test]
fn policies_want_to_be_asked_what_they_answer() {
    let table: [(Hook, Asks, &[&str]); 13] = [
        (Hook::PathScheduler, Asks::LOOK_AHEAD, &["look_ahead"]),
        (Hook::PathScheduler, Asks::OUTCOMES, &["settle", "observe"]),
        (Hook::PathScheduler, Asks::BOUND, &["direction", "bound_bytes"]),
        (Hook::Coupling, Asks::ADJUST, &["adjust"]),
        (Hook::Coupling, Asks::PUBLISH, &["publish", "aggregate_window"]),
        (Hook::LossTimer, Asks::PROBE, &["deadline", "expired", "was_needless"]),
        (Hook::PathState, Asks::SUSPECT, &["suspect_at"]),
        (Hook::PathQuality, Asks::QUALITY, &["observe", "tick", "wakeup", "send_rate"]),
        (Hook::StreamScheduler, Asks::PACKETS, &["packet", "goes_on"]),
        (Hook::Recovery, Asks::REPAIRED, &["bursts"]),
        (Hook::Redundancy, Asks::WHOLE_PACKETS, &["packet"]),
        (Hook::LossCause, Asks::SAMPLES, &["sample"]),
        (Hook::Repair, Asks::DAMAGED, &["damaged", "corrected"]),
    ];
    for (info, _, asks) in trials() {
        let text = fs::read_to_string(sources().join(info.hook.name()).join(format!("{}.rs", info.name))).unwrap();
        let answers = |name: &&str| text.contains(&format!("    fn {name}("));
        for (_, question, methods) in table.iter().filter(|row| row.0 == info.hook) {
            assert_eq!(asks.any(*question), methods.iter().any(answers), "{}: {methods:?}", info.name);
        }
    }
}

/// What a policy reads of an estimator of path quality it wants to be asked, so that it is refused without one. Left are
/// policies that read it for some parameters alone, or go without it as their headers say.
#[test]
fn who_reads_estimates_needs_an_estimator() {
    let board = fs::read_to_string(sources().join("view/signals.rs")).unwrap();
    let estimates: Vec<&str> = board
        .split("/// Writer: ")
        .filter_map(|f| f.strip_prefix("path_quality")?.split_once("pub ")?.1.split_once(':'))
        .map(|(name, _)| name)
        // That one the engine carries out.
        .filter(|name| *name != "sidelined")
        .collect();
    assert!(estimates.len() >= 4, "{estimates:?}");
    let mut go_without = Vec::new();
    for (info, _, asks) in trials().filter(|(info, ..)| info.hook != Hook::PathQuality) {
        let text = fs::read_to_string(sources().join(info.hook.name()).join(format!("{}.rs", info.name))).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let reads = estimates.iter().any(|e| code.contains(&format!("signals.{e}")));
        assert!(!asks.any(Asks::ESTIMATES) || reads, "{}", info.name);
        if reads && !asks.any(Asks::ESTIMATES) {
            go_without.push((info.name, text.contains("without an estimator") || text.contains("needs an estimator")));
        }
    }
    assert_eq!(go_without, [("delay_guard", true), ("friendliness_window", true)]);
}

/// What a policy with no costly question says is never heard, so it must be what silence means.
#[test]
fn what_is_never_asked_is_what_would_have_been_answered() {
    for p in crate::redundancy::POLICIES {
        let mut built = (p.build)(&Params::defaults(&p.info, 1));
        assert_eq!(built.asks().any(Asks::EXTRA), p.info.name != "none");
        let mut s = crate::testing::Scene::new(2, 3);
        s.paths.iter_mut().for_each(|path| (path.cwnd, path.in_flight) = (40_000, 5_000));
        if !built.asks().any(Asks::EXTRA) {
            assert_eq!(built.extra(&s.cx(), &s.paths[0], &mut s.chunks.iter().copied()), None);
        }
    }
    for p in crate::buffer::POLICIES {
        let built = (p.build)(&Params::defaults(&p.info, 1));
        let asks = built.asks().any(Asks::SHARE);
        let full = crate::buffer::share(60_000, 60_000, 0);
        assert_eq!(built.allows(&full), !asks, "{}", p.info.name);
    }
}

/// The policies of the papers wait for a full path; who asks for the next one says so.
#[test]
fn a_full_path_is_waited_for_unless_a_policy_says_otherwise() {
    for (policy, next) in crate::retransmission::POLICIES.iter().map(|p| (p, p.info.name == "predicted_arrival")) {
        let built = crate::testing::built(policy, "", 1);
        assert_eq!(built.if_full_next(), next, "{}", policy.info.name);
    }
}

#[test]
fn defaults_fit_their_own_limits() {
    for (p, q) in policies().flat_map(|p| p.params.iter().map(move |q| (p, q))) {
        let mut profile = Profile::named("sctp").unwrap();
        let spec = format!("{}:{}={}", p.name, q.name, q.default);
        profile.set(p.hook, &spec).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(profile.spec(p.hook), p.name, "a default is not written out");
        assert!(!q.meaning.is_empty() && !q.meaning.contains('|'), "{}", q.name);
        assert!(q.below.is_none_or(|other| p.params.iter().any(|o| o.name == other)), "{}: {}", p.name, q.name);
    }
}

#[test]
fn the_page_of_algorithms_is_current() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ALGORITHMS.md");
    let now = algorithms_markdown();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&page, &now).unwrap();
    }
    let written = fs::read_to_string(&page).unwrap_or_default().replace("\r\n", "\n");
    assert!(written == now, "docs/ALGORITHMS.md is stale: UPDATE=1 cargo test -p anabranch-policy");
    assert!(policies().all(|p| now.contains(&format!("### `{}`", p.name))));
}

#[test]
fn every_profile_is_sound_on_one_and_on_several_paths() {
    for name in Profile::names() {
        let p = Profile::named(name).unwrap();
        for paths in [1, 2, 5] {
            p.check(paths).unwrap_or_else(|e| panic!("{name} on {paths} paths: {e}"));
        }
        assert_eq!(p.name(), name);
    }
}

#[test]
fn specs_go_in_and_come_out() {
    let mut p = Profile::named("sctp").unwrap();
    p.set(Hook::Timer, "thin:rto_min=150,linear=0,reset=keep-deadline").unwrap();
    assert_eq!(p.get(Hook::Timer), "thin");
    assert_eq!(p.value(Hook::Timer, "rto_min"), Some(Value::Number(150.0)));
    assert_eq!(p.spec(Hook::Timer), "thin:rto_min=150,reset=keep_deadline,linear=0");
    let mut q = Profile::named("sctp").unwrap();
    q.set(Hook::Timer, &p.spec(Hook::Timer)).unwrap();
    assert_eq!(p, q);
    p.set(Hook::PathScheduler, "weighted-round-robin").unwrap();
    assert_eq!(p.get(Hook::PathScheduler), "weighted_round_robin");
    assert_eq!("path-scheduler".parse::<Hook>(), Ok(Hook::PathScheduler));
}

#[test]
fn a_parameter_is_added_to_a_choice() {
    let mut p = Profile::named("sctp").unwrap();
    p.add(Hook::Timer, "rto_max", 9_000).unwrap();
    p.add(Hook::Timer, "rto_min", 150).unwrap();
    assert_eq!(p.spec(Hook::Timer), "rfc9260:rto_min=150,rto_max=9000");
    let before = p.clone();
    for (param, value) in [("rto_min", 200), ("rto_mid", 200), ("rto_initial", 0)] {
        assert!(p.add(Hook::Timer, param, value).is_err(), "{param}");
    }
    assert_eq!(p, before, "what was chosen stays");
}

#[test]
fn profiles_say_what_they_are() {
    let named = |is: fn(&Profile) -> bool| {
        Profile::names().into_iter().filter(|n| is(&Profile::named(n).unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(named(Profile::is_ours), ["cmt", "cmt-fair", "thin", "media", "low-latency", "live", "live-parity"]);
    assert_eq!(named(Profile::finds_packet_size), ["live", "live-parity"]);
    assert_eq!(named(Profile::announces_film), ["media"]);
    let of = |name| Profile::named(name).unwrap().settings().collect::<Vec<_>>();
    assert_eq!(of("linux"), [("rto_initial", 3_000), ("handshake_untimed", 1)]);
    let (plain, cmt) = (of("ns2-era"), of("ns2-era-cmt"));
    assert_eq!(cmt[..plain.len()], plain[..]);
    assert_eq!(cmt[plain.len()..], [("first_data_waits", 1)]);
    assert!(of("live").is_empty());
}

#[test]
fn mistakes_name_the_near_alternative() {
    let mut p = Profile::named("sctp").unwrap();
    let mut wrong = |hook, spec: &str| p.set(hook, spec).unwrap_err().to_string();
    let cases = [
        (
            wrong(Hook::PathScheduler, "roundrobin"),
            "path_scheduler has no policy called 'roundrobin'; did you mean 'round_robin'?",
        ),
        (wrong(Hook::Timer, "thin:rtomin=3"), "thin has no parameter 'rtomin'; did you mean 'rto_min'?"),
        (wrong(Hook::Timer, "thin:rto_min=3"), "thin: rto_min=3 does not fit: a number from 10 to 60000 (ms)"),
        (wrong(Hook::Timer, "thin:rto_min=x"), "thin: rto_min=x does not fit"),
        (wrong(Hook::Timer, "thin:expiries=2.5"), "a whole number from 1 to 64"),
        (wrong(Hook::Timer, "thin:reset=later"), "one of since_sent, keep_deadline, standard"),
        (wrong(Hook::Timer, "thin:rto_min"), "write name=value"),
        (wrong(Hook::PathQuality, "none:x=1"), "there is none"),
        (
            wrong(Hook::Coupling, "shared_bottleneck:from=0.2,until=0.4"),
            "shared_bottleneck: until=0.4 must not be above from=0.2",
        ),
        (wrong(Hook::Timer, "rfc9260:rto_min=5000,rto_max=1000"), "rto_min=5000 must not be above rto_max=1000"),
        (wrong(Hook::Timer, "rfc9260:rto_max=500"), "rto_min=1000 must not be above rto_max=500"),
        (wrong(Hook::Timer, "rto_restart:rto_max=500"), "rto_min=1000 must not be above rto_max=500"),
        (wrong(Hook::Timer, "thin:rto_min=2000,rto_max=1500"), "rto_min=2000 must not be above rto_max=1500"),
        (wrong(Hook::Timer, "thin:rto_max=500"), "standard_min=1000 must not be above rto_max=500"),
        (wrong(Hook::Coupling, "shared_bottleneck:from=0.2"), "until=0.3 must not be above from=0.2"),
        (wrong(Hook::Coupling, "shared_bottleneck:until=1"), "until=1 must not be above from=0.5"),
        (Profile::named("cnt").unwrap_err().to_string(), "did you mean 'cmt'?"),
        (
            "schedule".parse::<Hook>().unwrap_err().to_string(),
            "no hook is called 'schedule'; there is path_scheduler, ",
        ),
    ];
    for (got, expected) in cases {
        assert!(got.contains(expected), "{got}\n does not contain\n{expected}");
    }
    assert_eq!(p, Profile::named("sctp").unwrap(), "a mistake changes nothing");
    assert!(p.set(Hook::Timer, "thin:rto_min=NaN").is_err());
    assert!(p.set(Hook::Timer, "thin:rto_min=inf").is_err());
}

fn with(base: &str, choices: &[(Hook, &str)]) -> Profile {
    let mut p = Profile::named(base).unwrap();
    for (hook, spec) in choices {
        p.set(*hook, spec).unwrap();
    }
    p
}

#[test]
fn nonsense_is_refused_with_a_reason() {
    let by_tsn = with("cmt", &[(Hook::LossCount, "tsn")]);
    assert!(by_tsn.check(1).is_ok());
    let reason = by_tsn.check(2).unwrap_err().to_string();
    assert!(
        reason.starts_with("loss_count tsn and path_scheduler round_robin_deadline do not go together: "),
        "{reason}"
    );
    assert!(with("confluent", &[(Hook::LossCount, "tsn")]).check(2).is_err());
    assert!(Profile::named("sctp").unwrap().check(4).is_ok(), "one path carries all new data");

    assert!(with("confluent", &[(Hook::AckCredit, "cumulative")]).check(2).is_err());
    let in_turn = [(Hook::PathScheduler, "round_robin"), (Hook::AckCredit, "cumulative")];
    assert!(with("cmt", &in_turn).check(2).is_ok());
    assert!(with("cmt", &in_turn[1..]).check(2).is_err());
    assert!(with("live", &[(Hook::AckCredit, "cumulative")]).check(2).is_err());

    let copies = [(Hook::PathScheduler, "redundant"), (Hook::Redundancy, "preventive_copy")];
    assert!(with("cmt", &copies).check(2).is_err());
    assert!(with("cmt", &copies[..1]).check(2).is_ok());

    let wrapped = |spec: &str| with("cmt", &[(Hook::PathScheduler, spec)]).check(2);
    assert!(wrapped("delay_compensation:inner=round_robin").is_ok());
    // What wraps, what it wraps and its parameters are of one hook: each is named by itself.
    for (spec, first, second, advice) in [
        ("inner=redundant", "", "inner=redundant", "take another inner scheduler"),
        ("estimate=srtt,inner=redundant", "", "inner=redundant", "path_scheduler=redundant"),
        ("inner=min_rtt,strict=1", ":inner=min_rtt", "strict=1", "leave it out"),
        ("strict=1", ":inner=confluent", "strict=1", "leave it out"),
        ("inner=round_robin,weights=equal", ":inner=round_robin", "weights=equal", "leave it out"),
    ] {
        let reason = wrapped(&format!("delay_compensation:{spec}")).unwrap_err().to_string();
        let named = format!("path_scheduler delay_compensation{first} and {second} do not go together: ");
        assert!(reason.starts_with(&named) && reason.contains(advice), "{reason}");
    }

    let choices = [
        (Hook::PathScheduler, "residual_capacity"),
        (Hook::PathScheduler, "handling_time"),
        (Hook::LossCause, "residual_capacity"),
        (Hook::LossCause, "delay_guard:falling=0.2"),
        (Hook::Window, "residual_capacity"),
        (Hook::Retransmission, "rtx_handling_rate"),
    ];
    for choice in choices {
        let reason = with("cmt", &[choice]).check(2).unwrap_err().to_string();
        assert!(reason.contains("path_quality none do not go together: it decides by what"), "{reason}");
        for estimator in ["cross_layer", "handling_rate"] {
            assert!(with("cmt", &[choice, (Hook::PathQuality, estimator)]).check(2).is_ok());
        }
    }
    for alone in [(Hook::LossCause, "delay_guard"), (Hook::Coupling, "friendliness_window:reward=paced")] {
        assert!(with("cmt", &[alone]).check(2).is_ok());
    }
}

/// A coupling beside a window that it cannot change is refused, whichever of both was named; left out is what says so.
#[test]
fn couplings_that_would_do_nothing_are_refused() {
    for window in Hook::Window.policies() {
        // What a window says of itself is what it does.
        let mut built = (with("sctp", &[(Hook::Window, window.name)]).build(1).unwrap().window)();
        let mut s = crate::testing::Scene::new(2, 3);
        s.rtt(0, 40);
        let ack = crate::window::AckOnPath::of(1_000);
        let change = built.on_ack(&s.cx(), anabranch_base::PathId(0), &ack);
        assert_eq!(built.sets_itself(), change.set.is_some(), "{}", window.name);
        let sets_itself = built.sets_itself();
        assert_eq!(sets_itself, ["bbr", "bbr3", "bbr_yielding", "none"].contains(&window.name), "{}", window.name);
        for coupling in Hook::Coupling.policies() {
            let quality = (Hook::PathQuality, "cross_layer");
            let both = [(Hook::Window, window.name), (Hook::Coupling, coupling.name), quality];
            for base in ["sctp", "cmt", "live"] {
                for paths in [1, 2, 5] {
                    let refused = with(base, &both).check(paths).err().map(|e| e.to_string());
                    let expected = sets_itself && coupling.name != "uncoupled";
                    assert_eq!(refused.is_some(), expected, "{base} {both:?} {paths}: {refused:?}");
                    let Some(why) = refused else { continue };
                    let start = format!("coupling {} and window {} do not go together: ", coupling.name, window.name);
                    let reason = if window.name == "none" { "without windows" } else { "this window sets itself" };
                    assert!(why.starts_with(&format!("{start}{reason}")), "{why}");
                    assert!(why.contains("use coupling=uncoupled") && !why.contains('\n'), "{why}");
                }
            }
        }
    }
}

/// No profile becomes invalid by a window that is named alone; one that is named beside a coupling leaves it as it is.
#[test]
fn a_profiles_coupling_yields_to_a_window_that_sets_itself() {
    for (name, window) in
        Profile::names().into_iter().flat_map(|n| Hook::Window.policies().into_iter().map(move |w| (n, w)))
    {
        let own = Profile::named(name).unwrap();
        let mut p = with(name, &[(Hook::Window, window.name), (Hook::PathQuality, "cross_layer")]);
        let sets_itself = (p.build(1).unwrap().window)().sets_itself();
        let (was, couples) = (own.spec(Hook::Coupling), own.get(Hook::Coupling) != "uncoupled");
        let mut both = p.clone();
        assert_eq!(both.yield_to(&[Hook::Window, Hook::Coupling]), [], "{name} {}", window.name);
        let expected =
            (sets_itself && couples).then(|| Yielded { hook: Hook::Coupling, was: was.clone(), to: Hook::Window });
        assert_eq!(p.yield_to(&[Hook::Window]), Vec::from_iter(expected), "{name} {}", window.name);
        assert_eq!(p.spec(Hook::Coupling), if sets_itself { "uncoupled" } else { &was }, "{name} {}", window.name);
        assert_eq!(p.check(2), Ok(()), "{name} {}", window.name);
        // A coupling that is named beside a profile's own window is refused.
        let mut coupled = with(name, &[(Hook::Coupling, "lia")]);
        let own_sets_itself = (own.build(1).unwrap().window)().sets_itself();
        assert_eq!(coupled.yield_to(&[Hook::Coupling]), [], "{name}");
        assert_eq!(coupled.check(2).is_err(), own_sets_itself, "{name}");
    }
}

#[test]
fn equal_seeds_build_equal_policies() {
    let draws = |seed| {
        let mut set = with("cmt", &[(Hook::Retransmission, "rtx_cwnd")]).build(seed).unwrap();
        let s = crate::testing::Scene::new(4, 1);
        let candidates = anabranch_base::PathSet::first(4);
        let mut ask = || {
            let r = crate::retransmission::Retransmit::of(&s.chunks[0], candidates);
            set.retransmission.target(&s.cx(), &r)
        };
        (0..20).map(|_| ask()).collect::<Vec<_>>()
    };
    assert_eq!(draws(5), draws(5));
    assert_ne!(draws(5), draws(6));
}

#[test]
fn a_set_can_move_to_another_thread_and_makes_a_window_per_path() {
    fn needs_send<T: Send>(t: T) -> T {
        t
    }
    let set = needs_send(Profile::named("media").unwrap().build(1).unwrap());
    let _first = (set.window)();
    let _second = (set.window)();
}

#[test]
fn counters_are_listed_policy_by_policy() {
    let of = |name: &str| counters(Hook::Redundancy).find(|(info, _)| info.name == name).expect("registered").1;
    assert!(!of("erasure").is_empty());
    assert!(of("none").is_empty());
    assert_eq!(counters(Hook::Redundancy).count(), Hook::Redundancy.policies().len());
}
