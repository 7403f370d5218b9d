//! A transport stream as frames with class and deadline.

use super::Pump;
use crate::exit::{Failure, warning};
use crate::input::{Chunk, Input};
use crate::session::{End, ppid};
use crate::stop::Cause;
use anabranch_media::{Packetiser, PacketiserConfig};
use anabranch_net::{Instant, SendOptions, StreamId, now, to_std};

/// Sends until the input ends or the session is to end.
pub(super) async fn pump(pump: &Pump, input: &mut Input) -> Result<End, Failure> {
    let config = PacketiserConfig { strip_null: pump.strip_null, ..PacketiserConfig::default() };
    let mut sender = Sender { packetiser: Packetiser::new(config), pump, warned: false, bytes: 0 };
    let mut failed = None;
    let cause = loop {
        let hold = sender.packetiser.deadline();
        tokio::select! {
            biased;
            cause = pump.stop.wait() => break Some(cause),
            chunk = input.next() => match chunk {
                Ok(Some(chunk)) => sender.take(&chunk).await?,
                Ok(None) => break None,
                Err(failure) => {
                    failed = Some(failure);
                    break None;
                }
            },
            () = sleep_until(hold) => {
                sender.packetiser.on_timeout(now());
                sender.send_all().await?;
            }
        }
    };
    if let Some(Cause::Lost(failure)) = cause {
        return Err(failure);
    }
    let end = sender.packetiser.finish(now());
    sender.send_all().await?;
    // The end of a stream that was to last so long is no interruption.
    let interrupted = cause.is_some_and(|c| c != Cause::Time);
    let end = End { interrupted, messages: end.messages, frames: end.frames, bytes: sender.bytes };
    failed.map_or(Ok(end), Err)
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(to_std(at).into()).await,
        None => std::future::pending().await,
    }
}

struct Sender<'a> {
    packetiser: Packetiser,
    pump: &'a Pump,
    warned: bool,
    bytes: u64,
}

impl Sender<'_> {
    async fn take(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        self.packetiser.push(chunk.at, &chunk.bytes);
        let stats = self.packetiser.stats();
        if stats.raw_bytes > 0 && !self.warned {
            self.warned = true;
            warning("the input is no clean transport stream; what is damaged passes as it is, as one class");
        }
        self.send_all().await
    }

    async fn send_all(&mut self) -> Result<(), Failure> {
        while let Some(m) = self.packetiser.poll_message() {
            let class = m.header.class.index();
            let bytes = m.payload().len() as u64;
            let options = SendOptions {
                stream: StreamId(class as u16),
                unordered: true,
                ppid: ppid::MEDIA,
                deadline: Some(m.ingest + self.pump.latency.into()),
                class: class as u8,
                group: Some(m.header.frame),
                immediate_ack: false,
                ..SendOptions::default()
            };
            let sent = tokio::select! {
                biased;
                sent = self.pump.link.send(options, m.message) => sent?,
                failure = self.pump.stop.lost() => return Err(failure),
            };
            self.bytes += bytes;
            let frames = self.packetiser.end().frames;
            self.pump.progress.update(|row| {
                row.messages += 1;
                row.bytes += bytes;
                row.frames = frames;
                row.expired += u64::from(!sent);
            });
        }
        Ok(())
    }
}
