//! From what was seen to what it means: the figures of one run.

use super::plan::{PACKET_OVERHEAD, RunPlan};
use super::run::{Measured, PathNote};
use super::script::{ORIGIN, Script};
use anabranch_base::Duration;
use anabranch_emulator::Sample;
use anabranch_media::Class;
use anabranch_media::truth::FrameReport;
use serde::Serialize;

/// Slot of the plots of rate and delay.
pub const SLOT: Duration = Duration::from_millis(100);
/// Slot of the plot of rates: several packets of each path, and smooth enough to read.
pub const RATE_SLOT: Duration = Duration::from_millis(500);
/// Slot of the plot of unusable frames.
pub const SHARE_SLOT: Duration = Duration::from_secs(1);

/// A number for each class of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub struct ByClass {
    /// Pictures that need no other.
    pub i: u64,
    /// Pictures that need earlier ones and are needed.
    pub p: u64,
    /// Pictures that nothing needs.
    pub b: u64,
}

impl ByClass {
    fn of(counts: &[u64; 4]) -> Self {
        let [i, p, b, _] = *counts;
        ByClass { i, p, b }
    }
    /// All classes together.
    pub fn total(self) -> u64 {
        self.i + self.p + self.b
    }
}

/// What a path of a run carried. Bytes count IPv4 and UDP headers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathOutcome {
    /// The network.
    pub name: String,
    /// Packets that the sender put on it.
    pub packets: u64,
    /// Bytes of them.
    pub bytes_wire: u64,
    /// Packets that came out at the receiver.
    pub packets_delivered: u64,
    /// Bytes of them.
    pub bytes_delivered: u64,
    /// Packets dropped because the queue was full.
    pub dropped_queue: u64,
    /// Packets lost at random.
    pub dropped_loss: u64,
    /// Bytes of the way back.
    pub bytes_back: u64,
    /// Bytes of media sent on it again after they were declared lost.
    pub bytes_retransmitted: u64,
}

/// The figures of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Name of the run.
    pub name: String,
    /// Name of its profile.
    pub profile: &'static str,
    /// Video frames sent.
    pub frames: u64,
    /// Frames with a part missing at play-out.
    pub frames_unusable: u64,
    /// Frames that are unusable or refer, directly or not, to one that is.
    pub frames_undecodable: u64,
    /// Frames sent, by class.
    pub frames_by_class: ByClass,
    /// Unusable frames by class.
    pub frames_unusable_by_class: ByClass,
    /// Undecodable frames by class.
    pub frames_undecodable_by_class: ByClass,
    /// Media messages sent; each travels in one packet.
    pub packets: u64,
    /// Media messages missing at play-out.
    pub packets_unusable: u64,
    /// Of these, those that arrived after their instant.
    pub packets_late: u64,
    /// Of these, those that the sender gave up because their deadline passed or could not be met.
    pub packets_given_up: u64,
    /// Bytes of media at the sender's input.
    pub bytes_media: u64,
    /// Bytes of media put out in time.
    pub bytes_played: u64,
    /// Bytes that the sender put on the wire, with everything down to the IP header.
    pub bytes_wire: u64,
    /// Wire bytes for each byte put out, less one.
    pub wire_overhead: f64,
    /// Chunks sent again.
    pub retransmissions: u64,
    /// Length of the media in seconds.
    pub seconds: f64,
    /// Half of the packets took no longer, in ms from input to arrival; late ones count.
    pub delay_p50_ms: f64,
    /// 99 % took no longer.
    pub delay_p99_ms: f64,
    /// The longest.
    pub delay_max_ms: f64,
    /// The received file is the sent one, byte for byte.
    pub identical: bool,
    /// Its name.
    pub file: String,
    /// Each path.
    pub paths: Vec<PathOutcome>,
    /// What the emulator added: datagrams it handed on later than the link said, 99th percentile in ms.
    pub emulator_lateness_p99_ms: f64,
    /// Datagrams that the machine lost: dropped by the kernel or refused.
    pub emulator_lost: u64,
    /// Curves for the report.
    #[serde(skip)]
    pub curves: Curves,
}

