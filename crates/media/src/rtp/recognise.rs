//! Recognises RTP, and what is in it, from the first datagrams.

use super::PAYLOAD_TYPE;
use super::packet::{Look, look};
use super::run_on::{Found, RunOn, wider_packets};

/// Packets of one source that settle the question: any two bits may look like RTP's version.
const ENOUGH: u32 = 3;
/// Datagrams after which it is settled anyway.
const MOST: u32 = 16;
/// Sources distinguished: sound and pictures may share a port.
const SOURCES: usize = 4;
/// Largest step between numbers of one source.
const STEP_MAX: u16 = 256;

/// What datagrams are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A transport stream in RTP.
    Stream,
    /// A transport stream without RTP.
    Plain,
    /// One whose packets run on from datagram to datagram.
    RunsOn,
    /// It looks like one, and has gaps or something else in between.
    MayRunOn,
    /// A transport stream whose packets have more than 188 bytes: a time in front of each, or parity behind.
    Wider {
        /// Bytes of a packet.
        size: usize,
    },
    /// RTP with something else in it.
    Rtp {
        /// Its payload type.
        payload_type: u8,
    },
    /// None of these.
    Other,
}

#[derive(Clone, Copy)]
struct Source {
    ssrc: u32,
    payload_type: u8,
    stream: bool,
    sequence: u16,
    count: u32,
}

/// Looks at datagrams until it knows what they are.
#[derive(Default)]
pub struct Recogniser {
    /// RTP is what the user named: any payload type may hold a transport stream, and something else first is no verdict.
    named: bool,
    sources: Vec<Source>,
    run_on: RunOn,
    plain: u32,
    seen: u32,
}

impl Recogniser {
    /// For input that may be anything: only payload type 33 is a transport stream, and the first datagram that is no
    /// RTP settles it unless packets of a transport stream may run on in the next.
    pub fn new() -> Self {
        Recogniser::default()
    }

    /// For input that the user calls RTP.
    pub fn of_rtp() -> Self {
        Recogniser { named: true, ..Recogniser::default() }
    }

    /// Looks at the next datagram; returns what they are once that is sure.
    pub fn push(&mut self, datagram: &[u8]) -> Option<Verdict> {
        let look = look(datagram);
        let runs_on = match look {
            Look::Plain | Look::Stream { .. } => Found::Nothing,
            _ if self.named => Found::Nothing,
            // Any bytes may be first where a packet runs on, also those of RTP and RTCP.
            _ => self.run_on.push(datagram),
        };
        if runs_on == Found::Sure {
            return Some(Verdict::RunsOn);
        }
        let source = match look {
            // Says nothing about what it goes with.
            Look::Control => None,
            Look::Stream { payload_type, ssrc, sequence, .. } => {
                let stream = self.named || payload_type == PAYLOAD_TYPE;
                Some(Source { ssrc, payload_type, stream, sequence, count: 1 })
            }
            Look::Other { payload_type, ssrc, sequence } => {
                Some(Source { ssrc, payload_type, stream: false, sequence, count: 1 })
            }
            Look::Plain if !self.named => return Some(Verdict::Plain),
            Look::Unknown if !self.named && !self.run_on.has_begun() => {
                return Some(wider_packets(datagram).map_or(Verdict::Other, |size| Verdict::Wider { size }));
            }
            Look::Plain => {
                self.plain += 1;
                if self.plain >= ENOUGH {
                    return Some(Verdict::Plain);
                }
                None
            }
            Look::Unknown => None,
        };
        let found = source.and_then(|s| self.count(s));
        self.seen += 1;
        found.or_else(|| (self.seen >= MOST).then(|| self.so_far()))
    }

    /// Nothing more comes for now: what they are as far as is known.
    pub fn so_far(&self) -> Verdict {
        let best = self.sources.iter().max_by_key(|s| (s.stream, s.count));
        match best {
            Some(s) if self.named => s.verdict(),
            _ if self.run_on.is_likely() => Verdict::RunsOn,
            _ if self.run_on.has_begun() => Verdict::MayRunOn,
            None if self.plain > 0 => Verdict::Plain,
            _ => Verdict::Other,
        }
    }

    fn count(&mut self, new: Source) -> Option<Verdict> {
        let of_it = |s: &&mut Source| (s.ssrc, s.payload_type, s.stream) == (new.ssrc, new.payload_type, new.stream);
        let Some(known) = self.sources.iter_mut().find(of_it) else {
            if self.sources.len() == SOURCES {
                self.sources.remove(0);
            }
            self.sources.push(new);
            return None;
        };
        let step = new.sequence.wrapping_sub(known.sequence);
        let step = step.min(step.wrapping_neg());
        // Repeated packets are no evidence.
        match step {
            0 => {}
            1..=STEP_MAX => known.count += 1,
            _ => known.count = 1,
        }
        known.sequence = new.sequence;
        (known.count >= ENOUGH).then(|| known.verdict())
    }
}

impl Source {
    fn verdict(&self) -> Verdict {
        if self.stream { Verdict::Stream } else { Verdict::Rtp { payload_type: self.payload_type } }
    }
}
