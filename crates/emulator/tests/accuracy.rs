//! Does the emulator do what it was asked for? Each figure is taken beside a plain path that measures
//! the machine's own loss and lateness at the same time; when those are out of bounds the test says so
//! on standard error (`SKIPPED`) and measures nothing; with `CI` set in the environment it fails.

mod measure;

use anabranch_base::{Duration as Span, Instant};
use anabranch_emulator::{measure_control, parse_link};
use anabranch_sim::Link;
use measure::{alone, measure};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * q) as usize]
}

/// Packet numbers the simulator's link loses, of the same name, seed and configuration.
fn lost_in_simulation(link: &str, count: usize) -> Vec<usize> {
    let mut sim = Link::new("tested.up", 5, parse_link(link).unwrap());
    for i in 0..count {
        sim.enqueue(Instant::from_millis(i as u64), 1_000, i);
    }
    let mut lost: Vec<usize> = (0..count).collect();
    while let Some(i) = sim.poll_deliver(Instant::FAR) {
        lost.retain(|l| *l != i);
    }
    lost
}

#[test]
fn delay() {
    let _alone = alone();
    let Some(run) = measure("delay", "delay 80ms", 600, 1_200, 2 * MS) else { return };
    let delays = run.delays_ms();
    let [p0, p50, p99] = [0.0, 0.5, 0.99].map(|q| quantile(&delays, q));
    assert_eq!(run.lost(), [] as [usize; 0]);
    assert!(p0 >= 80.0, "a packet came early: {p0} ms");
    // Our own share: 1 ms at the median, 2 ms at the 99th percentile. The rest is the machine's.
    let machine = run.machine_p99_ms;
    assert!(p50 < 81.0 + machine, "median {p50} ms, machine {machine} ms");
    assert!(p99 < 82.0 + 2.0 * machine, "99th percentile {p99} ms, machine {machine} ms");
    assert!(run.in_order);
    // What the emulator says of its own lateness fits what came out.
    let late = run.stats.machine.lateness;
    assert_eq!(late.count, 1_200);
    assert!(late.p99.as_millis_f64() < 2.0 + 2.0 * machine, "{late:?}");
}

#[test]
fn jitter() {
    let _alone = alone();
    let Some(run) = measure("jitter", "delay 40ms 20ms order free", 600, 200, MS) else { return };
    let delays = run.delays_ms();
    let machine = run.machine_p99_ms;
    assert!(quantile(&delays, 0.0) >= 20.0 && quantile(&delays, 0.0) < 22.0 + machine);
    assert!(quantile(&delays, 0.99) < 62.0 + 2.0 * machine, "{}", quantile(&delays, 0.99));
    // Uniform over 40 ms: standard deviation 11.5 ms, 0.47 ms of the mean of 600.
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    assert!(mean > 38.1 && mean < 42.0 + machine, "mean {mean}");
    assert!(!run.in_order);
}

#[test]
fn rate() {
    let _alone = alone();
    // 1,000 packets a second of 1,222 + 28 bytes are 10 Mbit/s, offered to 4 Mbit/s.
    let Some(run) = measure("rate", "rate 4mbit delay 20ms limit 30", 1_500, 1_222, MS) else { return };
    let mut arrivals: Vec<Duration> = run.packets.iter().filter_map(|p| p.arrived).collect();
    arrivals.sort();
    let span = *arrivals.last().unwrap() - arrivals[0];
    let rate = (arrivals.len() - 1) as f64 * 1_250.0 * 8.0 / span.as_secs_f64();
    // 1 %, and the machine's lateness at both ends.
    let bound = 0.01 + 2.0 * run.machine_error.as_secs_f64() / span.as_secs_f64();
    assert!((rate / 4e6 - 1.0).abs() < bound, "{rate} bit/s");
    let up = run.stats.paths[1].up;
    assert_eq!(up.offered.packets, 1_500);
    assert_eq!(up.delivered.packets as usize, arrivals.len());
    assert_eq!(up.dropped_queue.packets as usize, run.lost().len());
    // A full queue of 30 packets of 2.5 ms, then the delay.
    // The longest of all is the machine's doing, so the 99th percentile is judged.
    let delays = run.delays_ms();
    let (long, machine) = (quantile(&delays, 0.99), run.machine_error.as_secs_f64() * 1e3);
    assert!(long > 92.0 && long < 98.0 + 2.0 * machine, "{long} ms, machine {machine} ms");
}

#[test]
fn uniform_loss() {
    let _alone = alone();
    let link = "delay 10ms loss 10%";
    let Some(run) = measure("uniform loss", link, 3_000, 300, MS / 4) else { return };
    let lost = run.lost();
    // 4 standard deviations of the share.
    assert!((lost.len() as f64 / 3_000.0 - 0.1).abs() < 4.0 * 0.0055, "{} lost", lost.len());
    // The machine lost nothing, so the losses are those of the simulator, packet for packet.
    assert_eq!(lost, lost_in_simulation(link, 3_000));
    assert_eq!(run.stats.paths[1].up.dropped_loss.packets as usize, lost.len());
}

#[test]
fn loss_in_bursts() {
    let _alone = alone();
    let link = "loss 5% burst 4";
    let Some(run) = measure("loss in bursts", link, 2_000, 300, MS / 4) else { return };
    let lost = run.lost();
    assert_eq!(lost, lost_in_simulation(link, 2_000));
    let bursts = lost.iter().enumerate().filter(|(i, l)| *i == 0 || lost[i - 1] + 1 != **l).count();
    let mean = lost.len() as f64 / bursts as f64;
    assert!(mean > 2.0 && mean < 7.0, "mean burst {mean}");
}

#[test]
fn a_schedule_cuts_and_returns() {
    let _alone = alone();
    let link = "delay 10ms at 400ms down at 700ms up at 900ms delay 60ms";
    let Some(run) = measure("schedule", link, 260, 200, 5 * MS) else { return };
    // The machine may pass a packet to the relay late, by as much as it was seen to.
    let slack = 5 * MS + run.machine_error;
    for packet in &run.packets {
        let surely = |from: u64, to: u64| {
            packet.sent > Duration::from_millis(from) && packet.sent + slack < Duration::from_millis(to)
        };
        let lost = packet.arrived.is_none();
        assert!(!lost || !(surely(0, 400) || surely(700, 900) || surely(900, 9_000)), "lost although up: {packet:?}");
        assert!(lost || !surely(400, 700), "arrived although cut: {packet:?}");
        if let (true, Some(delay)) = (surely(900, 9_000), packet.delay_ms()) {
            assert!(delay >= 60.0, "{packet:?}");
        }
    }
    // 300 ms of a packet each 5 ms.
    let blurred = 2 + (slack.as_millis() / 5) as usize;
    assert!(run.lost().len().abs_diff(60) <= blurred, "{}", run.lost().len());
}

#[test]
fn the_control_run_reports_the_machine() {
    let _alone = alone();
    let control = measure_control(Duration::from_millis(500), 1_000).unwrap();
    assert_eq!(control.sent, 500);
    assert!(control.delay_error_p50 <= control.delay_error_p99 && control.delay_error_p99 <= control.delay_error_max);
    assert!(control.delay_error_max > Span::ZERO);
    assert_eq!(control.ok, control.failure().is_none());
    assert_eq!(control.machine.lateness.count, control.sent - control.lost);
    println!("{control:?}");
}