/// What is drawn. Times are seconds of media.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// For each path, Mbit/s that came out at the receiver.
    pub rates: Vec<Vec<(f64, f64)>>,
    /// Percent of the frames that began in each slot and were unusable.
    pub unusable: Vec<(f64, f64)>,
    /// Median delay in ms.
    pub delay_median: Vec<(f64, f64)>,
    /// Longest delay in ms.
    pub delay_max: Vec<(f64, f64)>,
    /// What happened to paths.
    pub notes: Vec<PathNote>,
}

impl Outcome {
    /// Works out the figures.
    pub fn of(plan: &RunPlan, script: &Script, measured: &Measured) -> Outcome {
        let report = script.index.report(&measured.played);
        let paths = path_outcomes(measured);
        let bytes_wire = paths.iter().map(|p| p.bytes_wire).sum();
        let bytes_played = measured.playout.bytes_played;
        let sender = &measured.sender.association;
        let mut delays: Vec<u64> = measured.arrivals.iter().map(|a| a.delay.as_nanos()).collect();
        delays.sort_unstable();
        let delay = |q: f64| quantile(&delays, q) as f64 / 1e6;
        let machine = &measured.emulator.machine;
        Outcome {
            name: plan.name.clone(),
            profile: plan.profile,
            frames: ByClass::of(&report.frames).total(),
            frames_unusable: ByClass::of(&report.unusable).total(),
            frames_undecodable: ByClass::of(&report.undecodable).total(),
            frames_by_class: ByClass::of(&report.frames),
            frames_unusable_by_class: ByClass::of(&report.unusable),
            frames_undecodable_by_class: ByClass::of(&report.undecodable),
            packets: report.messages,
            packets_unusable: report.messages_missing,
            packets_late: measured.playout.late,
            packets_given_up: sender.abandoned_unsent + sender.abandoned_sent + measured.refused,
            bytes_media: script.bytes,
            bytes_played,
            bytes_wire,
            wire_overhead: bytes_wire as f64 / bytes_played.max(1) as f64 - 1.0,
            retransmissions: sender.retransmissions,
            seconds: script.length().as_secs_f64(),
            delay_p50_ms: delay(0.5),
            delay_p99_ms: delay(0.99),
            delay_max_ms: delay(1.0),
            identical: false,
            file: format!("received-{}.ts", plan.name),
            paths,
            emulator_lateness_p99_ms: machine.lateness.p99.as_millis_f64(),
            emulator_lost: machine.receive_drops.unwrap_or(0) + machine.send_errors + machine.overflow,
            curves: Curves {
                rates: rates(plan.networks.len(), measured, script.length()),
                unusable: unusable(script, &report),
                delay_median: slots(measured, |delays| quantile(delays, 0.5)),
                delay_max: slots(measured, |delays| quantile(delays, 1.0)),
                notes: measured.notes.clone(),
            },
        }
    }

    /// Unusable frames as a share of one.
    pub fn unusable_share(&self) -> f64 {
        self.frames_unusable as f64 / self.frames.max(1) as f64
    }

    /// Mean rate of what was put out in time, Mbit/s.
    pub fn played_mbit(&self) -> f64 {
        mbit(self.bytes_played, self.seconds)
    }

    /// Mean rate of a path, Mbit/s, as it came out at the receiver.
    pub fn path_mbit(&self, name: &str) -> Option<f64> {
        self.paths.iter().find(|p| p.name == name).map(|p| mbit(p.bytes_delivered, self.seconds))
    }
}

fn mbit(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / 1e6 / seconds } else { 0.0 }
}

/// The value that a share `q` of the sorted values does not exceed; zero without any.
fn quantile(sorted: &[u64], q: f64) -> u64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(0)
}

fn with_headers(bytes: u64, packets: u64) -> u64 {
    bytes + packets * PACKET_OVERHEAD
}

