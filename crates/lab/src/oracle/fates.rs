//! Which packets a link will lose.

use anabranch_base::{Instant, RandomStream};
use anabranch_sim::LossConfig;
use anabranch_sim::loss::LossModel;

/// The finest times at which a loss that goes by time is asked for.
const GRID: u64 = 100_000;

/// The losses of a link while it has one loss model, computed as far as they are asked for. Unlike the model it can be
/// asked for earlier ones again, so that plans can be changed.
pub(super) struct Fates {
    model: Box<dyn LossModel>,
    random: RandomStream,
    by_time: bool,
    known: Vec<bool>,
    /// For all packets alike.
    always: Option<bool>,
}

impl Fates {
    /// Those of a model whose stream is called `name`.
    pub fn new(config: &LossConfig, seed: u64, name: &str) -> Self {
        let mut random = RandomStream::named(seed, name);
        let by_time = matches!(config, LossConfig::TimedTwoState { .. } | LossConfig::Outages(_));
        let always = match config {
            LossConfig::None => Some(false),
            LossConfig::Bernoulli { p } if *p >= 1.0 => Some(true),
            _ => None,
        };
        Fates { model: config.build(&mut random), random, by_time, known: Vec::new(), always }
    }

    /// Is packet `number` of the model lost, which passes at `at` (nanoseconds)?
    pub fn loses(&mut self, number: usize, at: u64) -> bool {
        if let Some(always) = self.always {
            return always;
        }
        let place = if self.by_time { (at / GRID) as usize } else { number };
        while self.known.len() <= place {
            let at = Instant::from_nanos(if self.by_time { self.known.len() as u64 * GRID } else { 0 });
            self.known.push(self.model.loses(at, &mut self.random));
        }
        self.known.get(place).copied().unwrap_or(false)
    }
}
