//! Loss models, one per file. A model answers one question per packet: is this one lost?

mod bernoulli;
mod gilbert_elliott;
mod mask;
mod outages;
mod series;
mod timed_two_state;
mod trace;

pub use bernoulli::Bernoulli;
pub use gilbert_elliott::{GilbertElliott, GilbertElliottParams};
pub use mask::Mask;
pub use outages::Outages;
pub use series::{Losses, stream};
pub use timed_two_state::TimedTwoState;
pub use trace::LossTrace;

use anabranch_base::{Duration, Instant, RandomStream};

/// Decides packet by packet.
pub trait LossModel: Send {
    /// Is the packet that passes at `now` lost? `now` never runs backwards.
    fn loses(&mut self, now: Instant, random: &mut RandomStream) -> bool;
}

/// A loss model by its parameters. Shares are fractions of one.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum LossConfig {
    /// Nothing is lost.
    #[default]
    None,
    /// Each packet with the same probability, independently.
    Bernoulli {
        /// Probability of loss.
        p: f64,
    },
    /// Two states that change from packet to packet.
    GilbertElliott(GilbertElliottParams),
    /// Two states that change with time: exponential sojourns, everything is lost in the bad one.
    TimedTwoState {
        /// Mean stay in the good state.
        mean_good: Duration,
        /// Mean stay in the bad state.
        mean_bad: Duration,
    },
    /// Exactly these packets, by their number from 0.
    Packets(Vec<u64>),
    /// A pattern of packets (`true` is lost) that repeats without end.
    Pattern(Vec<bool>),
    /// Packet by packet as recorded.
    Trace(LossTrace),
    /// Everything at certain times.
    Outages(Outages),
    /// What any of these models loses; each sees every packet. None of them is a series itself.
    Series(Vec<LossConfig>),
}

impl LossConfig {
    /// Independent loss with probability `p`.
    pub const fn bernoulli(p: f64) -> Self {
        LossConfig::Bernoulli { p }
    }

    /// Two-state loss with mean loss `p` and a mean burst of `burst` packets; see
    /// [`GilbertElliottParams::from_mean`].
    pub fn bursts(p: f64, burst: f64) -> Self {
        LossConfig::GilbertElliott(GilbertElliottParams::from_mean(p, burst))
    }

    /// This and another one after it in series.
    #[must_use]
    pub fn and(self, other: LossConfig) -> Self {
        match self {
            LossConfig::None => other,
            LossConfig::Series(mut models) => {
                models.push(other);
                LossConfig::Series(models)
            }
            one => LossConfig::Series(vec![one, other]),
        }
    }

    /// Its models: those of the series, or the only one.
    pub fn models(&self) -> &[LossConfig] {
        match self {
            LossConfig::Series(models) => models,
            one => core::slice::from_ref(one),
        }
    }

    /// Is nothing lost, whatever comes?
    pub fn is_none(&self) -> bool {
        self.models().iter().all(|m| *m == LossConfig::None)
    }

    /// A single model in its stationary state, drawn from `random` where the model has a state. A series has several
    /// streams, and so is built by [`Losses`].
    pub fn build(&self, random: &mut RandomStream) -> Box<dyn LossModel> {
        match self {
            LossConfig::None | LossConfig::Series(_) => Box::new(Never),
            LossConfig::Bernoulli { p } => Box::new(Bernoulli::new(*p)),
            LossConfig::GilbertElliott(params) => Box::new(GilbertElliott::new(*params, random)),
            LossConfig::TimedTwoState { mean_good, mean_bad } => {
                Box::new(TimedTwoState::new(*mean_good, *mean_bad, random))
            }
            LossConfig::Packets(numbers) => Box::new(Mask::packets(numbers)),
            LossConfig::Pattern(pattern) => Box::new(Mask::pattern(pattern.clone())),
            LossConfig::Trace(trace) => Box::new(trace::Model::new(trace.clone())),
            LossConfig::Outages(outages) => Box::new(outages.clone()),
        }
    }

    /// Share of packets lost in the long run; zero for losses that happen once.
    pub fn mean(&self) -> f64 {
        match self {
            LossConfig::None | LossConfig::Packets(_) => 0.0,
            LossConfig::Bernoulli { p } => *p,
            LossConfig::GilbertElliott(params) => params.mean_loss(),
            LossConfig::TimedTwoState { mean_good, mean_bad } => timed_two_state::share_bad(*mean_good, *mean_bad),
            LossConfig::Pattern(pattern) if pattern.is_empty() => 0.0,
            LossConfig::Pattern(pattern) => pattern.iter().filter(|lost| **lost).count() as f64 / pattern.len() as f64,
            LossConfig::Trace(trace) => trace.mean(),
            LossConfig::Outages(outages) => outages.mean(),
            LossConfig::Series(models) => 1.0 - models.iter().map(|m| 1.0 - m.mean()).product::<f64>(),
        }
    }

    /// What is wrong with the parameters, in words for a user.
    pub fn check(&self) -> Result<(), &'static str> {
        match self {
            LossConfig::Bernoulli { p } if !(0.0..=1.0).contains(p) => Err("loss must lie between 0 and 100 %"),
            LossConfig::GilbertElliott(params) => params.check(),
            LossConfig::TimedTwoState { mean_good, mean_bad } if mean_good.is_zero() || mean_bad.is_zero() => {
                Err("mean stays in the good and the bad state must be longer than zero")
            }
            LossConfig::Outages(outages) => outages.check(),
            LossConfig::Series(models) => models.iter().try_for_each(|m| match m {
                LossConfig::Series(_) => Err("a series of losses holds no other series"),
                single => single.check(),
            }),
            _ => Ok(()),
        }
    }
}

/// Loses nothing.
struct Never;

impl LossModel for Never {
    fn loses(&mut self, _now: Instant, _random: &mut RandomStream) -> bool {
        false
    }
}