fn path_outcomes(measured: &Measured) -> Vec<PathOutcome> {
    let of = |path: &anabranch_emulator::PathStats| {
        let sent = measured.sender.paths.iter().find(|p| p.stats.remote == path.listen).map(|p| p.stats.counters);
        PathOutcome {
            name: path.name.clone(),
            packets: path.up.offered.packets,
            bytes_wire: with_headers(path.up.offered.bytes, path.up.offered.packets),
            packets_delivered: path.up.delivered.packets,
            bytes_delivered: with_headers(path.up.delivered.bytes, path.up.delivered.packets),
            dropped_queue: path.up.dropped_queue.packets,
            dropped_loss: path.up.dropped_loss.packets,
            bytes_back: with_headers(path.down.delivered.bytes, path.down.delivered.packets),
            bytes_retransmitted: sent.map_or(0, |c| c.data_retransmitted),
        }
    };
    measured.emulator.paths.iter().map(of).collect()
}

/// Rate of each path over the time of the media, from the emulator's samples.
fn rates(paths: usize, measured: &Measured, length: Duration) -> Vec<Vec<(f64, f64)>> {
    let delivered = |s: &Sample, path: usize| {
        s.paths.get(path).map_or(0, |p| with_headers(p.up.delivered.bytes, p.up.delivered.packets))
    };
    let every = (RATE_SLOT.as_nanos() / SLOT.as_nanos()).max(1) as usize;
    let from = measured.media_from;
    let samples: Vec<&Sample> =
        measured.samples.iter().filter(|s| s.at + RATE_SLOT >= from && s.at <= from + length).collect();
    let rate = |path: usize| {
        let pairs = samples.iter().zip(samples.iter().skip(every));
        let point = |(a, b): (&&Sample, &&Sample)| {
            let seconds = b.at.since(a.at).as_secs_f64();
            let middle = (a.at.as_secs_f64() + b.at.as_secs_f64()) / 2.0 - from.as_secs_f64();
            (middle, mbit(delivered(b, path) - delivered(a, path), seconds))
        };
        pairs.map(point).filter(|p| p.0 >= 0.0).collect()
    };
    (0..paths).map(rate).collect()
}

/// Percent of unusable frames by the slot in which they came in.
fn unusable(script: &Script, report: &FrameReport) -> Vec<(f64, f64)> {
    let mut slots: Vec<(u64, u64)> = Vec::new();
    for (frame, usable) in script.index.frames().iter().zip(&report.usable).filter(|(f, _)| f.class.is_some()) {
        let slot = (frame.ingest.since(ORIGIN).as_nanos() / SHARE_SLOT.as_nanos()) as usize;
        if slots.len() <= slot {
            slots.resize(slot + 1, (0, 0));
        }
        if let Some((frames, lost)) = slots.get_mut(slot) {
            *frames += 1;
            *lost += u64::from(!usable);
        }
    }
    let share = |(i, (frames, lost)): (usize, &(u64, u64))| {
        let at = i as f64 * SHARE_SLOT.as_secs_f64();
        (at, 100.0 * *lost as f64 / *frames as f64)
    };
    // The frame at which the stream was cut may stand alone in a slot of its own.
    let enough = |(_, (frames, _)): &(usize, &(u64, u64))| *frames >= Class::ALL.len() as u64;
    slots.iter().enumerate().filter(enough).map(share).collect()
}

