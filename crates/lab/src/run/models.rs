//! Models with parameters of their own, as objects: `kind` and keys in the words of the scenario's file.

use crate::metrics::Fingerprint;
use anabranch_base::{Duration, Rate};
use anabranch_engine::{Nagle, PathMtuDiscovery};
use anabranch_sim::DamageConfig;
use anabranch_sim::link::{Change, DeliveryTrace, Jitter, LossPoint, Schedule, Setting};
use anabranch_sim::loss::{GilbertElliottParams, LossConfig, LossTrace, Outages};
use anabranch_sim::queue::{CoDelParams, Discipline, Limit, RedParams};
use anabranch_sim::traffic::{
    Bulk, Cbr, Gaps, Mix, MixPart, ParetoOnOff, Redraw, Sizes, Thin, ThinApp, TrafficConfig, Vbr, Video, VideoTrace,
    Web,
};
use anabranch_sim::transport::tcp::{Congestion, Recovery, SackRule};
use serde_json::{Map, Value, json};
use std::fmt::Debug;

/// A time in seconds.
pub(super) fn time(t: Duration) -> Value {
    t.as_secs_f64().into()
}

/// A rate in bits per second.
pub(super) fn rate(r: Rate) -> Value {
    r.bits_per_sec().into()
}

/// Recordings are long: of those a hash, beside how much there is.
pub(super) fn hash(recorded: &impl Debug) -> Value {
    let mut hash = Fingerprint::default();
    format!("{recorded:?}").bytes().for_each(|b| hash.add(u64::from(b)));
    format!("{:016x}", hash.value()).into()
}

/// What a link knows and this does not, as the program sees it.
fn unknown(model: &impl Debug) -> Value {
    json!({ "kind": format!("{model:?}") })
}

pub(super) fn loss(l: &LossConfig) -> Value {
    match l {
        LossConfig::None => json!({ "kind": "none" }),
        LossConfig::Bernoulli { p } => json!({ "kind": "random", "p": p }),
        LossConfig::GilbertElliott(GilbertElliottParams { to_bad, to_good, loss_bad, loss_good }) => {
            json!({ "kind": "gemodel", "p": to_bad, "r": to_good, "1-h": loss_bad, "1-k": loss_good })
        }
        LossConfig::TimedTwoState { mean_good, mean_bad } => {
            json!({ "kind": "timed", "good": time(*mean_good), "bad": time(*mean_bad) })
        }
        LossConfig::Packets(numbers) => json!({ "kind": "packets", "packets": numbers }),
        LossConfig::Pattern(lost) => {
            let signs: String = lost.iter().map(|l| if *l { '1' } else { '0' }).collect();
            json!({ "kind": "pattern", "pattern": signs })
        }
        LossConfig::Trace(LossTrace { lost, repeat }) => {
            json!({ "kind": "recorded", "packets": lost.len(), "hash": hash(lost), "repeat": repeat })
        }
        LossConfig::Series(models) => json!({ "kind": "series", "of": models.iter().map(loss).collect::<Vec<_>>() }),
        LossConfig::Outages(Outages { times, period }) => {
            let times: Vec<[Value; 2]> = times.iter().map(|(from, until)| [time(*from), time(*until)]).collect();
            json!({ "kind": "outages", "outages": times, "period": period.map(time) })
        }
    }
}

pub(super) fn loss_point(p: LossPoint) -> &'static str {
    match p {
        LossPoint::Wire => "wire",
        LossPoint::Entry => "entry",
    }
}

/// The span of a jitter, and how it is distributed.
pub(super) fn jitter(j: Jitter) -> (Value, Option<&'static str>) {
    match j {
        Jitter::None => (time(Duration::ZERO), None),
        Jitter::Uniform(span) => (time(span), Some("uniform")),
        Jitter::Normal(span) => (time(span), Some("normal")),
        Jitter::Exponential(span) => (time(span), Some("exponential")),
    }
}

