//! A plan for every packet that knows the links' future.
//!
//! Frames are taken in the order they are due. Each message goes where its last bit leaves first among the paths on which
//! it comes in time, and again at once when it will be lost. Frames are whole or not sent at all. When one does not fit,
//! less important ones that are on their way are taken out again, the latest first, as few as make it fit; B frames
//! before P frames. This is no optimum, but all of it can be done, and every packet has its headers.

use super::line::{Fate, Line, State};
use super::{Carriage, Film, Frame};
use anabranch_base::{Duration, Instant};

/// A packet that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// On which line, from 0.
    pub line: usize,
    /// When it was given to the link.
    pub at: Instant,
    /// Its bytes.
    pub size: u32,
    /// When it arrived; none if it was lost.
    pub arrival: Option<Instant>,
    /// The number of its frame.
    pub frame: usize,
}

/// Which frames come, and how.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// For each frame: whole in time?
    pub whole: Vec<bool>,
    /// Every packet, in the order they are sent on each line.
    pub sent: Vec<Sent>,
}

/// So many latencies back frames may be taken out again.
const BACK: u64 = 2;

/// A plan for the frames.
pub fn offline(film: &Film, lines: &mut [Line]) -> Plan {
    let mut p = Planner {
        film,
        states: lines.iter().map(Line::fresh).collect(),
        lines,
        before: Vec::with_capacity(film.frames.len()),
        packets: vec![Vec::new(); film.frames.len()],
        whole: vec![false; film.frames.len()],
    };
    for number in 0..film.frames.len() {
        p.before.push(p.states.clone());
        if !p.place(number) {
            p.make_room(number);
        }
    }
    Plan { sent: p.packets.into_iter().flatten().collect(), whole: p.whole }
}

struct Planner<'a> {
    film: &'a Film,
    lines: &'a mut [Line],
    states: Vec<State>,
    /// The lines before each frame.
    before: Vec<Vec<State>>,
    packets: Vec<Vec<Sent>>,
    whole: Vec<bool>,
}

/// What is planned of the frames from `first` on, to be put back.
#[derive(Clone)]
struct Kept {
    first: usize,
    states: Vec<State>,
    before: Vec<Vec<State>>,
    packets: Vec<Vec<Sent>>,
    whole: Vec<bool>,
}

impl Planner<'_> {
    /// Plans a frame behind what is planned; nothing changes when it does not fit.
    fn place(&mut self, number: usize) -> bool {
        let Some(frame) = self.film.frames.get(number).copied() else { return false };
        let mut job = Job {
            number,
            made: frame.at.as_nanos(),
            due: (frame.at + self.film.latency).as_nanos(),
            carriage: self.film.carriage,
            sent: Vec::new(),
        };
        let mut states = self.states.clone();
        let fits = self.film.carriage.chunks(&frame).all(|chunk| job.best(self.lines, &mut states, chunk));
        if fits {
            self.states = states;
            if let (Some(packets), Some(whole)) = (self.packets.get_mut(number), self.whole.get_mut(number)) {
                (*packets, *whole) = (job.sent, true);
            }
        }
        fits
    }

    /// Would the frame fit if there were no others?
    fn fits_alone(&mut self, number: usize) -> bool {
        let kept = self.keep(number);
        self.states = self.lines.iter().map(Line::fresh).collect();
        let fits = self.place(number);
        self.put_back(kept);
        fits
    }

    /// Takes out less important frames for this one, if that helps.
    fn make_room(&mut self, number: usize) {
        let Some(frame) = self.film.frames.get(number).copied() else { return };
        let since = frame.at.as_nanos().saturating_sub(self.film.latency.as_nanos().saturating_mul(BACK));
        let first = self.film.frames.partition_point(|f| f.at.as_nanos() < since).min(number);
        let worth = |f: &Frame| f.class as u8;
        let mut out: Vec<usize> = (first..number)
            .filter(|i| self.whole.get(*i) == Some(&true))
            .filter(|i| self.film.frames.get(*i).is_some_and(|f| worth(f) > worth(&frame)))
            .collect();
        out.sort_by_key(|i| self.film.frames.get(*i).map(|f| (std::cmp::Reverse(worth(f)), std::cmp::Reverse(*i))));
        if out.is_empty() || !self.fits_alone(number) {
            return;
        }
        let kept = self.keep(first);
        // The fewest that help, if more help at least as much.
        let (mut too_few, mut enough) = (0, out.len() + 1);
        while enough - too_few > 1 {
            let try_now = if enough > out.len() { (too_few * 2).clamp(1, out.len()) } else { (too_few + enough) / 2 };
            let helps = self.without(&out, try_now, first, number);
            self.put_back(kept.clone());
            match helps {
                true => enough = try_now,
                false if try_now == out.len() => return,
                false => too_few = try_now,
            }
        }
        self.without(&out, enough, first, number);
    }

    /// Plans the frames from `first` up to `number` anew without the first `n` of `out`. Do all others still fit?
    fn without(&mut self, out: &[usize], n: usize, first: usize, number: usize) -> bool {
        let gone: Vec<usize> = out.iter().take(n).copied().collect();
        let from = gone.iter().copied().min().unwrap_or(number).max(first);
        if let Some(states) = self.before.get(from) {
            self.states = states.clone();
        }
        for i in from..number {
            if let Some(before) = self.before.get_mut(i) {
                before.clone_from(&self.states);
            }
            let was = self.whole.get(i) == Some(&true);
            self.clear(i);
            if was && !gone.contains(&i) && !self.place(i) {
                return false;
            }
        }
        if let Some(before) = self.before.get_mut(number) {
            before.clone_from(&self.states);
        }
        self.place(number)
    }

    fn clear(&mut self, i: usize) {
        if let (Some(packets), Some(whole)) = (self.packets.get_mut(i), self.whole.get_mut(i)) {
            packets.clear();
            *whole = false;
        }
    }

    fn keep(&self, first: usize) -> Kept {
        Kept {
            first,
            states: self.states.clone(),
            before: self.before.get(first..).unwrap_or(&[]).to_vec(),
            packets: self.packets.get(first..self.before.len()).unwrap_or(&[]).to_vec(),
            whole: self.whole.get(first..self.before.len()).unwrap_or(&[]).to_vec(),
        }
    }

    fn put_back(&mut self, kept: Kept) {
        self.states = kept.states;
        self.before.truncate(kept.first);
        self.before.extend(kept.before);
        let places = self.packets.iter_mut().zip(&mut self.whole).skip(kept.first);
        places.zip(kept.packets.into_iter().zip(kept.whole)).for_each(|((p, w), (packets, whole))| {
            (*p, *w) = (packets, whole);
        });
    }
}

