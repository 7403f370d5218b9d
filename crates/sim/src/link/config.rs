//! What a link is like, in netem's words.

use super::{DeliveryTrace, Jitter, Schedule};
use crate::damage::DamageConfig;
use crate::loss::LossConfig;
use crate::queue::{Discipline, Limit};
use anabranch_base::{Duration, Modulation, Rate, Technology};
use core::fmt;

/// One direction of a path. Shares are fractions of one.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkConfig {
    /// Speed of the transmitter; `None` sends at once. At [`Rate::ZERO`] everything waits.
    pub rate: Option<Rate>,
    /// Recorded delivery opportunities in place of a rate.
    pub deliveries: Option<DeliveryTrace>,
    /// Time on the way after the last bit left. Where nothing may overtake ([`LinkConfig::jitter_reorders`]) and it
    /// falls, what is on the way arrives no later than what would leave now.
    pub delay: Duration,
    /// Variation of the delay, drawn per packet. A sum below zero is zero.
    pub jitter: Jitter,
    /// May a packet overtake another when its delay comes out shorter? If not, it arrives together
    /// with the one before it; so jitter that is long against the gaps between packets raises the
    /// mean delay.
    pub jitter_reorders: bool,
    /// Random loss.
    pub loss: LossConfig,
    /// Where random loss strikes.
    pub loss_point: LossPoint,
    /// How often the link sends a packet again that was lost on the wire, before it gives it up. Each time takes the
    /// rate anew while the others wait, and is lost by the same model or not. A packet is one frame.
    pub repeats: u32,
    /// What the link layer says of itself.
    pub frames: FrameReports,
    /// How many packets and bytes the link holds before the last bit leaves: waiting and in
    /// transmission, or waiting alone ([`Limit::waiting_only`]). Unlike netem's `limit`, packets on
    /// the way do not count.
    pub limit: Limit,
    /// How the queue behaves.
    pub discipline: Discipline,
    /// Header bytes charged for each packet, to the rate and to the byte limit (28 for IPv4 and UDP).
    pub overhead: u32,
    /// Largest size taken, in bytes without overhead.
    pub mtu: Option<u32>,
    /// Share of packets that arrive twice, each copy with its own delay.
    pub duplicate: f64,
    /// Share of packets that skip the delay and arrive as soon as they left, past those on the way.
    pub reorder: f64,
    /// How packets are damaged on the wire.
    pub damage: DamageConfig,
    /// Changes with time.
    pub schedule: Schedule,
}

/// What a link layer says of itself to the host that sends through it. Nothing of it changes what the link does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameReports {
    /// What kind of link it is.
    pub technology: Technology,
    /// How bits become a signal; [`Modulation::Unknown`] is what is usual for the technology.
    pub modulation: Modulation,
    /// Bytes of a frame.
    pub frame: u32,
    /// How often it reports its counts of frames; never without.
    pub every: Option<Duration>,
}

impl FrameReports {
    /// It reports nothing. A frame is what carries a packet of 1,500 bytes, the size in Xu et al. 2014.
    pub const NONE: FrameReports =
        FrameReports { technology: Technology::Unknown, modulation: Modulation::Unknown, frame: 1_500, every: None };

    /// The modulation, or what is usual for the technology.
    pub fn modulated(&self) -> Modulation {
        if self.modulation == Modulation::Unknown { self.technology.usual_modulation() } else { self.modulation }
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.frame == 0 {
            return Err(ConfigError("a frame has one byte or more"));
        }
        if self.every == Some(Duration::ZERO) {
            return Err(ConfigError("reports need a time between them that is longer than zero"));
        }
        Ok(())
    }
}

/// Where random loss strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LossPoint {
    /// After the transmitter: a lost packet has used queue and rate, as on a radio.
    #[default]
    Wire,
    /// Before the queue: a lost packet costs nothing, as with netem.
    Entry,
}

impl LinkConfig {
    /// A perfect link: no delay, no limit, no loss.
    pub const fn ideal() -> Self {
        LinkConfig {
            rate: None,
            deliveries: None,
            delay: Duration::ZERO,
            jitter: Jitter::None,
            jitter_reorders: false,
            loss: LossConfig::None,
            loss_point: LossPoint::Wire,
            repeats: 0,
            frames: FrameReports::NONE,
            limit: Limit::NONE,
            discipline: Discipline::DropTail,
            overhead: 0,
            mtu: None,
            duplicate: 0.0,
            reorder: 0.0,
            damage: DamageConfig::None,
            schedule: Schedule::none(),
        }
    }

    /// A link of this rate and delay, perfect in all else.
    pub fn fixed(rate: Option<Rate>, delay: Duration) -> Self {
        LinkConfig { rate, delay, ..LinkConfig::ideal() }
    }

    /// A link paced by a recorded trace, with this delay, perfect in all else.
    pub fn traced(deliveries: DeliveryTrace, delay: Duration) -> Self {
        LinkConfig { deliveries: Some(deliveries), delay, ..LinkConfig::ideal() }
    }

    /// The rate, or the mean rate of the trace.
    pub fn mean_rate(&self) -> Option<Rate> {
        self.deliveries.as_ref().map(DeliveryTrace::mean_rate).or(self.rate)
    }

    /// This link with this loss.
    #[must_use]
    pub fn with_loss(mut self, loss: LossConfig) -> Self {
        self.loss = loss;
        self
    }

    /// This link, sending what was lost on the wire so many times more.
    #[must_use]
    pub fn with_repeats(mut self, repeats: u32) -> Self {
        self.repeats = repeats;
        self
    }

    /// This link with this limit.
    #[must_use]
    pub fn with_limit(mut self, limit: Limit) -> Self {
        self.limit = limit;
        self
    }

    /// This link with this queue discipline.
    #[must_use]
    pub fn with_discipline(mut self, discipline: Discipline) -> Self {
        self.discipline = discipline;
        self
    }

    /// This link with this schedule.
    #[must_use]
    pub fn with_schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// What is wrong with the values, if anything. A link built from such values still runs: shares
    /// act as if cut to 0..1.
    pub fn check(&self) -> Result<(), ConfigError> {
        let share = |p: f64, what| if (0.0..=1.0).contains(&p) { Ok(()) } else { Err(ConfigError(what)) };
        share(self.duplicate, "duplicate must lie between 0 and 100 %")?;
        share(self.reorder, "reorder must lie between 0 and 100 %")?;
        self.loss.check().map_err(ConfigError)?;
        self.damage.check().map_err(ConfigError)?;
        self.discipline.check().map_err(ConfigError)?;
        self.frames.check()?;
        if self.repeats > 0 && self.loss_point == LossPoint::Entry {
            return Err(ConfigError("what is lost at the entrance is not sent again: leave out arq or loss-at entry"));
        }
        if self.rate == Some(Rate::ZERO) {
            return Err(ConfigError("a rate of zero sends nothing: use down to cut a link"));
        }
        if self.rate.is_some() && self.deliveries.is_some() {
            return Err(ConfigError("a link has a rate or a trace of deliveries, not both"));
        }
        self.schedule.check()
    }
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig::ideal()
    }
}

/// Why a configuration makes no sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConfigError(pub(crate) &'static str);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
impl core::error::Error for ConfigError {}