pub(super) fn damage(d: DamageConfig) -> Value {
    match d {
        DamageConfig::None => Value::Null,
        DamageConfig::OneBit { packets } => json!({ "packets": packets }),
        DamageConfig::Bits { rate } => json!({ "bits": rate }),
        DamageConfig::Blocks { packets, blocks } => json!({ "packets": packets, "blocks": blocks }),
    }
}

pub(super) fn queue(d: &Discipline) -> Value {
    match *d {
        Discipline::DropTail => json!({ "kind": "drop-tail" }),
        Discipline::Step { mark } => json!({ "kind": "drop-tail", "mark": mark }),
        Discipline::CoDel(CoDelParams { target, interval, ecn }) => {
            json!({ "kind": "codel", "target": time(target), "interval": time(interval), "ecn": ecn })
        }
        Discipline::Red(p) => {
            let RedParams {
                thresh,
                maxthresh,
                q_weight,
                linterm,
                gentle,
                bytes,
                queue_in_bytes,
                mean_pktsize,
                wait,
                ecn,
            } = p;
            json!({
                "kind": "red", "thresh": thresh, "maxthresh": maxthresh, "q_weight": q_weight, "linterm": linterm,
                "gentle": gentle, "bytes": bytes, "queue_in_bytes": queue_in_bytes, "mean_pktsize": mean_pktsize,
                "wait": wait, "ecn": ecn,
            })
        }
        ref other => unknown(other),
    }
}

pub(super) fn deliveries(t: &DeliveryTrace) -> Value {
    json!({ "opportunities": t.opportunities(), "period": time(t.period()), "rate": rate(t.mean_rate()), "hash": hash(t) })
}

/// Each change with its time and what it sets.
pub(super) fn changes(s: &Schedule) -> Value {
    s.changes().iter().map(change).collect()
}

fn change(c: &Change) -> Value {
    let Change { at, set } = c;
    let mut all = Map::from_iter([("at".to_owned(), time(*at))]);
    let mut put = |key: &str, value: Value| drop(all.insert(key.to_owned(), value));
    match set {
        Setting::Rate(r) => put("rate", r.map(rate).into()),
        Setting::Delay(t) => put("delay", time(*t)),
        Setting::Jitter(j) => {
            let (span, distribution) = jitter(*j);
            put("jitter", span);
            put("jitter-distribution", distribution.into());
        }
        Setting::Loss(l) => put("loss", loss(l)),
        Setting::Limit(Limit { packets, bytes, waiting_only }) => {
            put("limit-packets", (*packets).into());
            put("limit-bytes", (*bytes).into());
            put("limit-waiting-only", (*waiting_only).into());
        }
        Setting::Duplicate(p) => put("duplicate", (*p).into()),
        Setting::Reorder(p) => put("reorder", (*p).into()),
        Setting::Damage(d) => put("corrupt", damage(*d)),
        Setting::Mtu(m) => put("mtu", (*m).into()),
        Setting::Down => put("down", true.into()),
        Setting::Up => put("up", true.into()),
    }
    Value::Object(all)
}