/// A frame while its messages are placed.
struct Job {
    number: usize,
    made: u64,
    due: u64,
    carriage: Carriage,
    sent: Vec<Sent>,
}

impl Job {
    /// Sends a message where its last bit leaves first. False where it comes in time nowhere.
    fn best(&mut self, lines: &mut [Line], states: &mut [State], chunk: u64) -> bool {
        let mut best: Option<(usize, State, Vec<Sent>)> = None;
        for (i, (line, state)) in lines.iter_mut().zip(states.iter()).enumerate() {
            let mut state = state.clone();
            let mut sent = Vec::new();
            if best.as_ref().is_some_and(|b| b.1.free <= state.free)
                || !self.message(i, line, &mut state, chunk, &mut sent)
            {
                continue;
            }
            if best.as_ref().is_none_or(|b| state.free < b.1.free) {
                best = Some((i, state, sent));
            }
        }
        let Some((i, state, sent)) = best else { return false };
        if let Some(slot) = states.get_mut(i) {
            *slot = state;
        }
        self.sent.extend(sent);
        true
    }

    /// Sends a message on one line, in pieces where it has to be.
    fn message(&self, i: usize, line: &mut Line, state: &mut State, chunk: u64, sent: &mut Vec<Sent>) -> bool {
        let mut left = chunk;
        while left > 0 {
            let Some(rest) = self.packet(i, line, state, left, sent) else { return false };
            left = if rest == 0 { 0 } else { self.carriage.chunk_of(rest) };
        }
        true
    }

    /// Sends a packet with so much of a chunk as it holds until it comes, and tells how much of it remains.
    fn packet(&self, i: usize, line: &mut Line, state: &mut State, chunk: u64, sent: &mut Vec<Sent>) -> Option<u64> {
        let (headers, own) = (u64::from(self.carriage.packet), u64::from(self.carriage.chunk));
        let mut start = state.free.max(self.made);
        while start <= self.due {
            let room = u64::from(line.mtu(start).min(self.carriage.largest)).saturating_sub(headers) & !3;
            let here = chunk.min(room);
            if here <= own {
                start = line.next_change(start)?;
                continue;
            }
            let (before, size) = (state.clone(), (here + headers) as u32);
            match line.send(state, start, size) {
                Fate::Arrives(at) if at <= self.due => {
                    let arrival = Some(Instant::from_nanos(at));
                    sent.push(self.note(i, start, size, arrival));
                    return Some(chunk - here);
                }
                Fate::Arrives(_) => {
                    *state = before;
                    start = line.next_change(start)?;
                }
                Fate::Lost => {
                    sent.push(self.note(i, start, size, None));
                    // What is lost at the entry takes no time.
                    start = if state.free > start { state.free } else { start + 100_000 };
                }
                Fate::Wait(until) => start = until,
                Fate::TooLarge => start = line.next_change(start)?,
            }
        }
        None
    }

    fn note(&self, line: usize, at: u64, size: u32, arrival: Option<Instant>) -> Sent {
        Sent { line, at: Instant::ZERO + Duration::from_nanos(at), size, arrival, frame: self.number }
    }
}
