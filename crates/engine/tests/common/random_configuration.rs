//! A case for `random_configurations`: two configurations, two paths and their weather, all drawn from one number.

use crate::common::{assoc_config, changed, link, ms};
use anabranch_base::{RandomStream, Rate};
use anabranch_engine::{AssocConfig, PathMtuDiscovery};
use anabranch_policy::registry::{Hook, ParamInfo, PolicyInfo, Profile, Value};
use anabranch_sim::{DamageConfig, Jitter, Limit, LinkConfig, LossConfig};
use core::fmt;

/// A path is dark, or slow, from one step of the test to another.
#[derive(Clone, Copy, Debug)]
pub struct Bad {
    pub path: usize,
    pub from: u64,
    pub until: u64,
    /// None is darkness.
    pub rate: Option<Rate>,
}

pub struct Case {
    pub number: u64,
    /// Names of the profiles that both ends began with.
    pub profiles: [&'static str; 2],
    pub client: AssocConfig,
    pub server: AssocConfig,
    pub links: [(LinkConfig, LinkConfig); 2],
    pub rates: [Rate; 2],
    pub weather: Vec<Bad>,
    /// Bytes of the largest message: several of them have room in every buffer.
    pub largest: u64,
}

impl Case {
    /// The case with this number; none when the registry refuses its policies.
    pub fn draw(number: u64) -> Option<Case> {
        let mut r = RandomStream::named(number, "configuration");
        let (first, mut client) = config(&mut r, number)?;
        let (second, mut server) = config(&mut r, number + 1)?;
        let rates = [Rate::from_bits_per_sec(8_000_000), Rate::from_bits_per_sec((1 + r.below(8)) * 1_000_000)];
        let mut links = [path(&mut r, rates[0]), path(&mut r, rates[1])];
        let mut weather = vec![];
        for path in [1, 1, 0] {
            if r.chance(0.25) {
                let from = r.below(200);
                let rate = r.chance(0.5).then(|| Rate::from_bits_per_sec(50_000 + r.below(500_000)));
                weather.push(Bad { path, from, until: from + 1 + r.below(400), rate });
            }
        }
        parity(number, [&mut client, &mut server])?;
        check_bits(number, [&mut client, &mut server], &mut links)?;
        let room = [&client, &server].iter().map(|c| c.limits.receive_buffer.min(c.limits.send_buffer)).min();
        // The beginnings of interleaving messages of all four streams have to fit a buffer beside each other.
        let part = if client.extensions.interleaving && server.extensions.interleaving { 12 } else { 3 };
        let largest = (room.unwrap_or(0) as u64 / part).min(5_000);
        Some(Case { number, profiles: [first, second], client, server, links, rates, weather, largest })
    }

    /// Streams from the client to the server, or back.
    pub fn streams(&self, from_client: bool) -> u64 {
        let (from, to) = if from_client { (&self.client, &self.server) } else { (&self.server, &self.client) };
        from.limits.outbound_streams.min(to.limits.inbound_streams).into()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, c) in [("client", &self.client), ("server", &self.server)] {
            let hooks = Hook::ALL.map(|h| format!("{}={}", h.name(), c.profile.spec(h))).join(" ");
            writeln!(f, "  {name}: {hooks}\n    {c:?}")?;
        }
        writeln!(f, "  {:?}\n  {:?}", self.links, self.weather)
    }
}

fn pick<T: Clone>(r: &mut RandomStream, of: &[T]) -> T {
    of[r.below(of.len() as u64) as usize].clone()
}

/// A value that `p` allows: any word or switch, numbers up to a factor of two from their default.
fn value(p: &ParamInfo, r: &mut RandomStream) -> String {
    if !p.words.is_empty() {
        return pick(r, p.words).to_owned();
    }
    let Value::Number(default) = p.default else { return p.default.to_string() };
    if p.whole && p.max == 1.0 {
        return r.below(2).to_string();
    }
    let n = (default * pick(r, &[0.5, 1.0, 2.0])).clamp(p.min, p.max);
    if p.whole { format!("{}", n.round()) } else { n.to_string() }
}

fn spec(p: &PolicyInfo, r: &mut RandomStream) -> String {
    let mut params = vec![];
    for p in p.params {
        if r.chance(0.3) {
            params.push(format!("{}={}", p.name, value(p, r)));
        }
    }
    if params.is_empty() { p.name.to_owned() } else { format!("{}:{}", p.name, params.join(",")) }
}

fn config(r: &mut RandomStream, seed: u64) -> Option<(&'static str, AssocConfig)> {
    let name = pick(r, &Profile::names());
    // A profile brings limits of its own.
    let mut c = changed(assoc_config(name), |c| c.seed = seed);
    if r.chance(0.6) {
        // `repair` comes last of all: cases keep their numbers.
        for hook in Hook::ALL.into_iter().filter(|h| *h != Hook::Repair) {
            if r.chance(0.4) {
                let chosen = spec(pick(r, &hook.policies()), r);
                c.profile.set(hook, &chosen).ok()?;
            }
        }
    }
    if c.profile.check(2).is_err() {
        return None;
    }
    if r.chance(0.8) {
        limits(r, &mut c);
    }
    c.failure.max_association_retrans = 1_000;
    c.failure.max_init_retrans = 100;
    c.check().is_ok().then_some((name, c))
}

