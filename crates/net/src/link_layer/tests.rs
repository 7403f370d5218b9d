use super::nl80211::composed_messages::{Counted, with_stations};
use super::*;
use crate::{AssocConfig, ClientConfig, ConnectOptions, Endpoint, Local, PathSpec, Profile, ServerConfig};
use anabranch_base::{Modulation, Technology};
use std::net::{IpAddr, Ipv4Addr};

fn place(local: u16, index: u32) -> Place {
    Place { local: LocalId(local), name: "wlan0".into(), index }
}

fn counted(packets: u32, repeats: u32, failed: u32) -> Vec<Counted> {
    vec![Counted { id: 1, packets, repeats: Some(repeats), failed: Some(failed) }]
}

#[test]
fn both_families_of_an_interface_have_its_report() {
    let mut r = Reader::new(Some(with_stations(vec![counted(100, 10, 0), counted(190, 20, 0)])));
    let places = [place(0, 3), place(4, 3)];
    let now = Instant::now();
    assert_eq!(r.look(&places, now).len(), 2, "nothing yet, but there will be");
    let report = FrameErrors {
        erroneous: 10,
        total: 100,
        frame: 1_300,
        modulation: Modulation::Qam64,
        technology: Technology::Wlan,
    };
    assert_eq!(r.look(&places, now), [(LocalId(0), report), (LocalId(4), report)]);
}

#[test]
fn an_interface_without_reports_is_left_alone_for_a_while() {
    let none = |packets| vec![Counted { id: 1, packets, repeats: None, failed: None }];
    // One answer for each question: a further one would find the kernel gone, which is an error too.
    let mut r = Reader::new(Some(with_stations(vec![none(10), counted(50, 5, 0), counted(100, 5, 5)])));
    let now = Instant::now();
    let soon = now + PERIOD;
    let later = now + LATER;
    assert_eq!(r.look(&[place(0, 3)], now), []);
    assert_eq!(r.look(&[place(0, 3)], soon), []);
    assert_eq!(r.look(&[place(0, 3)], later).len(), 1);
    let counts = r.look(&[place(0, 3)], later).first().map(|(_, f)| (f.erroneous, f.total));
    assert_eq!(counts, Some((10, 95)), "what came since the first look");
    assert_eq!(r.look(&[place(0, 3)], later), [], "the kernel is gone");
}

/// From the kernel's messages to what policies of a connection see.
#[tokio::test]
async fn a_connection_sees_what_the_kernel_counts() {
    let config = AssocConfig::new(Profile::named("cmt-cl-fd").unwrap());
    let server = Endpoint::server(ServerConfig::new("127.0.0.1:0".parse().unwrap(), config.clone())).unwrap();
    let client = Endpoint::client(ClientConfig::default()).unwrap();
    let connection = client.connect(ConnectOptions::new(server.listening()[0], config)).await.unwrap();
    let seen = || connection.stats().paths.iter().map(|p| p.stats.frame_errors).collect::<Vec<_>>();
    assert!(client.shared().lock().link_layer.is_wanted(), "its policies ask for them");
    assert_eq!(seen(), [None], "loopback has none");
    let mut r = Reader::new(Some(with_stations(vec![counted(100, 10, 0), counted(190, 20, 0), counted(290, 20, 0)])));
    for (erroneous, total) in [(0, 0), (10, 100), (10, 200)] {
        let reports = r.look(&[place(0, 3)], Instant::now());
        deliver(&mut client.shared().lock(), &reports);
        assert_eq!(seen()[0].map(|f| (f.erroneous, f.total)), Some((erroneous, total)));
    }
}

/// Each end asks for what its own policies want, whichever of them began; who began may have chosen otherwise.
#[tokio::test]
async fn the_end_that_accepts_asks_like_the_one_that_begins() {
    for [begins, accepts] in [["cmt-cl-fd"; 2], ["cmt", "cmt-cl-fd"], ["cmt-cl-fd", "cmt"], ["cmt"; 2]] {
        let config = |name| AssocConfig::new(Profile::named(name).unwrap());
        let server = Endpoint::server(ServerConfig::new("127.0.0.1:0".parse().unwrap(), config(accepts))).unwrap();
        let client = Endpoint::client(ClientConfig::default()).unwrap();
        let is_wanted = |e: &Endpoint| e.shared().lock().link_layer.is_wanted();
        assert!(!is_wanted(&server), "nothing is sent yet");
        let options = ConnectOptions::new(server.listening()[0], config(begins));
        let _begun = client.connect(options).await.unwrap();
        let _accepted = server.accept().await.unwrap();
        let asked = [is_wanted(&client), is_wanted(&server)];
        assert_eq!(asked, [begins, accepts].map(|name| name == "cmt-cl-fd"), "{begins} to {accepts}");
    }
}

/// What a program knows of a link, by the name that it gave the path.
#[tokio::test]
async fn a_program_may_report_what_it_knows_itself() {
    let config = AssocConfig::new(Profile::named("cmt").unwrap());
    let server = Endpoint::server(ServerConfig::new("127.0.0.1:0".parse().unwrap(), config.clone())).unwrap();
    let client = Endpoint::client(ClientConfig::default()).unwrap();
    let local = |n| Local::Address(IpAddr::V4(Ipv4Addr::new(127, 0, 0, n)));
    let paths = [1, 2].map(|n| PathSpec::new(local(n), server.listening()[0]));
    let connection = client.connect(ConnectOptions::over(paths.to_vec(), config)).await.unwrap();
    assert!(!client.shared().lock().link_layer.is_wanted(), "no thread for who does not ask");
    let report = FrameErrors::counted(3, 40);
    assert!(connection.link_report(&local(2), report) && !connection.link_report(&local(3), report));
    let seen: Vec<_> = connection.stats().paths.iter().map(|p| (p.local.clone(), p.stats.frame_errors)).collect();
    assert_eq!(seen, [("127.0.0.1".to_owned(), None), ("127.0.0.2".to_owned(), Some(report))]);
}

#[test]
fn the_thread_ends_with_the_endpoint() {
    let client = Endpoint::client(ClientConfig::default()).unwrap();
    let shared = Arc::downgrade(client.shared());
    let places = Mutex::new(vec![place(0, 3)]);
    let mut r = Reader::new(Some(with_stations(vec![counted(1, 0, 0); 50])));
    let thread = std::thread::spawn(move || r.run(&shared, &places));
    drop(client);
    thread.join().expect("it ends");
}
