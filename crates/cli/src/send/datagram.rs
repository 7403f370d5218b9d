//! Each datagram a message.

use super::sending::Pump;
use crate::exit::Failure;
use crate::input::Input;
use crate::session::{DATA_STREAM, End, ppid};
use crate::stop::Cause;
use anabranch_net::SendOptions;
use bytes::Bytes;

/// Sends until the session is to end.
pub(super) async fn pump(pump: &Pump, input: &mut Input) -> Result<End, Failure> {
    let mut end = End::default();
    loop {
        let chunk = tokio::select! {
            biased;
            cause = pump.stop.wait() => match cause {
                Cause::Lost(failure) => return Err(failure),
                cause => {
                    end.interrupted = cause != Cause::Time;
                    return Ok(end);
                }
            },
            chunk = input.next() => chunk?,
        };
        let Some(chunk) = chunk else { return Ok(end) };
        let deadline = (!pump.latency.is_zero()).then(|| chunk.at + pump.latency.into());
        // A message needs at least one byte.
        let empty = chunk.bytes.is_empty();
        let options = SendOptions {
            stream: DATA_STREAM,
            unordered: !pump.ordered,
            ppid: if empty { ppid::EMPTY_DATAGRAM } else { ppid::DATAGRAM },
            deadline,
            class: 0,
            ..SendOptions::default()
        };
        let len = chunk.bytes.len() as u64;
        let payload = if empty { Bytes::from_static(&[0]) } else { chunk.bytes };
        let sent = tokio::select! {
            biased;
            sent = pump.link.send(options, payload) => sent?,
            cause = pump.stop.wait() => {
                if let Cause::Lost(failure) = cause {
                    return Err(failure);
                }
                end.interrupted = cause != Cause::Time;
                return Ok(end);
            }
        };
        end.messages += 1;
        end.bytes += len;
        pump.progress.update(|row| {
            row.messages += 1;
            row.bytes += len;
            row.expired += u64::from(!sent);
        });
    }
}
