//! How a TCP behaves.

use super::MAX_BLOCKS;
use super::RtoConfig;
use super::quick_ack::LONGEST;
use anabranch_base::Duration;

/// How losses are repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// Fast retransmit, then slow start.
    Tahoe,
    /// Fast recovery until the next new acknowledgement (RFC 5681).
    Reno,
    /// Fast recovery until everything sent before it is acknowledged (RFC 6582).
    NewReno,
    /// Selective acknowledgements.
    Sack(SackRule),
    /// Selective acknowledgements, and time decides what is lost (RFC 8985).
    Rack,
}

/// How the congestion window grows and falls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// By one segment each round trip, and to a half (RFC 5681).
    Reno,
    /// By a cubic function of time, and to 0.7 (RFC 9438).
    Cubic,
}

/// Which rules a SACK sender follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SackRule {
    /// A count of packets in the pipe, moved by events (Fall and Floyd 1996); ns-2's `Sack1`.
    Pipe,
    /// The pipe counted from the scoreboard (RFC 6675).
    Rfc6675,
}

/// How a TCP behaves. Windows are in segments.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TcpConfig {
    /// How losses are repaired.
    pub recovery: Recovery,
    /// How the congestion window grows and falls. [`Congestion::Cubic`] needs selective acknowledgements.
    pub congestion: Congestion,
    /// CUBIC's first slow start ends when round trips become longer (HyStart++, RFC 9406).
    pub hystart: bool,
    /// Rack: how much leaves in a recovery follows what arrives (PRR, RFC 9937), or else the window falls at once.
    pub prr: bool,
    /// Rack: a segment leaves after two round trips without an acknowledgement (RFC 8985 §7).
    pub tail_probe: bool,
    /// CUBIC gives way to new flows (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// The window grows only where it was full in the latest round, or in slow start half full (RFC 7661's aim, by
    /// Linux's rule). Without it Reno's always grows, and CUBIC's while something waits for it.
    pub validate_window: bool,
    /// Bytes of payload of a full segment.
    pub segment: u32,
    /// Bytes of headers on each segment and acknowledgement; a SACK block adds 8.
    pub header: u32,
    /// The most segments in flight, whatever the congestion window.
    pub window: u32,
    /// Congestion window after the SYN is acknowledged; 1 if the SYN was lost (RFC 5681 §3.1).
    pub initial_window: u32,
    /// Slow-start threshold at the start; `None` takes the window.
    pub initial_ssthresh: Option<u32>,
    /// After a silence of one time-out the congestion window falls to this (RFC 5681 §4.1); `None` leaves it.
    pub restart_window: Option<u32>,
    /// Sends a new segment on each of the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Halves what is in flight (RFC 5681 eq. 4), and no more than the window without what duplicates add to it, or else the
    /// window that allowed it, as ns-2 does.
    pub halve_flight: bool,
    /// The most segments a NewReno sender sends on one acknowledgement in recovery; `None` as many as fit.
    pub recovery_burst: Option<u32>,
    /// What an application writes in small pieces waits while a small segment is not acknowledged (Nagle's algorithm);
    /// off, as games and remote shells have it (`TCP_NODELAY`).
    pub nagle: bool,
    /// What a generator makes while the window is closed leaves in full segments, as data of a stream of bytes do. Without
    /// it each emission begins a segment of its own.
    pub coalesce: bool,
    /// The longest an acknowledgement waits for a second segment; `None` acknowledges each at once.
    pub delayed_ack: Option<Duration>,
    /// As Linux delays: `delayed_ack` is the shortest wait, which grows with the gaps between segments, and nothing
    /// waits at the start of a connection and after anything out of order.
    pub quick_ack: bool,
    /// SACK blocks in an acknowledgement, up to [`MAX_BLOCKS`]; sent to a SACK sender only.
    pub sack_blocks: u8,
    /// The time-out.
    pub rto: RtoConfig,
    /// Segments sent again carry the time at which they left first, for whoever measures delays; nothing else changes.
    pub keep_first_sent: bool,
}

