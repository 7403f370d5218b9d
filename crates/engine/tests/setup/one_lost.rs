//! Connect, ask, be answered, with exactly one packet of it lost: what that costs.

use crate::common::*;
use anabranch_base::Duration;
use anabranch_engine::{AssocConfig, Event, SendOptions};
use anabranch_policy::registry::Profile;
use anabranch_wire::kind;
use std::cell::RefCell;
use std::rc::Rc;

/// Who speaks first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum First {
    Client,
    Server,
}

struct Outcome {
    /// What was lost, and by whom it was sent.
    lost: Option<(Side, Vec<u8>)>,
    connected: Duration,
    answered: Duration,
    /// What the server believed of the way when it had sent its first message.
    srtt: Duration,
}

/// All that there is to lose, one after the other; the first outcome is without a loss.
fn outcomes(profile: &str, rtt: u64, first: First) -> Vec<Outcome> {
    let mut all = vec![exchange(profile, rtt, first, None)];
    for n in 0..30 {
        let o = exchange(profile, rtt, first, Some(n));
        if o.lost.is_none() {
            break;
        }
        all.push(o);
    }
    all
}

fn exchange(profile: &str, rtt: u64, first: First, lose: Option<usize>) -> Outcome {
    let config = AssocConfig::new(Profile::named(profile).expect("a profile"));
    let mut b = Bench::pair(1, &config, &config);
    b.largest = 1_500;
    b.add_path("path", link(100, rtt / 2), link(100, rtt / 2));
    type Packet = (Side, Vec<u8>);
    let lost: Rc<RefCell<Option<Packet>>> = Rc::default();
    let (note, mut n) = (lost.clone(), 0);
    b.filter = Some(Box::new(move |l| {
        let this = Some(n) == lose;
        n += 1;
        if this {
            *note.borrow_mut() = Some((l.from, kinds(l.bytes)));
        }
        !this
    }));
    let began = b.now;
    b.connect(&config);
    let (mut asked, mut answered, mut srtt) = (false, false, Duration::ZERO);
    let mut connected = Duration::ZERO;
    let say = |b: &mut Bench, side| assert!(b.send(side, SendOptions::default(), numbered(0, 1, 100)));
    let until = began + Duration::from_secs(8);
    let done = |b: &Bench| match first {
        First::Client => !b.at_client.is_empty(),
        First::Server => !b.at_server.is_empty(),
    };
    while !done(&b) && b.now < until {
        b.run_for(Duration::from_micros(500));
        if connected.is_zero() && b.client_events.contains(&Event::Connected) {
            connected = b.now.since(began);
        }
        let (client_up, server_up) = (!connected.is_zero(), b.server_events.contains(&Event::Connected));
        let client_speaks = client_up && (first == First::Client || !b.at_client.is_empty());
        if client_speaks && !asked {
            asked = true;
            say(&mut b, Side::Client);
        }
        if server_up && (first == First::Server || !b.at_server.is_empty()) && !answered {
            answered = true;
            say(&mut b, Side::Server);
            b.flush();
            srtt = b.path(Side::Server, 0).srtt;
        }
    }
    assert!(done(&b), "{profile}, {rtt} ms, {first:?}: {:?} is never made good", lost.borrow());
    let (answered, lost) = (b.now.since(began), lost.borrow().clone());
    Outcome { lost, connected, answered, srtt }
}

/// The profiles that repeat what is lost early.
const EARLY: [&str; 2] = ["low-latency", "live"];

/// Whatever is lost once there has been a round trip costs a few of them, and no RTO.Initial: the end that was connected to
/// knows the round trip from its cookie.
#[test]
fn one_lost_packet_costs_no_second_once_the_peer_has_answered() {
    for (profile, rtt, first) in EARLY
        .into_iter()
        .flat_map(|p| [10, 40, 100, 200].into_iter().flat_map(move |r| [(p, r, First::Client), (p, r, First::Server)]))
    {
        let all = outcomes(profile, rtt, first);
        let whole = all[0].answered;
        assert!(all.len() > 5, "{profile}: {} packets", all.len() - 1);
        for o in &all[1..] {
            let lost = o.lost.as_ref().expect("lost");
            let before = lost.1.iter().any(|k| matches!(*k, kind::INIT | kind::INIT_ACK));
            let more = o.answered.saturating_sub(whole);
            // RTO.Initial, before anything was answered; three round trips afterwards, or the least that a timer waits.
            let most = if before { ms(1_001) } else { ms(3 * rtt).max(ms(300)) + ms(10) };
            assert!(more <= most, "{profile}, {rtt} ms, {first:?}: {lost:?} cost {more:?}");
        }
    }
}

/// The cookie never says that a way is shorter than it is: what was repeated in the handshake makes the time longer, and
/// what is longer than RTO.Initial allows for counts for nothing. Others than our own profiles wait for a first answer.
#[test]
fn what_the_cookie_says_of_the_way_is_never_too_short() {
    for (profile, rtt, first) in EARLY
        .into_iter()
        .flat_map(|p| [10, 40, 100, 200, 400].map(|r| [(p, r, First::Client), (p, r, First::Server)]))
        .flatten()
    {
        let all = outcomes(profile, rtt, first);
        assert!(rtt == 400 || !all[0].srtt.is_zero(), "{profile}, {rtt} ms: the cookie says nothing");
        for o in all {
            let fits = (ms(rtt)..=ms(1_000) / 3).contains(&o.srtt);
            assert!(
                fits || o.srtt.is_zero() || rtt == 400,
                "{profile}, {rtt} ms, {first:?}, {:?}: {:?}",
                o.lost,
                o.srtt
            );
            assert!(
                o.srtt.is_zero() || o.srtt >= ms(rtt),
                "{profile}, {rtt} ms, {first:?}, {:?}: {:?}",
                o.lost,
                o.srtt
            );
        }
    }
    for profile in ["sctp", "linux", "thin", "cmt"] {
        assert!(outcomes(profile, 40, First::Server).iter().all(|o| o.srtt.is_zero()), "{profile}");
    }
}

/// Its COOKIE ACK was lost, and data of the peer say that there is an association: the COOKIE ECHO leaves again at once.
#[test]
fn data_before_the_cookie_ack_ask_for_it_again() {
    for (profile, rtt) in EARLY.into_iter().flat_map(|p| [10, 40, 100, 200].map(|r| (p, r))) {
        let all = outcomes(profile, rtt, First::Server);
        let o = all.iter().find(|o| o.lost.as_ref().is_some_and(|(_, k)| k.contains(&kind::COOKIE_ACK)));
        let (more, most) = (o.expect("one").connected.saturating_sub(all[0].connected), ms(rtt) + ms(2));
        assert!(more <= most, "{profile}, {rtt} ms: {more:?}");
    }
}
