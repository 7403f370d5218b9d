//! How the windows of subflows grow together. Each is a function of what it is shown of all subflows; windows are in
//! segments, round trips in seconds.
//!
//! Increases are for each acknowledgement of something new, as the simulator's Reno counts, not for each byte
//! acknowledged: with delayed acknowledgements all of them grow at half the pace, and stay comparable.

mod balia;
mod lia;
mod olia;

/// Which congestion control couples the subflows of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coupling {
    /// None: each is a Reno of its own.
    Uncoupled,
    /// Linked increases (RFC 6356).
    Lia,
    /// Opportunistic linked increases (Khalili et al. 2012).
    Olia,
    /// Balanced linked adaptation (Peng et al. 2016).
    Balia,
}

/// What a coupled congestion control sees of a subflow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct View {
    /// Congestion window; the slow-start threshold while a loss is repaired (RFC 6356 §3).
    pub window: f64,
    /// Smoothed round trip, s, above zero.
    pub rtt: f64,
    /// Segments acknowledged since the latest loss or between the two latest, whichever are more.
    pub between_losses: f64,
}

/// What it says to one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Verdict {
    /// By how much an acknowledgement opens the window in congestion avoidance.
    pub increase: f64,
    /// Part of the window that a loss leaves.
    pub left: f64,
}

impl Coupling {
    /// All of them.
    pub const ALL: [Coupling; 4] = [Coupling::Uncoupled, Coupling::Lia, Coupling::Olia, Coupling::Balia];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Coupling::Uncoupled => "none",
            Coupling::Lia => "lia",
            Coupling::Olia => "olia",
            Coupling::Balia => "balia",
        }
    }

    /// For the subflow `of` among all that have a round trip. As Reno does where there is nothing to couple.
    pub fn of(self, all: &[View], of: usize) -> Verdict {
        let Some(own) = all.get(of) else { return Verdict { increase: 0.0, left: 0.5 } };
        let reno = Verdict { increase: 1.0 / own.window, left: 0.5 };
        match self {
            _ if all.len() < 2 => reno,
            Coupling::Uncoupled => reno,
            Coupling::Lia => Verdict { increase: lia::increase(all, own), ..reno },
            Coupling::Olia => Verdict { increase: olia::increase(all, own), ..reno },
            Coupling::Balia => Verdict { increase: balia::increase(all, own), left: balia::left(all, own) },
        }
    }
}

/// The sum of the rates, in segments per second.
fn sum_of_rates(all: &[View]) -> f64 {
    all.iter().map(|v| v.window / v.rtt).sum()
}