pub(super) fn traffic(t: &TrafficConfig) -> Value {
    match t {
        TrafficConfig::Bulk(Bulk { size, total }) => json!({ "kind": "bulk", "size": size, "total": total }),
        TrafficConfig::Cbr(Cbr { rate: r, size, burst: 1 }) => json!({ "kind": "cbr", "rate": rate(*r), "size": size }),
        TrafficConfig::Cbr(Cbr { rate: r, size, burst }) => {
            json!({ "kind": "cbr", "rate": rate(*r), "size": size, "burst": burst })
        }
        TrafficConfig::Vbr(Vbr { rate: r, min_size, max_size, interval }) => json!({
            "kind": "vbr", "rate": rate(*r), "min-size": min_size, "max-size": max_size, "interval": time(*interval),
        }),
        TrafficConfig::ParetoOnOff(p) => Value::Object(on_off("pareto-on-off", p)),
        TrafficConfig::Mix(Mix { packets, stream_share, part, source }) => {
            let mut all = on_off("mix", packets);
            all.insert("stream-share".to_owned(), (*stream_share).into());
            // What a mix without these is called by does not change.
            if *part != MixPart::Both {
                let word = if *part == MixPart::Streams { "tcp" } else { "udp" };
                all.insert("part".to_owned(), word.into());
            }
            if let Some(source) = source {
                all.insert("source".to_owned(), source.as_str().into());
            }
            Value::Object(all)
        }
        TrafficConfig::Web(Web { clients, mean_gap, min_size, max_size, shape }) => json!({
            "kind": "web", "clients": clients, "mean-gap": time(*mean_gap), "min-size": min_size,
            "max-size": max_size, "shape": shape,
        }),
        TrafficConfig::Thin(t) => thin(t),
        TrafficConfig::Video(Video { rate: r, fps, group, anchor_every, ratio, sigma }) => json!({
            "kind": "video", "rate": rate(*r), "fps": fps, "group": group, "anchor-every": anchor_every,
            "ratio": ratio, "sigma": sigma,
        }),
        TrafficConfig::VideoTrace(VideoTrace { frames, needs: _, fps, repeat }) => json!({
            "kind": "video-trace", "frames": frames.len(), "hash": hash(frames), "fps": fps, "repeat": repeat,
        }),
        other => unknown(other),
    }
}

fn on_off(kind: &str, p: &ParetoOnOff) -> Map<String, Value> {
    let ParetoOnOff { peak, sizes: s, mean_on, mean_off, shape, redraw } = p;
    let pace = match redraw {
        None => ("peak", rate(*peak)),
        Some(Redraw { from, to, every }) => {
            ("mean", json!({ "from": rate(*from), "to": rate(*to), "every": time(*every) }))
        }
    };
    let of = [
        ("kind", kind.into()),
        pace,
        ("size", sizes(s)),
        ("mean-on", time(*mean_on)),
        ("mean-off", time(*mean_off)),
        ("shape", (*shape).into()),
    ];
    of.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
}

fn sizes(s: &Sizes) -> Value {
    match s {
        Sizes::Fixed(bytes) => (*bytes).into(),
        Sizes::Uniform { min, max } => json!({ "min": min, "max": max }),
        Sizes::Shares(shares) => {
            let whole: f64 = shares.iter().map(|s| s.1).sum();
            shares.iter().map(|(size, weight)| json!({ "size": size, "share": weight / whole })).collect()
        }
        Sizes::LogNormal { mu, sigma, min, max } => json!({ "mu": mu, "sigma": sigma, "min": min, "max": max }),
    }
}

fn thin(t: &Thin) -> Value {
    let Thin { gaps, sizes: s, correlation, start_within } = t;
    let gaps = match gaps {
        // Of the span of a gap in milliseconds.
        Gaps::Quantiles(knots) => {
            let one = |(share, ms): &(f64, f64)| json!({ "share": share, "gap": ms / 1e3 });
            knots.iter().map(one).collect()
        }
        Gaps::Bursts { count, gap, period } => json!({ "count": count, "gap": time(*gap), "period": time(*period) }),
    };
    json!({
        "kind": "thin", "app": app(t), "correlation": correlation, "gaps": gaps, "size": sizes(s),
        "start-within": time(*start_within),
    })
}

/// The program that has these gaps and sizes.
fn app(t: &Thin) -> Option<&'static str> {
    let same = |app: &ThinApp| {
        let of = Thin::app(*app);
        (&of.gaps, &of.sizes) == (&t.gaps, &t.sizes)
    };
    ThinApp::ALL.into_iter().find(same).map(|app| match app {
        ThinApp::AnarchyOnline => "anarchy-online",
        ThinApp::RemoteDesktop => "remote-desktop",
        ThinApp::Ssh => "ssh",
        ThinApp::WorldOfWarcraft => "world-of-warcraft",
        ThinApp::Skype => "skype",
        ThinApp::Casa => "casa",
    })
}

