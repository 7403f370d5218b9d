//! The losses of a link: one model, or several in series.

use super::{LossConfig, LossModel};
use anabranch_base::{Instant, RandomStream};

/// What loses packets on a link. A packet is lost when any of its models loses it, and each model sees every packet and
/// draws from a stream of its own: one more in the series changes nothing of what the others lose.
pub struct Losses {
    seed: u64,
    /// Name of the first model's stream; the second has `{name}2`, and so on.
    name: Box<str>,
    first: Box<dyn LossModel>,
    random: RandomStream,
    others: Vec<Box<dyn LossModel>>,
    /// Their streams. They go on when models change, so that no numbers come again.
    others_random: Vec<RandomStream>,
    nothing: bool,
}

impl Losses {
    /// These losses in their stationary state. The first draws from the stream `name` of `seed`, those after it from
    /// `{name}2`, `{name}3` and so on.
    pub fn new(config: &LossConfig, seed: u64, name: &str) -> Self {
        let mut random = RandomStream::named(seed, name);
        let first = config.models().first().unwrap_or(&LossConfig::None).build(&mut random);
        let nothing = config.is_none();
        let (others, others_random) = (Vec::new(), Vec::new());
        let mut losses = Losses { seed, name: name.into(), first, random, others, others_random, nothing };
        losses.set_others(config);
        losses
    }

    /// From now on loses as `config` says, with models that begin anew.
    pub fn set(&mut self, config: &LossConfig) {
        self.first = config.models().first().unwrap_or(&LossConfig::None).build(&mut self.random);
        self.nothing = config.is_none();
        self.set_others(config);
    }

    fn set_others(&mut self, config: &LossConfig) {
        let others = config.models().get(1..).unwrap_or_default();
        for number in self.others_random.len()..others.len() {
            self.others_random.push(RandomStream::named(self.seed, &stream(&self.name, number + 1)));
        }
        self.others = others.iter().zip(&mut self.others_random).map(|(m, random)| m.build(random)).collect();
    }

    /// Is it certain that nothing is lost?
    pub fn nothing(&self) -> bool {
        self.nothing
    }

    /// Is the packet that passes at `now` lost? `now` never runs backwards.
    pub fn loses(&mut self, now: Instant) -> bool {
        if self.nothing {
            return false;
        }
        let mut lost = self.first.loses(now, &mut self.random);
        for (model, random) in self.others.iter_mut().zip(&mut self.others_random) {
            lost |= model.loses(now, random);
        }
        lost
    }
}

/// The stream of model `place` in a series, counted from 0, whose first has the stream `name`.
pub fn stream(name: &str, place: usize) -> String {
    if place == 0 { name.to_owned() } else { format!("{name}{}", place + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::Duration;

    const RANDOM: LossConfig = LossConfig::bernoulli(0.1);

    fn lost(config: &LossConfig, changes: &[(usize, LossConfig)]) -> Vec<usize> {
        let mut losses = Losses::new(config, 4, "wlan.loss");
        let mut lose = |n: usize| {
            if let Some((_, to)) = changes.iter().find(|(at, _)| *at == n) {
                losses.set(to);
            }
            losses.loses(Instant::from_millis(n as u64))
        };
        (0..3_000).filter(|n| lose(*n)).collect()
    }

    #[test]
    fn one_more_changes_nothing_of_the_others() {
        let bursts = LossConfig::bursts(0.05, 4.0);
        let timed =
            LossConfig::TimedTwoState { mean_good: Duration::from_millis(200), mean_bad: Duration::from_millis(10) };
        let alone = lost(&RANDOM, &[]);
        let both = lost(&LossConfig::Series(vec![RANDOM, bursts.clone()]), &[]);
        let all = lost(&LossConfig::Series(vec![RANDOM, bursts.clone(), timed]), &[]);
        assert!(alone.iter().all(|n| both.contains(n)) && both.iter().all(|n| all.contains(n)));
        assert!(alone.len() > 250 && both.len() > alone.len() + 80 && all.len() > both.len() + 50);
        // What a single model loses is what it always lost, and the second does not know of the first.
        let mut random = RandomStream::named(4, "wlan.loss");
        let mut model = RANDOM.build(&mut random);
        let now = Instant::ZERO;
        assert_eq!(alone, (0..3_000).filter(|_| model.loses(now, &mut random)).collect::<Vec<_>>());
        let without = lost(&LossConfig::Series(vec![LossConfig::None, bursts]), &[]);
        let rest: Vec<usize> = both.iter().copied().filter(|n| !alone.contains(n)).collect();
        assert!(rest.iter().all(|n| without.contains(n)));
        assert!(both.iter().all(|n| alone.contains(n) || without.contains(n)));
    }

    #[test]
    fn each_sees_every_packet() {
        let series = vec![LossConfig::Packets(vec![1, 5]), LossConfig::Packets(vec![1, 2]), LossConfig::None];
        assert_eq!(lost(&LossConfig::Series(series), &[]), [1, 2, 5]);
    }

    /// Numbers that were used do not come again when the models change.
    #[test]
    fn streams_go_on_over_changes() {
        let two = LossConfig::Series(vec![LossConfig::None, RANDOM]);
        let again = lost(&two, &[(1_000, two.clone()), (2_000, two.clone())]);
        let part = |from: usize| -> Vec<usize> {
            again.iter().filter(|n| (from..from + 1_000).contains(*n)).map(|n| n - from).collect()
        };
        assert_ne!(part(0), part(1_000));
        assert_ne!(part(1_000), part(2_000));
        let single = lost(&two, &[(1_000, RANDOM), (2_000, LossConfig::None)]);
        assert!(single.iter().any(|n| (1_000..2_000).contains(n)) && single.iter().all(|n| *n < 2_000));
    }

    #[test]
    fn the_mean_is_of_all() {
        let series = LossConfig::Series(vec![LossConfig::bernoulli(0.1), LossConfig::bernoulli(0.2)]);
        assert!((series.mean() - 0.28).abs() < 1e-12);
        assert!(!series.is_none() && LossConfig::Series(vec![LossConfig::None; 2]).is_none());
        assert!(LossConfig::Series(vec![LossConfig::bernoulli(2.0)]).check().is_err());
        assert!(LossConfig::Series(vec![series]).check().is_err());
    }
}
