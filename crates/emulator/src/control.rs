//! The machine's own loss and lateness: an idle emulator between two sockets of ours.

use crate::config::{EmulatorConfig, PathConfig};
use crate::error::EmulatorError;
use crate::handle::Emulator;
use crate::relay::socket;
use crate::stats::{Lateness, MachineStats};
use anabranch_base::{Duration, Instant};
use anabranch_sim::LinkConfig;
use hdrhistogram::Histogram;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Delay of the emulated path, and nothing else.
const DELAY: Duration = Duration::from_millis(30);
/// Bytes of one packet.
const SIZE: usize = 1_200;
/// Wait for the last packets after the last was due.
const GRACE: Duration = Duration::from_millis(300);
/// One packet lost in so many is too much.
const LOST_IN: u64 = 10_000;
/// From here on the 99th percentile of the delay's error is too much.
const DELAY_ERROR: Duration = Duration::from_millis(5);

/// What the machine does to packets when nothing is asked of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ControlReport {
    /// Packets sent.
    pub sent: u64,
    /// Packets that never came.
    pub lost: u64,
    /// Half of the delays were off by no more than this.
    pub delay_error_p50: Duration,
    /// 99 % of the delays were off by no more than this.
    pub delay_error_p99: Duration,
    /// No delay was off by more than this.
    pub delay_error_max: Duration,
    /// What the emulator itself saw.
    pub machine: MachineStats,
    /// Is the machine fit for measurements: fewer than 1 packet in 10,000 lost, and a 99th percentile
    /// below 5 ms?
    pub ok: bool,
}

impl ControlReport {
    /// Why the machine is not fit, in one line; `None` when it is.
    pub fn failure(&self) -> Option<String> {
        let lost = too_many_lost(self.sent, self.lost).then(|| {
            format!("the machine itself lost {} of {} packets (1 in {LOST_IN} is too much)", self.lost, self.sent)
        });
        let late = (self.delay_error_p99 >= DELAY_ERROR).then(|| {
            format!("delays are off by {} at the 99th percentile ({DELAY_ERROR} is too much)", self.delay_error_p99)
        });
        let reasons: Vec<String> = lost.into_iter().chain(late).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// Sends `packets_per_second` packets of 1200 bytes for `duration` through an idle emulator with a
/// fixed delay of 30 ms, and compares what arrives with what was asked for. The error of a delay
/// contains everything: the sender's, the emulator's and the receiver's wake-ups. Takes `duration` and
/// about a third of a second.
pub fn measure_control(
    duration: core::time::Duration,
    packets_per_second: u32,
) -> Result<ControlReport, EmulatorError> {
    let system = |source| EmulatorError::System { what: "the control's sockets", source };
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let receiver = socket::listen(loopback).map_err(system)?;
    receiver.set_nonblocking(false).map_err(system)?;
    receiver.set_read_timeout(Some(core::time::Duration::from_millis(20))).map_err(system)?;
    let link = LinkConfig::fixed(None, DELAY);
    let target = receiver.local_addr().map_err(system)?;
    let path = PathConfig { up: link.clone(), down: link, ..PathConfig::new("control", loopback, target) };
    let emulator = Emulator::start(EmulatorConfig::new(vec![path]))?;
    let sender = UdpSocket::bind(loopback).map_err(system)?;
    for address in emulator.local_addrs() {
        sender.connect(address).map_err(system)?;
    }
    let epoch = std::time::Instant::now();
    let done = AtomicBool::new(false);
    let (sent, received) = thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&receiver, epoch, &done));
        let sent = send(&sender, epoch, duration.into(), packets_per_second);
        thread::sleep((DELAY + GRACE).into());
        done.store(true, Ordering::Relaxed);
        (sent, receiving.join())
    });
    let errors = received.unwrap_or_else(|_| Err(io::Error::other("the receiving thread panicked"))).map_err(system)?;
    Ok(report(sent, &errors, emulator.stop().machine))
}

fn report(sent: u64, errors: &Histogram<u64>, machine: MachineStats) -> ControlReport {
    let errors = Lateness::of(errors);
    let lost = sent.saturating_sub(errors.count);
    ControlReport {
        sent,
        lost,
        delay_error_p50: errors.p50,
        delay_error_p99: errors.p99,
        delay_error_max: errors.max,
        machine,
        ok: sent > 0 && !too_many_lost(sent, lost) && errors.p99 < DELAY_ERROR,
    }
}

fn too_many_lost(sent: u64, lost: u64) -> bool {
    lost > 0 && lost.saturating_mul(LOST_IN) >= sent
}

fn nanos_since(epoch: std::time::Instant) -> Instant {
    Instant::from_nanos(u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Sends at an even pace; each packet carries the time it was sent. Returns how many were.
fn send(socket: &UdpSocket, epoch: std::time::Instant, duration: Duration, per_second: u32) -> u64 {
    let gap = Duration::from_secs(1) / u64::from(per_second.max(1));
    let mut packet = [0u8; SIZE];
    let (start, mut sent) = (nanos_since(epoch), 0);
    loop {
        let due = start + gap * sent;
        if due.since(start) >= duration {
            return sent;
        }
        let now = nanos_since(epoch);
        if due > now {
            thread::sleep(due.since(now).into());
        }
        if let Some(stamp) = packet.first_chunk_mut::<8>() {
            *stamp = nanos_since(epoch).as_nanos().to_be_bytes();
        }
        // A packet the system refuses counts as lost by the machine.
        if let Err(error) = socket.send(&packet) {
            tracing::debug!(%error, "a packet of the control was not taken");
        }
        sent += 1;
    }
}

/// How far each delay was off, in nanoseconds, until `done` says that no more will come.
fn receive(socket: &UdpSocket, epoch: std::time::Instant, done: &AtomicBool) -> io::Result<Histogram<u64>> {
    let mut errors = Histogram::new_with_bounds(1, 60_000_000_000, 3).map_err(io::Error::other)?;
    let mut packet = [0u8; SIZE + 1];
    while !done.load(Ordering::Relaxed) {
        match socket.recv(&mut packet) {
            Ok(SIZE) => {
                let now = nanos_since(epoch);
                if let Some(stamp) = packet.first_chunk::<8>() {
                    let delay = now.since(Instant::from_nanos(u64::from_be_bytes(*stamp)));
                    errors.saturating_record(delay.abs_diff(DELAY).as_nanos().max(1));
                }
            }
            Ok(_) => {}
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                ) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sent: u64, arrived: u64, error: Duration) -> ControlReport {
        let mut errors = Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        errors.record_n(error.as_nanos(), arrived).unwrap();
        report(sent, &errors, MachineStats::default())
    }

    #[test]
    fn the_bounds_are_where_they_are_said_to_be() {
        let fine = Duration::from_millis(4);
        assert!(of(1_500, 1_500, fine).ok);
        assert_eq!(of(1_500, 1_500, fine).failure(), None);
        // With fewer than 10,000 packets none may be lost.
        assert!(!of(1_500, 1_499, fine).ok);
        assert!(of(1_500, 1_499, fine).failure().unwrap().contains("lost 1 of 1500"));
        assert!(!of(10_000, 9_999, fine).ok);
        assert!(of(10_001, 10_000, fine).ok);
        let late = of(1_500, 1_500, Duration::from_millis(6));
        assert!(!late.ok && late.failure().unwrap().contains("99th percentile"));
        assert!(!of(0, 0, fine).ok);
    }
}
