//! Captures of real transfers, read by an independent dissector.

mod common;

use anabranch_net::{ConnectOptions, Endpoint, SendOptions, ServerConfig};
use common::{client_with, config, from, within};
use std::path::Path;
use std::process::Command;

/// Runs a transfer with a capture on each side; the paths of the files.
async fn captured(dir: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
    let (near_file, far_file) = (dir.join("near.pcapng"), dir.join("far.pcapng"));
    let mut c = ServerConfig::new("127.0.0.1:9899".parse().unwrap(), config("cmt"));
    // The registered port, so that a dissector needs no hint; any other when it is taken.
    c.pcap = Some(far_file.clone());
    let server = Endpoint::server(c.clone()).unwrap_or_else(|_| {
        c.listen = vec!["127.0.0.1:0".parse().unwrap()];
        Endpoint::server(c).unwrap()
    });
    let to = server.listening()[0];
    let client = client_with(|c| c.pcap = Some(near_file.clone())).unwrap();
    let options = ConnectOptions::over(vec![from("127.0.0.1", to), from("127.0.0.2", to)], config("cmt"));
    let (near, far) = within(10, async { tokio::join!(client.connect(options), server.accept()) }).await;
    let (near, far) = (near.unwrap(), far.unwrap());
    let read = tokio::spawn(async move { while let Ok(Some(_)) = far.recv().await {} });
    for i in 0..200_u32 {
        near.send(SendOptions::default(), vec![i as u8; 1 + i as usize * 20].into()).await.unwrap();
    }
    within(10, near.shutdown()).await;
    within(10, read).await.unwrap();
    drop(near);
    within(10, async { tokio::join!(client.wait_idle(), server.wait_idle()) }).await;
    let stats = client.stats();
    assert_eq!(stats.not_captured, 0);
    // The endpoints still live: idle is enough for the file to be complete.
    let packets = enhanced_packets(&std::fs::read(&near_file).unwrap());
    assert_eq!(packets as u64, stats.packets_sent + stats.packets_received);
    (near_file, far_file)
}

/// Packet blocks of a capture; panics when a block's two lengths differ.
fn enhanced_packets(mut bytes: &[u8]) -> usize {
    let at = |b: &[u8], i: usize| u32::from_le_bytes(b[i..i + 4].try_into().unwrap());
    let mut n = 0;
    while !bytes.is_empty() {
        let len = at(bytes, 4) as usize;
        assert_eq!(at(bytes, len - 4) as usize, len);
        n += usize::from(at(bytes, 0) == 6);
        bytes = &bytes[len..];
    }
    n
}

#[tokio::test]
async fn a_dissector_finds_nothing_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let (near, far) = captured(dir.path()).await;
    if Command::new("tshark").arg("-v").output().is_err() {
        eprintln!("SKIPPED a_dissector_finds_nothing_wrong: no tshark");
        return;
    }
    for file in [near, far] {
        let run = |filter: &str| {
            let mut c = Command::new("tshark");
            c.args(["-d", "udp.port==9899,sctp", "-o", "sctp.checksum:CRC 32c"]);
            c.args(["-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-Y", filter, "-r"]);
            let out = c.arg(&file).output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let wrong = "_ws.malformed || (sctp && sctp.checksum.status != \"Good\") || udp.checksum.status == \"Bad\" || \
                     ip.checksum.status == \"Bad\"";
        assert_eq!(run(wrong), Vec::<String>::new());
        let data = run("sctp.chunk_type == 0");
        if data.is_empty() {
            eprintln!(
                "SKIPPED a_dissector_finds_nothing_wrong in part: port 9899 was taken, so that tshark cannot tell SCTP"
            );
            continue;
        }
        assert!(data.len() > 100, "{} packets with DATA", data.len());
        assert_eq!(run("sctp.chunk_type == 1").len(), 1, "one INIT");
        assert!(run("sctp.chunk_type == 0xc1").len() == 1, "one ASCONF");
    }
}
