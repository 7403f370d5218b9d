//! QUIC (quinn) as a reference from another field: encrypted, with segmentation offload.
use crate::util::*;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::Arc;
use std::time::Instant;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

async fn quic_pair() -> (quinn::Endpoint, quinn::Endpoint, quinn::Connection, quinn::Connection) {
    let ck = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(ck.key_pair.serialize_der().into());
    let mut tc = quinn::TransportConfig::default();
    tc.initial_mtu(1200).mtu_discovery_config(None);
    let tc = Arc::new(tc);
    let mut sc = quinn::ServerConfig::with_single_cert(vec![ck.cert.der().clone()], key).unwrap();
    sc.transport_config(tc.clone());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(ck.cert.der().clone()).unwrap();
    let mut cc = quinn::ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    cc.transport_config(tc);
    let s = quinn::Endpoint::server(sc, "127.0.0.1:0".parse().unwrap()).unwrap();
    let c = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = s.local_addr().unwrap();
    let s2 = s.clone();
    let acc = tokio::spawn(async move { s2.accept().await.unwrap().await.unwrap() });
    let cn = c.connect_with(cc, addr, "localhost").unwrap().await.unwrap();
    (c, s, cn, acc.await.unwrap())
}

pub fn quic_bulk(test: &str, size: usize, total: usize) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    runtime().block_on(async move {
        let (_c, _s, a, b) = quic_pair().await;
        let n = total / size;
        let (c0, w0) = (cpu_us(), Instant::now());
        let rx = tokio::spawn(async move {
            let mut s = b.accept_uni().await.unwrap();
            let mut by = 0;
            while let Some(c) = s.read_chunk(1 << 16, true).await.unwrap() {
                by += c.bytes.len();
            }
            by
        });
        let mut s = a.open_uni().await.unwrap();
        let msg = vec![0x5au8; size];
        for _ in 0..n {
            s.write_all(&msg).await.unwrap();
        }
        s.finish().unwrap();
        let by = rx.await.unwrap();
        let (c1, w) = (cpu_us(), w0.elapsed().as_secs_f64());
        assert_eq!(by, n * size);
        bulk_rows(test, "quinn", "udp", size, by as f64, n as f64, (c1.0 - c0.0, c1.1 - c0.1), w);
        std::process::exit(0);
    });
}

pub fn quic_ping(size: usize, rounds: usize) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    runtime().block_on(async move {
        let (_c, _s, a, b) = quic_pair().await;
        let done = Arc::new(AtomicUsize::new(0));
        tokio::spawn(async move {
            let (mut tx, mut rx) = b.accept_bi().await.unwrap();
            let mut buf = vec![0u8; size];
            while rx.read_exact(&mut buf).await.is_ok() {
                tx.write_all(&buf).await.unwrap();
            }
        });
        let (mut tx, mut rx) = a.open_bi().await.unwrap();
        let mut buf = vec![1u8; size];
        let mut lat = Vec::with_capacity(rounds);
        let c0 = cpu();
        for _ in 0..rounds {
            let t = Instant::now();
            tx.write_all(&buf).await.unwrap();
            rx.read_exact(&mut buf).await.unwrap();
            lat.push(t.elapsed().as_nanos() as u64);
        }
        done.store(1, Relaxed);
        lat_rows("pingpong", "quinn", "udp", size, &mut lat, cpu() - c0);
        std::process::exit(0);
    });
}
