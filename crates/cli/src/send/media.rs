//! A transport stream as frames with class and deadline.

use super::sending::Pump;
use crate::exit::{Failure, warning};
use crate::input::detect::HEAD;
use crate::input::{Chunk, Input};
use crate::session::{End, ppid};
use crate::stop::Cause;
use anabranch_media::{HEADER_LEN, Packetiser, PacketiserConfig, Submission};
use anabranch_net::{Alarm, Duration, Instant, SendOptions, now};
use bytes::Bytes;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Pieces of the input that are sent in one go.
const TOGETHER: usize = 64;

/// Pause between two looks at how large a packet the paths carry.
const LOOK: Duration = Duration::from_millis(100);

/// What a datagram of MPEG-TS usually holds, which fits an Ethernet's packets.
const USUAL: usize = HEADER_LEN + 7 * 188;

/// Bytes of a message where a packet carries so many: as many as players expect, if that is possible everywhere.
fn message_size(room: usize) -> usize {
    if room >= USUAL { USUAL } else { PacketiserConfig::default().max_message }
}

/// Sends until the input ends or the session is to end.
pub(super) async fn pump(pump: &Pump, input: &mut Input) -> Result<End, Failure> {
    let config = PacketiserConfig { strip_null: pump.strip_null, ..PacketiserConfig::default() };
    let mut sender = Sender {
        packetiser: Packetiser::new(config),
        pump,
        waiting: VecDeque::new(),
        outgoing: pump.link.streams().0,
        head: Vec::new(),
        warned: false,
        bytes: 0,
        sized: Instant::ZERO,
    };
    let mut failed = None;
    let mut alarm = Alarm::new().map_err(Failure::network)?;
    input.gather(pump.latency);
    let cause = loop {
        // Pieces of a stream that gathers tell the time.
        if !input.gathers() {
            alarm.set(sender.packetiser.deadline(), now());
        }
        tokio::select! {
            biased;
            cause = pump.stop.wait() => break Some(cause),
            chunk = input.next() => match chunk {
                Ok(Some(chunk)) => {
                    sender.take(&chunk, input);
                    // What came together leaves together.
                    for _ in 0..TOGETHER {
                        match at_once(input.next()) {
                            Some(Ok(Some(chunk))) => sender.take(&chunk, input),
                            Some(Err(failure)) => {
                                failed = Some(failure);
                                break;
                            }
                            Some(Ok(None)) | None => break,
                        }
                    }
                    sender.packetiser.on_timeout(now());
                    sender.send_all().await?;
                    if failed.is_some() {
                        break None;
                    }
                }
                Ok(None) => break None,
                Err(failure) => {
                    failed = Some(failure);
                    break None;
                }
            },
            () = alarm.rung() => {
                sender.packetiser.on_timeout(now());
                sender.send_all().await?;
            }
        }
    };
    if let Some(Cause::Lost(failure)) = cause {
        return Err(failure);
    }
    // A part of a packet at the end is no damage.
    sender.warn_of_damage(input);
    let end = sender.packetiser.finish(now());
    sender.send_all().await?;
    // The end of a stream that was to last so long is no interruption.
    let interrupted = cause.is_some_and(|c| c != Cause::Time);
    let end = End { interrupted, messages: end.messages, frames: end.frames, bytes: sender.bytes };
    failed.map_or(Ok(end), Err)
}

/// What `future` has ready, if anything; it must not mind being dropped.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// What the engine is to know of a message.
fn options(Submission { stream, unordered, deadline, class, group }: Submission) -> SendOptions {
    SendOptions { stream, unordered, ppid: ppid::MEDIA, deadline, class, group: Some(group), ..SendOptions::default() }
}

struct Sender<'a> {
    packetiser: Packetiser,
    pump: &'a Pump,
    /// Streams there are to send on.
    outgoing: u16,
    /// Messages on their way into the connection.
    waiting: VecDeque<(SendOptions, Bytes)>,
    /// The first bytes, which tell what the input is.
    head: Vec<u8>,
    warned: bool,
    bytes: u64,
    /// When it was last looked what the paths carry in one packet.
    sized: Instant,
}

impl Sender<'_> {
    fn take(&mut self, chunk: &Chunk, input: &Input) {
        if chunk.at.since(self.sized) >= LOOK {
            self.sized = chunk.at;
            self.packetiser.set_max_message(message_size(self.pump.link.max_payload()));
        }
        self.packetiser.push(chunk.at, &chunk.bytes);
        if self.head.len() < HEAD {
            self.head.extend_from_slice(&chunk.bytes);
        } else {
            self.warn_of_damage(input);
        }
    }

    fn warn_of_damage(&mut self, input: &Input) {
        if self.packetiser.stats().raw_bytes == 0 || std::mem::replace(&mut self.warned, true) {
            return;
        }
        let film = input
            .film(&self.head)
            .map_or(String::new(), |film| format!("; it is {}, and this streams it: {}", film.kind, film.streamed));
        warning(&format!(
            "the input is no clean transport stream; what is damaged passes as it is, as one class{film}"
        ));
    }

    async fn send_all(&mut self) -> Result<(), Failure> {
        let (mut messages, mut bytes, mut limited) = (0, 0, 0);
        let outgoing = self.outgoing;
        while let Some(m) = self.packetiser.poll_message() {
            bytes += m.payload().len() as u64;
            messages += 1;
            let said = m.submission(self.pump.latency.into()).on(outgoing);
            let whole = options(said);
            let options = self.pump.limits.limit(&m, said, options(said));
            limited += u64::from(options != whole);
            self.waiting.push_back((options, m.message));
        }
        if messages == 0 {
            return Ok(());
        }
        let expired = tokio::select! {
            biased;
            expired = self.pump.link.send_many(&mut self.waiting) => expired?,
            failure = self.pump.stop.lost() => return Err(failure),
        };
        self.bytes += bytes;
        let frames = self.pump.before.frames + self.packetiser.end().frames;
        self.pump.progress.update(|row| {
            row.messages += messages;
            row.bytes += bytes;
            row.frames = frames;
            row.limited += limited;
            row.expired += expired as u64;
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_lab::node::Delivery;
    use anabranch_media::Class;

    #[test]
    fn messages_are_as_large_as_datagrams_usually_are_where_packets_carry_them() {
        for (room, packets) in [(300, 6), (1_172, 6), (1_333, 6), (1_334, 7), (1_424, 7), (8_900, 7)] {
            let config = PacketiserConfig { max_message: message_size(room), ..PacketiserConfig::default() };
            assert_eq!(config.full_payload(), packets * 188, "{room}");
        }
    }

    /// What is measured in virtual time is what the program does.
    #[test]
    fn the_lab_sends_as_we_do() {
        let (latency, at) = (Duration::from_millis(300), Instant::from_millis(40));
        let video = Delivery::of_video(Some(latency));
        for (i, class) in Class::ALL.into_iter().enumerate() {
            let frame = 7 + i as u32;
            let lab = video.options(Some((class, frame)), 0, at);
            let ours = options(Submission::new(class, frame, at, Some(latency)));
            assert_eq!(SendOptions { ppid: ours.ppid, ..lab }, ours);
            assert_eq!((ours.class, ours.group, ours.deadline), (i as u8, Some(frame), Some(at + latency)));
        }
    }
}
