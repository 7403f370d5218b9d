//! Lists the frames of a transport stream as the sender sees them: time stamp, class, messages, bytes.
//!
//! ```text
//! cargo run -p anabranch-media --example frames -- crates/media/clips/demo.ts
//! ```

use anabranch_base::Instant;
use anabranch_media::ts::{PACKET_LEN, Packet, PesHeader};
use anabranch_media::{OutMessage, Packetiser, PacketiserConfig};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: frames FILE.ts");
        return ExitCode::from(2);
    };
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::from(2);
        }
    };
    let mut packetiser = Packetiser::new(PacketiserConfig::default());
    packetiser.push(Instant::ZERO, &bytes);
    packetiser.finish(Instant::ZERO);
    let messages: Vec<OutMessage> = std::iter::from_fn(|| packetiser.poll_message()).collect();
    println!("frame,pts,class,messages,bytes");
    for frame in messages.chunk_by(|a, b| a.header.frame == b.header.frame) {
        let (Some(first), Some(last)) = (frame.first(), frame.last()) else { continue };
        let pts = presentation_time(&first.payload()).map_or(String::new(), |t| t.to_string());
        let class = if last.header.class_known { last.header.frame_class.to_string() } else { String::new() };
        let size: usize = frame.iter().map(|m| m.payload().len()).sum();
        println!("{},{pts},{class},{},{size}", first.header.frame, frame.len());
    }
    ExitCode::SUCCESS
}

/// Time stamp of the PES packet that begins with this payload, in 90 kHz ticks.
fn presentation_time(payload: &[u8]) -> Option<u64> {
    let packet = Packet::new(payload.get(..PACKET_LEN)?)?;
    let pes = PesHeader::parse(packet.payload()).filter(|_| packet.payload_unit_start())?;
    Some(pes.pts?.ticks)
}