pub(super) fn recovery(r: Recovery) -> &'static str {
    match r {
        Recovery::Tahoe => "tahoe",
        Recovery::Reno => "reno",
        Recovery::NewReno => "newreno",
        Recovery::Sack(SackRule::Rfc6675) => "sack",
        Recovery::Sack(SackRule::Pipe) => "sack-pipe",
        Recovery::Rack => "rack",
    }
}

pub(super) fn congestion(c: Congestion) -> &'static str {
    match c {
        Congestion::Reno => "reno",
        Congestion::Cubic => "cubic",
    }
}

pub(super) fn nagle(n: Nagle) -> &'static str {
    match n {
        Nagle::Off => "off",
        Nagle::All => "all",
        Nagle::NotLastFragment => "not-last-fragment",
    }
}

pub(super) fn discovery(d: &PathMtuDiscovery) -> Value {
    let PathMtuDiscovery { max, max_probes, raise_after } = d;
    json!({ "max": max, "max-probes": max_probes, "raise-after": time(*raise_after) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::resolved;
    use crate::scenario::Scenario;

    fn all(link: &str, flow: &str) -> super::super::Resolved {
        let text = format!(
            "name = \"m\"\nduration = \"5s\"\nmetrics = [\"main.goodput\"]\n[topology]\nkind = \"single-path\"\n{link}\n\
             [[flow]]\nname = \"main\"\n{flow}\n"
        );
        let files = |name: &str| match name {
            "cell.trace" => Ok("10\n20\n".to_owned()),
            "film.txt" => Ok("I 900\nB 80\n".to_owned()),
            other => Err(format!("no {other}")),
        };
        let s = Scenario::parse("m.toml", &text, &files).expect("a scenario");
        resolved(&s.points().expect("points")[0].plan).expect("parameters")
    }

    #[test]
    fn every_traffic_has_the_keys_of_the_file() {
        let of = |traffic: &str| {
            let flow = format!("transport = \"udp\"\ntraffic = {traffic}");
            all("rate = \"1mbit\"", &flow)["flow.main.traffic"].clone()
        };
        assert_eq!(
            of("{ kind = \"cbr\", rate = \"448kbit\", size = 210 }"),
            json!({ "kind": "cbr", "rate": 448_000, "size": 210 })
        );
        assert_eq!(
            of("{ kind = \"vbr\", rate = \"1mbit\", min-size = 100, max-size = 200, interval = \"20ms\" }"),
            json!({ "kind": "vbr", "rate": 1_000_000, "min-size": 100, "max-size": 200, "interval": 0.02 })
        );
        assert_eq!(
            of("{ kind = \"pareto-on-off\", peak = \"1mbit\", size = 500 }"),
            json!({ "kind": "pareto-on-off", "peak": 1_000_000, "size": 500, "mean-on": 0.5, "mean-off": 0.5, "shape": 1.5 })
        );
        let mix = of("{ kind = \"mix\", peak = \"1mbit\" }");
        assert_eq!((&mix["stream-share"], &mix["size"][0]), (&json!(0.9), &json!({ "size": 44, "share": 0.49 })));
        let thin = of("{ kind = \"thin\", app = \"casa\", correlation = 0.5 }");
        assert_eq!((&thin["app"], &thin["gaps"]["gap"]), (&json!("casa"), &json!(0.305)));
        assert_eq!(of("{ kind = \"thin\", app = \"ssh\" }")["app"], "ssh");
        assert_eq!(of("{ kind = \"video\" }")["anchor-every"], 3);
        let film = of("{ kind = \"video-trace\", frames = { file = \"film.txt\" } }");
        assert_eq!((&film["frames"], &film["repeat"]), (&json!(2), &json!(true)));
    }

    #[test]
    fn recordings_are_shown_by_length_and_hash() {
        let of = |last: bool| loss(&LossConfig::Trace(LossTrace { lost: vec![false, last], repeat: true }));
        let (one, other) = (of(true), of(false));
        assert_eq!((&one["packets"], one["hash"].as_str().map(str::len)), (&json!(2), Some(16)));
        assert_ne!(one, other);
    }

    #[test]
    fn every_model_of_a_link_has_words_and_numbers() {
        let of = |link: &str, key: &str| all(link, "transport = \"sctp\"")[&format!("topology.path1.up.{key}")].clone();
        let loss = |text: &str| of(&format!("up.loss = \"{text}\""), "loss");
        assert_eq!(loss("none"), json!({ "kind": "none" }));
        assert_eq!(loss("5%"), json!({ "kind": "random", "p": 0.05 }));
        assert_eq!(
            loss("gemodel p=1% r=20%"),
            json!({ "kind": "gemodel", "p": 0.01, "r": 0.2, "1-h": 1.0, "1-k": 0.0 })
        );
        assert_eq!(loss("timed good=450ms bad=50ms"), json!({ "kind": "timed", "good": 0.45, "bad": 0.05 }));
        assert_eq!(
            loss("1% and pattern 01"),
            json!({ "kind": "series", "of": [{ "kind": "random", "p": 0.01 }, { "kind": "pattern", "pattern": "01" }] })
        );
        assert_eq!(loss("packets 3,17"), json!({ "kind": "packets", "packets": [3, 17] }));
        assert_eq!(loss("pattern 001"), json!({ "kind": "pattern", "pattern": "001" }));
        assert_eq!(
            loss("outages 2s-4s period=10s"),
            json!({ "kind": "outages", "outages": [[2.0, 4.0]], "period": 10.0 })
        );
        let jitter = "delay = \"10ms\"\njitter = \"4ms normal\"";
        assert_eq!((of(jitter, "jitter"), of(jitter, "jitter-distribution")), (json!(0.004), json!("normal")));
        assert_eq!((of(jitter, "order"), of(jitter, "loss-at")), (json!("kept"), json!("wire")));
        assert_eq!(of("rate = \"1mbit\"", "queue"), json!({ "kind": "drop-tail" }));
        assert_eq!(of("queue = \"codel target=5ms\"", "queue")["target"], 0.005);
        assert_eq!(of("queue = \"red thresh=5\"", "queue")["thresh"], 5.0);
        let cell = of("up.deliveries = { file = \"cell.trace\" }", "deliveries");
        assert_eq!((&cell["opportunities"], &cell["period"]), (&json!(2), &json!(0.02)));
        let changes = "rate = \"2mbit\"\nschedule = [\"1s down\", \"2s up rate 1mbit\"]\nevery = \"3s\"";
        assert_eq!(
            of(changes, "schedule"),
            json!([{ "at": 1.0, "down": true }, { "at": 2.0, "up": true }, { "at": 2.0, "rate": 1_000_000 }])
        );
        assert_eq!(of(changes, "every"), 3.0);
    }

    /// Text of the program's own types would have their brackets and capitals.
    #[test]
    fn no_word_is_the_name_of_a_type() {
        for name in ["home-router", "cell-and-wlan", "kinds-of-loss", "cross-traffic", "tcp-beside-sctp", "video"] {
            let e = crate::experiment::Experiment::shipped(&format!("examples/{name}")).expect("there").expect("read");
            for point in e.scenarios.iter().flat_map(|s| s.points().expect("points")) {
                for (key, value) in resolved(&point.plan).expect("parameters") {
                    let mut rest = vec![&value];
                    while let Some(v) = rest.pop() {
                        let typed = |t: &str| t.contains(" { ") || t.ends_with('}') || t.starts_with("Some(");
                        assert!(!v.as_str().is_some_and(typed), "{key}: {v}");
                        rest.extend(v.as_array().into_iter().flatten());
                        rest.extend(v.as_object().into_iter().flat_map(Map::values));
                    }
                }
            }
        }
    }
}
