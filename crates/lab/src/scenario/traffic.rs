//! What a flow sends.

use super::units::{AnyRate, BitRate, Share, Size, Time};
use crate::document::{self, Problem, ReadError, Table, Value};
use crate::metrics::Dependence;
use anabranch_base::{Duration, Rate};
use anabranch_sim::netem::nearest;
use anabranch_sim::traffic::{
    Bulk, Cbr, Mix, MixPart, ParetoOnOff, Redraw, Sizes, Thin, ThinApp, TrafficConfig, Vbr, Video, VideoTrace, Web,
};
use core::fmt;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads the flow's `traffic = { kind = … }` or the kind alone.
pub(super) fn read(flow: document::Part<'_>) -> Result<Traffic, Problem> {
    let Some(node) = flow.table.get("traffic") else { return Ok(Traffic::BULK) };
    let (kind, keys) = match &node.value {
        Value::Text(kind) => (kind.clone(), Table::new(&node.at)),
        Value::Table(table) => {
            let mut keys = table.clone();
            match keys.remove("kind").map(|node| node.value) {
                Some(Value::Text(kind)) => (kind, keys),
                Some(_) => return Err(flow.at("traffic.kind", "needs a text such as \"bulk\"")),
                None => return Err(flow.at("traffic", "the key `kind` is missing")),
            }
        }
        _ => return Err(flow.at("traffic", "needs a kind, such as \"bulk\", or { kind = \"web\" }")),
    };
    document::Part::new(flow.name, &keys).read_variant(&kind).map_err(|e| match e {
        ReadError::Kind(known) => {
            let near = nearest(&kind, known.iter().copied()).map(|n| format!("did you mean `{n}`?"));
            let what = near.unwrap_or_else(|| format!("there are {}", known.join(", ")));
            flow.at("traffic.kind", format!("no kind is called `{kind}`; {what}"))
        }
        ReadError::Problem(p) => p.beneath("traffic"),
    })
}

/// Its keys.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub(super) enum Traffic {
    /// As much as the transport takes.
    Bulk { size: Option<Size>, total: Option<Size> },
    /// Packets of one size at a constant rate, one by one or so many at once.
    Cbr { rate: BitRate, size: Size, burst: Option<u32> },
    /// A constant rate in packets of varying size.
    Vbr { rate: BitRate, min_size: Size, max_size: Size, interval: Time },
    /// Bursts and silences of heavy-tailed length.
    ParetoOnOff {
        peak: Option<BitRate>,
        mean: Option<Mean>,
        size: Size,
        mean_on: Option<Time>,
        mean_off: Option<Time>,
        shape: Option<f64>,
    },
    /// The packet sizes of the Internet, most of them TCP's.
    Mix {
        peak: Option<BitRate>,
        mean: Option<Mean>,
        stream_share: Option<Share>,
        part: Option<Part>,
        source: Option<String>,
    },
    /// Transfers that web clients ask for.
    Web {
        clients: Option<u32>,
        mean_gap: Option<Time>,
        min_size: Option<Size>,
        max_size: Option<Size>,
        shape: Option<f64>,
    },
    /// Games and interactive programs.
    Thin { app: App, correlation: Option<f64> },
    /// Frames of a synthetic video.
    Video {
        rate: Option<BitRate>,
        fps: Option<f64>,
        group: Option<u32>,
        anchor_every: Option<u32>,
        sigma: Option<f64>,
        closed_gop: Option<bool>,
    },
    /// Frames of a recorded video.
    VideoTrace {
        frames: FileText,
        fps: Option<f64>,
        repeat: Option<bool>,
        order: Option<Order>,
        closed_gop: Option<bool>,
    },
}

/// A mean rate: `"1mbit"`, or `{ from = "0bit", to = "1mbit", every = "10s" }`, which is drawn again and again.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Mean {
    Fixed(Rate),
    Drawn(Redraw),
}

impl<'de> Deserialize<'de> for Mean {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Keys {
            from: Option<AnyRate>,
            to: BitRate,
            every: Time,
        }
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Mean;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rate such as \"1mbit\", or { from = \"0\", to = \"2mbit\", every = \"10s\" }")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Mean, E> {
                BitRate::deserialize(text.into_deserializer()).map(|r| Mean::Fixed(r.0))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Mean, A::Error> {
                let Keys { from, to, every } = Keys::deserialize(MapAccessDeserializer::new(map))?;
                let from = from.map_or(Rate::ZERO, |r| r.0);
                Ok(Mean::Drawn(Redraw { from, to: to.0, every: every.0 }))
            }
        }
        d.deserialize_any(Either)
    }
}

/// The source with the peak rate, or with the one that makes its mean, or with the means in its place.
fn paced(source: ParetoOnOff, peak: Option<BitRate>, mean: Option<Mean>) -> Result<ParetoOnOff, String> {
    match (peak, mean) {
        (Some(peak), None) => Ok(ParetoOnOff { peak: peak.0, ..source }),
        (None, Some(Mean::Fixed(mean))) => Ok(source.with_mean(mean)),
        (None, Some(Mean::Drawn(means))) => Ok(ParetoOnOff { peak: Rate::ZERO, redraw: Some(means), ..source }),
        (None, None) => Err("needs a `peak` or a `mean`".to_owned()),
        (Some(_), Some(_)) => Err("has a `peak` or a `mean`, which the peak follows: remove one".to_owned()),
    }
}

/// What of a mix a flow sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Part {
    Both,
    Tcp,
    Udp,
}

