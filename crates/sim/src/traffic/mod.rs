//! Traffic, one generator per file. A generator says when how many bytes are to be sent; who sends
//! them, and over what, is the caller's business.
//!
//! ```
//! use anabranch_base::{Instant, Rate};
//! use anabranch_sim::traffic::{Cbr, TrafficConfig};
//!
//! let config = TrafficConfig::Cbr(Cbr { rate: Rate::from_bits_per_sec(8_000), size: 100, burst: 1 });
//! let mut source = config.build(1, "background");
//! assert_eq!(source.next(Instant::ZERO).unwrap().at, Instant::ZERO);
//! assert_eq!(source.next(Instant::ZERO).unwrap().at, Instant::from_millis(100));
//! ```

mod bulk;
mod cbr;
mod mix;
mod pareto_on_off;
mod redraw;
mod sizes;
mod thin;
mod vbr;
mod video;
mod web;

pub use bulk::Bulk;
pub use cbr::Cbr;
pub use mix::{Mix, MixPart};
pub use pareto_on_off::ParetoOnOff;
pub use redraw::Redraw;
pub use sizes::Sizes;
pub use thin::{Gaps, Thin, ThinApp};
pub use vbr::Vbr;
pub use video::{Needs, Video, VideoTrace};
pub use web::Web;

use anabranch_base::{Instant, RandomStream};

/// So many bytes at this time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Emission {
    /// When. Times never run backwards from one emission to the next.
    pub at: Instant,
    /// Bytes of payload, never zero. Headers are added by whoever sends it.
    pub size: u64,
    /// What the bytes are.
    pub kind: Kind,
}

/// What an emission is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// One packet or message.
    Packet,
    /// Bytes for a transport that keeps a stream, as TCP does; a mix of both transports emits
    /// [`Kind::Packet`] for the one and this for the other.
    Stream,
    /// A transfer of its own: a new flow that carries `size` bytes and ends.
    Transfer {
        /// Which client asked for it, from 0.
        client: u32,
    },
    /// One video frame.
    Frame {
        /// Its place in the sequence, from 0.
        number: u64,
        /// How others depend on it.
        class: FrameClass,
    },
}

/// How the frames of a video depend on each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FrameClass {
    /// On no other.
    I,
    /// On the anchor (I or P) before.
    P,
    /// On the anchors on both sides.
    B,
}

/// Makes emissions, one after another.
pub trait Source: Send {
    /// The next emission; `None` when there will be none. The first call's `now` is when the source
    /// starts. Later ones matter only to a source without a clock of its own ([`Bulk`]): it emits at
    /// `now`, whenever it is asked.
    fn next(&mut self, now: Instant) -> Option<Emission>;

    /// [`next`](Self::next) written to where it is kept: what a call answers in memory, copied at once in larger
    /// pieces, waits for the stores that made it.
    fn advance(&mut self, now: Instant, kept: &mut Option<Emission>) {
        *kept = self.next(now);
    }
}

/// A generator by its parameters.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum TrafficConfig {
    /// As much as the transport takes.
    Bulk(Bulk),
    /// Packets of one size at a constant rate.
    Cbr(Cbr),
    /// A constant rate in packets of varying size.
    Vbr(Vbr),
    /// Bursts and silences of heavy-tailed length.
    ParetoOnOff(ParetoOnOff),
    /// Bursts of packets of two transports in the Internet's sizes.
    Mix(Mix),
    /// Transfers that web clients ask for.
    Web(Web),
    /// Games and interactive programs.
    Thin(Thin),
    /// Frames of a synthetic video.
    Video(Video),
    /// Frames of a recorded video.
    VideoTrace(VideoTrace),
}

impl TrafficConfig {
    /// The generator. Random numbers come from the stream `{name}.traffic` of `seed`; a mix draws the
    /// transports from `{name}.transport`, and means that are drawn again come from `{name}.mean`.
    pub fn build(&self, seed: u64, name: &str) -> Box<dyn Source> {
        let stream = |of: &str| RandomStream::named(seed, &format!("{name}.{of}"));
        let random = || stream("traffic");
        if self.check().is_err() {
            return Box::new(Silent);
        }
        match self {
            TrafficConfig::Bulk(c) => Box::new(bulk::Source::new(*c)),
            TrafficConfig::Cbr(c) => Box::new(cbr::Source::new(*c)),
            TrafficConfig::Vbr(c) => Box::new(vbr::Source::new(*c, random())),
            TrafficConfig::ParetoOnOff(c) => Box::new(pareto_on_off::Source::new(c.clone(), random(), stream("mean"))),
            TrafficConfig::Mix(c) => Box::new(mix::Source::new(c.clone(), seed, c.source.as_deref().unwrap_or(name))),
            TrafficConfig::Web(c) => Box::new(web::Source::new(*c, random())),
            TrafficConfig::Thin(c) => Box::new(thin::Source::new(c.clone(), random())),
            TrafficConfig::Video(c) => Box::new(video::Source::new(*c, random())),
            TrafficConfig::VideoTrace(c) => Box::new(video::TraceSource::new(c.clone())),
        }
    }

    /// What is wrong with the parameters, in words for a user. A generator built from such parameters
    /// emits nothing.
    pub fn check(&self) -> Result<(), &'static str> {
        match self {
            TrafficConfig::Bulk(c) => c.check(),
            TrafficConfig::Cbr(c) => c.check(),
            TrafficConfig::Vbr(c) => c.check(),
            TrafficConfig::ParetoOnOff(c) => c.check(),
            TrafficConfig::Mix(c) => c.check(),
            TrafficConfig::Web(c) => c.check(),
            TrafficConfig::Thin(c) => c.check(),
            TrafficConfig::Video(c) => c.check(),
            TrafficConfig::VideoTrace(c) => c.check(),
        }
    }
}

/// Emits nothing.
struct Silent;

impl Source for Silent {
    fn next(&mut self, _now: Instant) -> Option<Emission> {
        None
    }
}

fn packet(at: Instant, size: u64) -> Emission {
    Emission { at, size, kind: Kind::Packet }
}
