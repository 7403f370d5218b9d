//! What became of a video's frames: of all that its source made, whether they were sent or not.

use super::build::{Live, Scene, with_associations};
use crate::metrics::{Came, Framed, Video, Window};
use crate::oracle::{self, Film, Frame};
use crate::scenario::{Plan, Playout};
use anabranch_base::{Duration, Instant};
use anabranch_sim::network::LinkId;
use anabranch_sim::traffic::{FrameClass, TrafficConfig};

/// So long without a missing frame, and the stream counts as whole again.
const CALM: Duration = Duration::from_secs(1);

/// A frame that was due, and whether it was whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub at: Instant,
    pub whole: bool,
    pub class: FrameClass,
    /// It was made in the window that is looked at, and not after it.
    pub within: bool,
}

/// The frames of a flow with a viewer.
pub(super) struct Frames {
    due: Vec<Due>,
    came: Came,
    /// Bytes of frames made, what the links carry of them, and the time, seconds.
    made: f64,
    carried: Option<f64>,
    time: f64,
    bounds: Option<Bounds>,
}

/// What could have been of the same frames.
struct Bounds {
    possible: usize,
    offline: usize,
    /// Of how many frames it is known whether they could be decoded, and how many could.
    known: usize,
    decodable: usize,
}

impl Frames {
    /// Those made in a window and due by the end of the run; `None` for a flow that is not watched. The bounds cost as
    /// much as a run does, so they are found where `bounds` says so.
    pub fn of(plan: &Plan, scene: &Scene, number: usize, seed: u64, window: Window, bounds: bool) -> Option<Frames> {
        let (flow, live) = (plan.flows.get(number)?, scene.flows.get(number)?);
        let playout = flow.playout.as_ref()?.after;
        let (window, end) = (live.within(window), plan.end());
        let record = live.record.borrow();
        let video = record.video()?;
        let frame = |(class, at, bytes, whole)| (Frame { at, class, bytes }, whole);
        let all = || video.made_frames().map(frame).take_while(|(f, _)| f.at + playout <= end);
        // What follows an event may be after the window in which it began.
        let begun = all().filter(|(f, _)| f.at >= window.from());
        let due =
            |(f, whole): (Frame, bool)| Due { at: f.at + playout, whole, class: f.class, within: window.holds(f.at) };
        let due = begun.map(due).collect();
        let made = || all().map(|(f, _)| f).collect();
        // What an encoder made that follows is another film.
        let bounds =
            if bounds && flow.follow.is_none() { bounds_of(plan, scene, number, seed, window, made()) } else { None };
        let time = window.time().as_secs_f64();
        let (bytes, carried) = (video.made(window) as f64, carried(plan, scene, number, window));
        Some(Frames { due, came: video.came(window, end), made: bytes, carried, time, bounds })
    }
}

/// None where a link has no rate that is known beforehand.
fn bounds_of(plan: &Plan, scene: &Scene, number: usize, seed: u64, window: Window, made: Vec<Frame>) -> Option<Bounds> {
    let (flow, live) = (plan.flows.get(number)?, scene.flows.get(number)?);
    let Playout { after: latency, dependence, .. } = flow.playout.clone()?;
    let ways = |l: &Live| -> Vec<Vec<LinkId>> {
        l.pairs.iter().filter_map(|(from, to)| scene.network.way(*from, *to)).collect()
    };
    let others: Vec<Vec<LinkId>> =
        with_associations(plan, scene).filter(|(_, l)| l.sender != live.sender).flat_map(|(_, l)| ways(l)).collect();
    let carriage = oracle::carriage(flow)?;
    let own = ways(live);
    // A small packet takes no time on the links beside the narrowest, and no other flow needs them.
    let alone = oracle::lines(plan, &own, &[], seed, 0)?;
    let mut shared = oracle::lines(plan, &own, &others, seed, carriage.largest)?;
    let film = Film { frames: made, latency, carriage };
    let whole = oracle::offline(&film, &mut shared).whole;
    let measured = |f: &Frame| window.holds(f.at);
    let end = plan.end();
    let frames = film.frames.iter().zip(&whole).map(|(f, whole)| (f.class, f.at, *whole));
    let decodable = Video::decodable_of(frames, latency, dependence, end);
    let decodable: Vec<bool> =
        film.frames.iter().zip(decodable).filter(|(f, _)| measured(f)).filter_map(|d| d.1).collect();
    let offline = film.frames.iter().zip(&whole).filter(|(f, whole)| measured(f) && **whole).count();
    let frames = film.frames.iter().copied().filter(measured).collect();
    let possible = oracle::possible(&Film { frames, ..film }, &alone);
    let known = decodable.len();
    Some(Bounds { possible, offline, known, decodable: decodable.into_iter().filter(|d| *d).count() })
}

/// Steps in which it is looked at what links carry.
const STEP: Duration = Duration::from_millis(20);

/// Bytes of frames that the links of a flow carry in a window, at most what its encoder makes: of what links
/// carry, the part that is frames in full packets. None where a rate is not known.
fn carried(plan: &Plan, scene: &Scene, number: usize, window: Window) -> Option<f64> {
    let (flow, live) = (plan.flows.get(number)?, scene.flows.get(number)?);
    let TrafficConfig::Video(video) = &flow.traffic else { return None };
    let carriage = oracle::carriage(flow)?;
    let cut = carriage.cut;
    let packet = cut.message(u64::from(cut.packet)) + u64::from(carriage.chunk) + u64::from(carriage.packet);
    let ways: Vec<Vec<LinkId>> = live.pairs.iter().filter_map(|(from, to)| scene.network.way(*from, *to)).collect();
    let narrow = oracle::narrow(plan, &ways, carriage.largest)?;
    let ((mut at, end), mut sum) = (window.span(), 0.0);
    while at < end {
        let next = (at + STEP).min(end);
        let mut carried = 0.0;
        for link in &narrow {
            let part = f64::from(cut.packet) / (packet + u64::from(link.overhead)) as f64;
            carried += link.capacity(at, next)? * part;
        }
        sum += carried.min(video.rate.bytes_per_sec() as f64 * (next - at).as_secs_f64());
        at = next;
    }
    Some(sum)
}

