//! The state machine of RFC 9260 §4. Each variant owns what only it needs.

use std::sync::Arc;

/// Where an association is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Handshake under way.
    Connecting,
    /// Data flows.
    Established,
    /// Shutdown under way.
    Closing,
    /// The association is over.
    Closed,
}

/// The states of RFC 9260 §4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the standard's")]
pub enum Stage {
    CookieWait,
    CookieEchoed,
    Established,
    ShutdownPending,
    ShutdownSent,
    ShutdownReceived,
    ShutdownAckSent,
    Closed,
}

#[derive(Debug)]
pub(crate) enum State {
    /// INIT sent, T1-init runs.
    CookieWait,
    /// COOKIE ECHO sent, T1-cookie runs.
    CookieEchoed {
        cookie: Arc<[u8]>,
    },
    Established,
    /// The user asked; outstanding data goes first.
    ShutdownPending,
    /// SHUTDOWN sent, T2 runs.
    ShutdownSent,
    /// The peer asked; our outstanding data goes first.
    ShutdownReceived,
    /// SHUTDOWN ACK sent, T2 runs.
    ShutdownAckSent,
    Closed,
}

impl State {
    pub fn stage(&self) -> Stage {
        match self {
            State::CookieWait => Stage::CookieWait,
            State::CookieEchoed { .. } => Stage::CookieEchoed,
            State::Established => Stage::Established,
            State::ShutdownPending => Stage::ShutdownPending,
            State::ShutdownSent => Stage::ShutdownSent,
            State::ShutdownReceived => Stage::ShutdownReceived,
            State::ShutdownAckSent => Stage::ShutdownAckSent,
            State::Closed => Stage::Closed,
        }
    }
    pub fn phase(&self) -> Phase {
        match self {
            State::CookieWait | State::CookieEchoed { .. } => Phase::Connecting,
            State::Established => Phase::Established,
            State::Closed => Phase::Closed,
            _ => Phase::Closing,
        }
    }
    /// The user may hand over messages.
    pub fn takes_user_data(&self) -> bool {
        matches!(self, State::CookieWait | State::CookieEchoed { .. } | State::Established)
    }
    /// DATA may leave (RFC 9260 §6; with COOKIE ECHO we send none).
    pub fn sends_data(&self) -> bool {
        matches!(self, State::Established | State::ShutdownPending | State::ShutdownReceived)
    }
    /// One side asked to end, and what is outstanding goes first.
    pub fn is_ending(&self) -> bool {
        matches!(self, State::ShutdownPending | State::ShutdownReceived)
    }
    /// DATA is accepted (RFC 9260 §6).
    pub fn accepts_data(&self) -> bool {
        matches!(self, State::Established | State::ShutdownPending | State::ShutdownSent)
    }
    /// Past the handshake and not over.
    pub fn is_connected(&self) -> bool {
        !matches!(self, State::CookieWait | State::CookieEchoed { .. } | State::Closed)
    }
}
