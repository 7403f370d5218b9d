//! Which packets a link will lose.

use anabranch_base::Instant;
use anabranch_sim::LossConfig;
use anabranch_sim::loss::{Losses, stream};

/// The finest times at which a loss that goes by time is asked for.
const GRID: u64 = 100_000;

/// The losses of a link while its loss does not change, computed as far as they are asked for. Unlike the models they
/// can be asked for earlier ones again, so that plans can be changed.
pub(super) struct Fates(Vec<OfModel>);

impl Fates {
    /// Those of one model or a series, whose first stream is called `name`.
    pub fn new(config: &LossConfig, seed: u64, name: &str) -> Self {
        let models = config.models().iter().enumerate();
        Fates(models.map(|(place, m)| OfModel::new(m, seed, &stream(name, place))).collect())
    }

    /// Is packet `number` since the last change lost, which passes at `at` (nanoseconds)?
    pub fn loses(&mut self, number: usize, at: u64) -> bool {
        self.0.iter_mut().any(|m| m.loses(number, at))
    }
}

/// The losses of a single model.
struct OfModel {
    model: Losses,
    by_time: bool,
    known: Vec<bool>,
    /// For all packets alike.
    always: Option<bool>,
}

impl OfModel {
    fn new(config: &LossConfig, seed: u64, name: &str) -> Self {
        let by_time = matches!(config, LossConfig::TimedTwoState { .. } | LossConfig::Outages(_));
        let always = match config {
            LossConfig::None => Some(false),
            LossConfig::Bernoulli { p } if *p >= 1.0 => Some(true),
            _ => None,
        };
        OfModel { model: Losses::new(config, seed, name), by_time, known: Vec::new(), always }
    }

    fn loses(&mut self, number: usize, at: u64) -> bool {
        if let Some(always) = self.always {
            return always;
        }
        let place = if self.by_time { (at / GRID) as usize } else { number };
        while self.known.len() <= place {
            let at = Instant::from_nanos(if self.by_time { self.known.len() as u64 * GRID } else { 0 });
            self.known.push(self.model.loses(at));
        }
        self.known.get(place).copied().unwrap_or(false)
    }
}
