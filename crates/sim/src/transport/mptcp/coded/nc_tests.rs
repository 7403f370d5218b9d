use super::*;

fn path(rtt: f64, usable: bool) -> PathView {
    PathView { rtt, rto: 1.0, window: 10.0, in_flight: 0, usable }
}

fn network(losses: &[f64]) -> Network {
    let mut n = Network::new(Supply::Endless, &MptcpConfig::rfc(), NcConfig { generation: 8 }, losses.len());
    n.flights = losses.iter().map(|&p| Flights::of_a_path_that_loses(p)).collect();
    n
}

/// Sums go by the subflow with the largest product of loss and round trip, the longer one of equals, never the only one.
#[test]
fn the_worst_subflow_carries_the_sums() {
    let on = |losses: &[f64], paths: &[PathView]| network(losses).sums_on(paths);
    assert_eq!(on(&[0.02, 0.1], &[path(0.1, true), path(0.03, true)]), Some(1));
    assert_eq!(on(&[0.02, 0.1], &[path(0.2, true), path(0.03, true)]), Some(0));
    // A loss on the shorter one, and none for long on the longer one.
    assert_eq!(on(&[0.015, 0.0], &[path(0.02, true), path(0.15, true)]), Some(1));
    assert_eq!(on(&[0.0, 0.0], &[path(0.1, true), path(0.2, true)]), Some(1));
    assert_eq!(on(&[0.01, 0.05], &[path(0.1, true), path(0.03, false)]), None);
}

/// As many generations ahead as the regular subflows get on while a sum travels longer than theirs.
#[test]
fn sums_run_ahead_by_the_difference_of_the_ways() {
    let n = network(&[0.0, 0.0]);
    // 10 segments in 0.1 s for 0.2 s are 20, two generations of 8.
    assert_eq!(n.lag(1, &[path(0.1, true), path(0.5, true)]), 2);
    assert_eq!(n.lag(1, &[path(0.1, true), path(0.1, true)]), 0);
}

/// What a generation will lack when a sum arrives: the part that its subflow loses, and all that comes later.
#[test]
fn a_generation_lacks_what_is_lost_or_late() {
    let ms = Instant::from_millis;
    let mut n = network(&[0.1, 0.0]);
    for number in 1..=4 {
        n.flights[0].leaves(number, ms(1_000), Carries::Original(number));
    }
    let paths = |sums: f64| [path(0.1, true), path(sums, true)];
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} and not {b}");
    close(n.expected(ms(1_000), 0, 1, &paths(0.2)), 0.4);
    close(n.expected(ms(1_000), 0, 1, &paths(0.05)), 4.0);
    close(n.expected(ms(1_200), 0, 1, &paths(0.2)), 4.0);
    close(n.expected(ms(1_000), 1, 1, &paths(0.2)), 0.0);
}

/// A sum of the segments that the window allowed says nothing of those that come later: it covers none of them.
#[test]
fn sums_cover_the_segments_that_they_are_of() {
    let mut n = network(&[0.0, 0.0]);
    assert!(n.reach(Instant::ZERO, 5));
    for _ in 0..3 {
        n.sum(0, 5);
    }
    let covered = |n: &Network| [5, 6, 8].map(|units| n.generation(0).covered(units));
    assert_eq!(covered(&n), [3, 0, 0]);
    assert!(n.reach(Instant::ZERO, 8));
    n.sum(0, 8);
    assert_eq!(covered(&n), [4, 1, 1]);
    n.sum(0, 7);
    assert_eq!(n.generation(0).covered(7), 2);
    // Those of five are no longer counted, on their way or not.
    n.landed(Carries::Sum(0, 5));
    assert_eq!([7, 8].map(|units| n.generation(0).covered(units)), [2, 1]);
    n.landed(Carries::Sum(0, 7));
    n.landed(Carries::Sum(0, 8));
    assert_eq!([7, 8].map(|units| n.generation(0).covered(units)), [0, 0]);
}

/// A generation is no larger than the receive buffer, and one segment at least.
#[test]
fn the_receive_buffer_holds_a_generation() {
    for (buffer, size) in [(1_428, 1), (2_855, 1), (4 * 1_428, 4), (16 << 10, 8), (1 << 30, 8)] {
        let config = MptcpConfig { receive_buffer: buffer, ..MptcpConfig::rfc() };
        let n = Network::new(Supply::Endless, &config, NcConfig { generation: 8 }, 2);
        assert_eq!(n.size, size, "{buffer}");
    }
}