/// The value of all flows together; their frames are of this window.
pub(super) fn value(of: Framed, plan: &Plan, window: Window, flows: &[Frames]) -> Option<f64> {
    let due = || flows.iter().flat_map(|f| &f.due).filter(|d| d.within);
    let (frames, whole) = (due().count(), due().filter(|d| d.whole).count());
    let part = |of: u64, all: u64| (all > 0).then(|| of as f64 / all as f64);
    let came = |of: fn(&Came) -> u64| flows.iter().map(|f| of(&f.came)).sum::<u64>();
    let bound = |of: fn(&Bounds) -> usize| flows.iter().map(|f| f.bounds.as_ref().map(of)).sum::<Option<usize>>();
    let befell = plan.events_in(window);
    let events = befell.len().max(1) as f64;
    match of {
        Framed::Frames => Some(frames as f64),
        Framed::Whole => part(whole as u64, frames as u64),
        Framed::WholeOf(class) => {
            let of = || due().filter(|d| d.class == class);
            part(of().filter(|d| d.whole).count() as u64, of().count() as u64)
        }
        Framed::LostPerEvent => Some((frames - whole) as f64 / events),
        Framed::Recovery => {
            let all = flows.iter().flat_map(|f| recoveries(&f.due, &befell, &plan.events, plan.duration));
            all.max().map(Duration::as_secs_f64)
        }
        Framed::WastedBytes => part(came(|c| c.wasted), came(|c| c.bytes)),
        Framed::Possible => part(bound(|b| b.possible)? as u64, frames as u64),
        Framed::Offline => part(bound(|b| b.offline)? as u64, frames as u64),
        Framed::OfflineDecodable => part(bound(|b| b.decodable)? as u64, bound(|b| b.known)? as u64),
        Framed::MadeRate => {
            let times: f64 = flows.iter().map(|f| f.time).fold(0.0, f64::max);
            (times > 0.0).then(|| flows.iter().map(|f| f.made).sum::<f64>() * 8.0 / times)
        }
        Framed::RateShare => {
            let carried = flows.iter().map(|f| f.carried).sum::<Option<f64>>()?;
            (carried > 0.0).then(|| flows.iter().map(|f| f.made).sum::<f64>() / carried)
        }
        Framed::LostBeyondOffline => Some((bound(|b| b.offline)? as f64 - whole as f64) / events),
    }
}

/// From when until when.
type Span = (Duration, Duration);

/// After each of these events, up to the next one of all, the time until frames begin to come of which none is missing for a second.
fn recoveries(due: &[Due], events: &[Span], all: &[Span], duration: Duration) -> Vec<Duration> {
    let after = |e: &Span| all.iter().find(|next| next.0 > e.0).map_or(duration, |next| next.0);
    events.iter().map(|e| recovery(due, e.1, after(e))).collect()
}

fn recovery(due: &[Due], end: Duration, next: Duration) -> Duration {
    let (end, next) = (Instant::ZERO + end, Instant::ZERO + next);
    // Since when none is missing.
    let mut since = Some(end);
    for d in due.iter().filter(|d| d.at >= end && d.at < next) {
        match since {
            _ if !d.whole => since = None,
            None => since = Some(d.at),
            Some(since) if d.at - since >= CALM => return since - end,
            Some(_) => {}
        }
    }
    since.unwrap_or(next) - end
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Frames each 100 ms; those due at these times are missing.
    fn frames(missing: &[u64]) -> Vec<Due> {
        let whole = |n| !missing.contains(&(n * 100));
        (0..100)
            .map(|n| Due { at: Instant::from_millis(n * 100), whole: whole(n), class: FrameClass::I, within: true })
            .collect()
    }

    #[test]
    fn a_stream_is_whole_again_when_nothing_is_missing_for_a_second() {
        let after = |missing: &[u64], events: &[(u64, u64)]| -> Vec<u64> {
            let events: Vec<_> = events.iter().map(|e| (MS(e.0), MS(e.1))).collect();
            recoveries(&frames(missing), &events, &events, MS(10_000))
                .iter()
                .map(|d| d.as_nanos() / 1_000_000)
                .collect()
        };
        assert_eq!(after(&[], &[(1_000, 2_000)]), [0]);
        // What was missing before the end of the event is not of the time after it.
        assert_eq!(after(&[1_500, 1_900], &[(1_000, 2_000)]), [0]);
        assert_eq!(after(&[1_900, 2_000, 2_500], &[(1_000, 2_000)]), [600]);
        // One that is missing much later does not count, unless a second has not passed in between.
        assert_eq!(after(&[2_500, 3_700], &[(1_000, 2_000)]), [600]);
        assert_eq!(after(&[2_500, 3_500], &[(1_000, 2_000)]), [1_600]);
        // It never becomes whole before the next event, or the end.
        let all: Vec<u64> = (20..100).map(|n| n * 100).collect();
        assert_eq!(after(&all, &[(1_000, 2_000), (5_000, 6_000)]), [3_000, 4_000]);
    }
}