/// A figure in ms of the delays in each slot, by when the packets came in at the sender.
fn slots(measured: &Measured, figure: impl Fn(&[u64]) -> u64) -> Vec<(f64, f64)> {
    let mut slots: Vec<Vec<u64>> = Vec::new();
    for arrival in &measured.arrivals {
        let slot = (arrival.sent.as_nanos() / SLOT.as_nanos()) as usize;
        if slots.len() <= slot {
            slots.resize(slot + 1, Vec::new());
        }
        if let Some(delays) = slots.get_mut(slot) {
            delays.push(arrival.delay.as_nanos());
        }
    }
    let mut points = Vec::new();
    for (i, delays) in slots.iter_mut().enumerate() {
        delays.sort_unstable();
        let at = (i as f64 + 0.5) * SLOT.as_secs_f64();
        // A slot in which nothing arrived is a gap in the curve.
        points.push((at, if delays.is_empty() { f64::NAN } else { figure(delays) as f64 / 1e6 }));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::super::run::Arrival;
    use super::*;
    use anabranch_media::PlayoutStats;
    use anabranch_media::truth::SequenceSet;

    /// A run of which nothing was seen.
    fn nothing() -> Measured {
        let paths = Vec::new();
        Measured {
            played: SequenceSet::new(),
            playout: PlayoutStats::default(),
            arrivals: Vec::new(),
            refused: 0,
            sender: Default::default(),
            emulator: anabranch_emulator::EmulatorStats { running: Duration::ZERO, paths, machine: Default::default() },
            samples: Vec::new(),
            media_from: anabranch_base::Instant::from_millis(450),
            notes: Vec::new(),
        }
    }

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let values: Vec<u64> = (1..=200).collect();
        assert_eq!(quantile(&values, 0.5), 100);
        assert_eq!(quantile(&values, 0.99), 198);
        assert_eq!(quantile(&values, 1.0), 200);
        assert_eq!(quantile(&[7], 0.5), 7);
        assert_eq!(quantile(&[], 0.99), 0);
    }

    #[test]
    fn figures_follow_from_what_was_put_out() {
        let script = Script::shipped(3).unwrap();
        let plan = RunPlan::named("best").unwrap();
        let mut measured = nothing();
        let none = Outcome::of(&plan, &script, &measured);
        assert_eq!((none.frames_unusable, none.packets_unusable), (none.frames, none.packets));
        assert!(none.curves.unusable.iter().all(|p| p.1 == 100.0) && none.curves.unusable.len() == 3);
        // One B frame of the second second is lost, nothing else.
        let in_second = |f: &anabranch_media::truth::SentFrame| f.ingest.since(ORIGIN) >= Duration::from_millis(1_100);
        let lost = script.index.frames().iter().find(|f| f.class == Some(Class::B) && in_second(f)).unwrap();
        for sequence in (0..script.end.messages).filter(|s| *s != lost.first) {
            measured.played.insert(sequence as u32);
        }
        measured.playout.bytes_played = script.bytes - 1_128;
        let one = Outcome::of(&plan, &script, &measured);
        assert_eq!((one.frames_unusable, one.frames_undecodable, one.packets_unusable), (1, 1, 1));
        assert_eq!(one.frames_unusable_by_class, ByClass { i: 0, p: 0, b: 1 });
        let shares: Vec<f64> = one.curves.unusable.iter().map(|p| p.1).collect();
        assert_eq!((shares[0], shares[2]), (0.0, 0.0));
        assert!((3.9..4.2).contains(&shares[1]), "1 of 25 frames: {}", shares[1]);
        assert!((one.played_mbit() - 8.0).abs() < 0.02, "{}", one.played_mbit());
        assert!((one.unusable_share() - 1.0 / one.frames as f64).abs() < 1e-12);
    }

    #[test]
    fn delays_are_sorted_into_the_slots_in_which_packets_came_in() {
        let mut measured = nothing();
        let ms = Duration::from_millis;
        let arrival = |(sent, delay)| Arrival { sent: ms(sent), delay: ms(delay) };
        measured.arrivals = [(10, 40), (20, 60), (30, 50), (250, 200)].map(arrival).into();
        let longest = slots(&measured, |d| quantile(d, 1.0));
        assert_eq!((longest[0].1, longest[2].1), (60.0, 200.0));
        assert!(longest[1].1.is_nan(), "nothing came: a gap");
        assert!((longest[2].0 - 0.25).abs() < 1e-9);
        assert_eq!(slots(&measured, |d| quantile(d, 0.5))[0].1, 50.0);
    }

    #[test]
    fn rates_come_from_the_counters_and_start_with_the_media() {
        let mut measured = nothing();
        let at = |i: u64| {
            let mut up = anabranch_emulator::LinkCounters::default();
            // 5 packets of 1,000 bytes each 100 ms.
            (up.delivered.packets, up.delivered.bytes) = (5 * i, 5_000 * i);
            let path = anabranch_emulator::SampledPath { up, down: Default::default(), up_backlog: Default::default() };
            Sample { at: anabranch_base::Instant::from_millis(100 * i), paths: vec![path] }
        };
        measured.samples = (0..40).map(at).collect();
        let rates = rates(1, &measured, Duration::from_secs(2));
        assert!(rates[0].iter().all(|(t, v)| (0.0..=2.0).contains(t) && (v - 0.4112).abs() < 1e-9), "{rates:?}");
        assert!((15..=20).contains(&rates[0].len()));
    }
}