impl TcpConfig {
    /// What ns-2.35's `Agent/TCP` and its children do by default: 1000-byte segments, a window of 20, a clock of 10 ms,
    /// a time-out of at least 200 ms, each segment acknowledged.
    pub const fn ns2(recovery: Recovery) -> Self {
        let ms = Duration::from_millis;
        TcpConfig {
            recovery,
            congestion: Congestion::Reno,
            hystart: true,
            prr: true,
            tail_probe: true,
            fast_convergence: true,
            validate_window: false,
            segment: 1_000,
            header: 40,
            window: 20,
            initial_window: 2,
            initial_ssthresh: None,
            restart_window: Some(1),
            limited_transmit: true,
            halve_flight: false,
            recovery_burst: Some(2),
            nagle: false,
            coalesce: false,
            delayed_ack: None,
            quick_ack: false,
            sack_blocks: MAX_BLOCKS as u8,
            rto: RtoConfig { initial: ms(3_000), min: ms(200), max: ms(60_000), tick: ms(10), min_of_variation: false },
            keep_first_sent: false,
        }
    }

    /// What the RFCs in force recommend: RFC 5681, 6298, 6928 and 3042, a delayed acknowledgement of 100 ms, segments
    /// of 1448 bytes, a window no path fills.
    pub const fn rfc(recovery: Recovery) -> Self {
        let ms = Duration::from_millis;
        TcpConfig {
            recovery,
            congestion: Congestion::Reno,
            hystart: true,
            prr: true,
            tail_probe: true,
            fast_convergence: true,
            validate_window: false,
            segment: 1_448,
            header: 52,
            window: 1 << 20,
            initial_window: 10,
            initial_ssthresh: None,
            restart_window: Some(10),
            limited_transmit: true,
            halve_flight: true,
            recovery_burst: None,
            nagle: false,
            coalesce: false,
            delayed_ack: Some(ms(100)),
            quick_ack: false,
            sack_blocks: MAX_BLOCKS as u8,
            rto: RtoConfig {
                initial: ms(1_000),
                min: ms(1_000),
                max: ms(60_000),
                tick: ms(1),
                min_of_variation: false,
            },
            keep_first_sent: false,
        }
    }

    /// What Linux does by default: CUBIC with HyStart, RACK-TLP and PRR, a window that grows only where it was full, a
    /// time-out at least 200 ms above the round trip, acknowledgements delayed by 40 ms and more, but not at the start.
    /// Segments and windows as [`rfc`](Self::rfc) has them.
    pub const fn linux() -> Self {
        let ms = Duration::from_millis;
        let rfc = TcpConfig::rfc(Recovery::Rack);
        TcpConfig {
            congestion: Congestion::Cubic,
            validate_window: true,
            halve_flight: false,
            delayed_ack: Some(ms(40)),
            quick_ack: true,
            rto: RtoConfig { min: ms(200), max: ms(120_000), min_of_variation: true, ..rfc.rto },
            ..rfc
        }
    }

    /// The longest an acknowledgement waits.
    pub(super) const fn longest_ack_delay(&self) -> Duration {
        match self.delayed_ack {
            Some(_) if self.quick_ack => LONGEST,
            Some(wait) => wait,
            None => Duration::ZERO,
        }
    }

    /// With CUBIC in place of Reno.
    #[must_use]
    pub const fn with_cubic(mut self) -> Self {
        self.congestion = Congestion::Cubic;
        self
    }

    /// With delayed acknowledgements, as ns-2's `DelAck` sinks have them.
    #[must_use]
    pub const fn with_delayed_ack(mut self, wait: Duration) -> Self {
        self.delayed_ack = Some(wait);
        self
    }

    /// With this window limit, in segments.
    #[must_use]
    pub const fn with_window(mut self, segments: u32) -> Self {
        self.window = segments;
        self
    }

    /// Does the receiver report what came out of order?
    pub const fn is_selective(&self) -> bool {
        matches!(self.recovery, Recovery::Sack(_) | Recovery::Rack)
    }

    /// What is wrong with the values, in words for a user.
    ///
    /// # Errors
    /// One line that says what to change.
    pub const fn check(&self) -> Result<(), &'static str> {
        if self.segment == 0 || self.window == 0 || self.initial_window == 0 {
            return Err("TCP needs segments of at least one byte and windows of at least one segment");
        }
        let selective = self.is_selective();
        if matches!(self.congestion, Congestion::Cubic) && !selective {
            return Err("CUBIC needs a recovery with selective acknowledgements: sack, sack-pipe or rack");
        }
        if self.sack_blocks as usize > MAX_BLOCKS || (self.sack_blocks == 0 && selective) {
            return Err("an acknowledgement carries one to three SACK blocks");
        }
        let rto = &self.rto;
        if rto.min.as_nanos() > rto.max.as_nanos() || rto.initial.is_zero() || rto.tick.is_zero() {
            return Err("a time-out needs an initial value and a tick above zero, and min not above max");
        }
        Ok(())
    }
}