/// One case of four has parity one way or both.
fn parity(number: u64, ends: [&mut AssocConfig; 2]) -> Option<()> {
    let mut r = RandomStream::named(number, "parity");
    if r.chance(0.75) {
        return Some(());
    }
    ends.into_iter().try_for_each(|c| with_parity(&mut r, c, "erasure"))
}

/// Over one pair of paths of four packets come damaged; two of three of these have check bits one way or both, some of them
/// with an end that takes or makes sums.
fn check_bits(number: u64, ends: [&mut AssocConfig; 2], links: &mut [(LinkConfig, LinkConfig); 2]) -> Option<()> {
    let mut r = RandomStream::named(number, "check bits");
    if r.chance(0.75) {
        return Some(());
    }
    for l in links.iter_mut().flat_map(|(there, back)| [there, back]) {
        let damage = [
            DamageConfig::None,
            DamageConfig::OneBit { packets: 0.05 },
            DamageConfig::Bits { rate: 5e-6 },
            DamageConfig::BECKE,
            DamageConfig::Blocks { packets: 0.1, blocks: 0.02 },
        ];
        l.damage = pick(&mut r, &damage);
    }
    if r.chance(0.33) {
        return Some(());
    }
    ends.into_iter().try_for_each(|c| with_parity(&mut r, c, "split_error_correction"))
}

/// Mostly parity is announced, made and taken, by the policies of this name.
fn with_parity(r: &mut RandomStream, c: &mut AssocConfig, name: &str) -> Option<()> {
    c.extensions.parity = r.chance(0.9);
    for (hook, chance) in [(Hook::Repair, 0.8), (Hook::Redundancy, 0.7)] {
        if r.chance(chance) {
            let policy = hook.policies().into_iter().find(|p| p.name == name)?;
            c.profile.set(hook, &spec(policy, r)).ok()?;
        }
    }
    c.profile.check(2).ok()
}

fn limits(r: &mut RandomStream, c: &mut AssocConfig) {
    c.limits.receive_buffer = pick(r, &[1_500, 3_000, 8_000, 20_000, 65_536, 1 << 20, 4 << 20]);
    c.limits.send_buffer = pick(r, &[6_000, 8_000, 20_000, 60_000, 1 << 20, 4 << 20]);
    c.mtu.packet_size = pick(r, &[512, 576, 1_000, 1_200]);
    c.mtu.discovery = r.chance(0.1).then(|| PathMtuDiscovery::up_to(1_200));
    c.limits.outbound_streams = pick(r, &[4, 5, 64, 65_535]);
    c.limits.inbound_streams = pick(r, &[4, 5, 64, 2_048, 65_535]);
    c.sending.max_burst = pick(r, &[0, 1, 2, 4, 16]);
    c.timers.sack_delay = ms(pick(r, &[0, 1, 40, 200, 500]));
    c.timers.heartbeat_interval = ms(pick(r, &[100, 1_000, 5_000, 30_000]));
    c.timers.heartbeat_max_burst = pick(r, &[1, 2, 10]);
    c.failure.max_path_retrans = pick(r, &[0, 1, 5, 20]);
    c.timers.rto_initial = ms(pick(r, &[10, 200, 1_000, 3_000]));
    c.timers.rto_max = ms(pick(r, &[1_000, 10_000, 60_000]));
    c.limits.max_paths = pick(r, &[2, 3, 16]);
    c.sending.initial_window = pick(r, &[None, Some(1), Some(1_000), Some(100_000), Some(1 << 30)]);
    c.sending.initial_ssthresh = pick(r, &[1, 3_000, 50_000, u64::from(u32::MAX)]);
    c.limits.receive_overhead = pick(r, &[0, 16, 192]);
    c.limits.peer_chunk_overhead = pick(r, &[0, 0, 16, 256]);
    c.extensions.partial_reliability = r.chance(0.7);
    c.extensions.dynamic_addresses = r.chance(0.8);
    c.extensions.stream_reconfiguration = r.chance(0.3);
    c.extensions.interleaving = r.chance(0.3);
    c.extensions.nr_sack = r.chance(0.3);
    c.extensions.nr_sack_covers_undelivered = r.chance(0.5);
    c.extensions.ecn = r.chance(0.2);
    c.extensions.packet_drop_reports = r.chance(0.2);
    c.failure.expose_potentially_failed = r.chance(0.5);
}

fn path(r: &mut RandomStream, rate: Rate) -> (LinkConfig, LinkConfig) {
    let delay = 1 + r.below(200);
    let loss = match r.below(4) {
        0 => LossConfig::bernoulli(0.0),
        1 => LossConfig::bernoulli(pick(r, &[0.01, 0.05, 0.15])),
        2 => LossConfig::bursts(0.02, 4.0),
        _ => LossConfig::bernoulli(0.002),
    };
    let (jitter, limit) = (pick(r, &[0, 0, 5, 40]).min(delay), pick(r, &[5, 40, 200]));
    let (reorders, duplicate) = (r.chance(0.5), pick(r, &[0.0, 0.0, 0.05]));
    let one = || {
        let mut l = link(1, delay).with_limit(Limit::packets(limit)).with_loss(loss.clone());
        l.rate = Some(rate);
        l.duplicate = duplicate;
        l.jitter = Jitter::Uniform(ms(jitter));
        l.jitter_reorders = reorders;
        l
    };
    (one(), one())
}
