//! A byte stream, reliable and in order.

use super::sending::Pump;
use crate::exit::Failure;
use crate::input::Input;
use crate::session::{DATA_STREAM, End, ppid};
use crate::stop::Cause;
use anabranch_net::SendOptions;

/// Sends until the input ends or the session is to end.
pub(super) async fn pump(pump: &Pump, input: &mut Input) -> Result<End, Failure> {
    let options = SendOptions { stream: DATA_STREAM, ppid: ppid::BYTES, class: 0, ..SendOptions::default() };
    let mut end = End::default();
    loop {
        let step = async {
            let Some(chunk) = input.next().await? else { return Ok::<_, Failure>(None) };
            let len = chunk.bytes.len() as u64;
            pump.link.send(options, chunk.bytes).await?;
            Ok(Some(len))
        };
        let sent = tokio::select! {
            biased;
            cause = pump.stop.wait() => match cause {
                Cause::Lost(failure) => return Err(failure),
                cause => {
                    end.interrupted = true;
                    if cause != Cause::Time {
                        take_back(pump, &mut end);
                    }
                    return Ok(end);
                }
            },
            sent = step => sent?,
        };
        let Some(len) = sent else { return Ok(end) };
        end.messages += 1;
        end.bytes += len;
        pump.progress.update(|row| {
            row.messages += 1;
            row.bytes += len;
        });
    }
}

/// The user waits for the end: what has not left the send buffer, seconds of it on a slow link, stays here.
fn take_back(pump: &Pump, end: &mut End) {
    let (messages, bytes) = pump.link.discard_unsent(DATA_STREAM);
    end.messages -= messages;
    end.bytes -= bytes;
    pump.progress.update(|row| {
        row.messages -= messages;
        row.bytes -= bytes;
    });
}