impl Part {
    fn config(self) -> MixPart {
        match self {
            Part::Both => MixPart::Both,
            Part::Tcp => MixPart::Streams,
            Part::Udp => MixPart::Packets,
        }
    }
}

/// `{ file = "film.txt" }` with what was read from it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileText {
    file: String,
    text: String,
}

/// In which order a trace has its frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    Decoding,
    Display,
}

/// Programs whose traces are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum App {
    AnarchyOnline,
    RemoteDesktop,
    Ssh,
    WorldOfWarcraft,
    Skype,
    Casa,
}

impl App {
    fn config(self) -> Thin {
        let app = match self {
            App::AnarchyOnline => ThinApp::AnarchyOnline,
            App::RemoteDesktop => ThinApp::RemoteDesktop,
            App::Ssh => ThinApp::Ssh,
            App::WorldOfWarcraft => ThinApp::WorldOfWarcraft,
            App::Skype => ThinApp::Skype,
            App::Casa => ThinApp::Casa,
        };
        Thin::app(app)
    }
}

impl Traffic {
    /// Bulk without end.
    pub const BULK: Traffic = Traffic::Bulk { size: None, total: None };

    /// What frames need by the pattern of their classes.
    pub fn dependence(&self) -> Dependence {
        match self {
            Traffic::VideoTrace { order: None | Some(Order::Decoding), closed_gop, .. } => {
                Dependence::Decoding { closed: closed_gop.unwrap_or(false) }
            }
            Traffic::Video { closed_gop, .. } | Traffic::VideoTrace { closed_gop, .. } => {
                Dependence::Display { closed: closed_gop.unwrap_or(false) }
            }
            _ => Dependence::Display { closed: false },
        }
    }

    /// Its generator; `full` is the payload of a full packet of the flow's transport.
    ///
    /// # Errors
    /// What is wrong with the numbers.
    pub fn config(&self, full: u32) -> Result<TrafficConfig, String> {
        let small = |s: Size| u32::try_from(s.0).unwrap_or(u32::MAX);
        let half = |t: Option<Time>| t.map_or(Duration::from_millis(500), |t| t.0);
        let config = match self.clone() {
            Traffic::Bulk { size, total } => {
                TrafficConfig::Bulk(Bulk { size: size.map_or(full, small), total: total.map(|t| t.0) })
            }
            Traffic::Cbr { rate, size, burst } => {
                TrafficConfig::Cbr(Cbr { rate: rate.0, size: small(size), burst: burst.unwrap_or(1) })
            }
            Traffic::Vbr { rate, min_size, max_size, interval } => TrafficConfig::Vbr(Vbr {
                rate: rate.0,
                min_size: small(min_size),
                max_size: small(max_size),
                interval: interval.0,
            }),
            Traffic::ParetoOnOff { peak, mean, size, mean_on, mean_off, shape } => {
                let source = ParetoOnOff {
                    peak: Rate::ZERO,
                    sizes: Sizes::Fixed(small(size)),
                    mean_on: half(mean_on),
                    mean_off: half(mean_off),
                    shape: shape.unwrap_or(1.5),
                    redraw: None,
                };
                TrafficConfig::ParetoOnOff(paced(source, peak, mean)?)
            }
            Traffic::Mix { peak, mean, stream_share, part, source } => {
                let p1 = Mix::p1(Rate::ZERO);
                TrafficConfig::Mix(Mix {
                    packets: paced(p1.packets, peak, mean)?,
                    stream_share: stream_share.map_or(p1.stream_share, |s| s.0),
                    part: part.map_or(p1.part, Part::config),
                    source,
                })
            }
            Traffic::Web { clients, mean_gap, min_size, max_size, shape } => {
                let p2 = Web::P2;
                TrafficConfig::Web(Web {
                    clients: clients.unwrap_or(p2.clients),
                    mean_gap: mean_gap.map_or(p2.mean_gap, |t| t.0),
                    min_size: min_size.map_or(p2.min_size, |s| s.0),
                    max_size: max_size.map_or(p2.max_size, |s| s.0),
                    shape: shape.unwrap_or(p2.shape),
                })
            }
            Traffic::Thin { app, correlation } => {
                TrafficConfig::Thin(Thin { correlation: correlation.unwrap_or(0.0), ..app.config() })
            }
            Traffic::Video { rate, fps, group, anchor_every, sigma, closed_gop: _ } => {
                let v = Video::STANDARD;
                TrafficConfig::Video(Video {
                    rate: rate.map_or(v.rate, |r| r.0),
                    fps: fps.unwrap_or(v.fps),
                    group: group.unwrap_or(v.group),
                    anchor_every: anchor_every.unwrap_or(v.anchor_every),
                    sigma: sigma.unwrap_or(v.sigma),
                    ..v
                })
            }
            Traffic::VideoTrace { frames: FileText { file, text }, fps, repeat, order, closed_gop } => {
                let fps = fps.unwrap_or(Video::STANDARD.fps);
                let trace = VideoTrace::parse(&text, fps, repeat.unwrap_or(true));
                let trace = trace.map_err(|e| format!("{file}: {e}"))?;
                let idle = [("order", order.is_some()), ("closed-gop", closed_gop.is_some())];
                if let Some((key, _)) = idle.iter().find(|(_, said)| *said && trace.needs.is_some()) {
                    return Err(format!("{file} says what each frame needs: remove `{key}`"));
                }
                TrafficConfig::VideoTrace(trace)
            }
        };
        config.check()?;
        Ok(config)
    }
}
