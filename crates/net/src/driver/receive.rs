//! From the sockets to the engine.

use super::Driver;
use crate::clock;
use crate::locals::Slot;
use crate::socket::{self, Manner};
use anabranch_engine::LocalId;
use anabranch_wire::{Direction, Verify};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};

/// Bytes of one buffer: what receive offload can join.
const BUFFER: usize = 65_535;

/// Buffers for one call, shared by all sockets.
pub struct Buffers {
    bytes: Vec<u8>,
    metas: [RecvMeta; BATCH_SIZE],
}

impl Buffers {
    /// As many are filled by one call at most; with fewer, nothing is left to be read.
    pub const MOST: usize = BATCH_SIZE;

    /// Two megabytes: what receive offload can join, times what one call may bring.
    pub fn new() -> Self {
        Buffers { bytes: vec![0; BUFFER * BATCH_SIZE], metas: [RecvMeta::default(); BATCH_SIZE] }
    }

    /// One call; how many buffers were filled.
    pub(crate) fn fill_from(&mut self, socket: &UdpSocket, manner: &Manner) -> io::Result<usize> {
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
        for (slice, chunk) in slices.iter_mut().zip(self.bytes.chunks_mut(BUFFER)) {
            *slice = IoSliceMut::new(chunk);
        }
        manner.state.recv(socket.into(), &mut slices, &mut self.metas)
    }

    /// What the last call brought: where from, where to, and the datagrams.
    pub(crate) fn filled(&self, n: usize) -> impl Iterator<Item = (&RecvMeta, std::slice::Chunks<'_, u8>)> {
        self.metas.iter().zip(self.bytes.chunks(BUFFER)).take(n).map(|(meta, buffer)| {
            let used = buffer.get(..meta.len).unwrap_or(buffer);
            (meta, used.chunks(meta.stride.max(1)))
        })
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self::new()
    }
}

impl Driver {
    /// One batch from each socket that has something.
    pub(super) fn receive(&mut self) {
        for slot in 0..self.ports.len() {
            let Some(port) = self.ports.get_mut(slot) else { continue };
            if !std::mem::take(&mut port.ready) {
                continue;
            }
            let Some(io) = &port.io else { continue };
            match self.buffers.fill_from(&io.socket, &io.manner) {
                Ok(n) => {
                    port.read_failed(false);
                    self.hand_over(Slot(slot), n);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // Mostly what became of an earlier packet (ICMP). The socket goes on.
                Err(error) => {
                    tracing::debug!(%error, "receiving failed");
                    self.more = true;
                    if port.read_failed(true) {
                        self.give_up(slot, &error);
                    }
                }
            }
        }
    }

    /// Hands the datagrams of the last call to the engine.
    fn hand_over(&mut self, slot: Slot, n: usize) {
        let mut core = self.shared.lock();
        let now = clock::now();
        let shows_header =
            self.ports.get(slot.0).and_then(|p| p.io.as_ref()).is_some_and(|io| io.manner.shows_header());
        core.stats.receive_calls += 1;
        for (meta, datagrams) in self.buffers.filled(n) {
            let Some(local) = core.locals.arrival(slot, meta.dst_ip) else { continue };
            let from = core.transport.normal(meta.addr);
            if !core.from.is_empty() && !core.from.iter().any(|n| n.contains(&from.ip())) {
                core.stats.packets_refused += 1;
                continue;
            }
            for datagram in datagrams {
                let packet = if shows_header { socket::behind_ipv4_header(datagram) } else { Some(datagram) };
                let Some(datagram) = packet else { continue };
                core.stats.packets_received += 1;
                core.stats.bytes_received += datagram.len() as u64;
                if let Some(capture) = &mut self.capture
                    && !note_arrival(capture, &core.locals, local, (from, meta), datagram)
                {
                    core.stats.not_captured += 1;
                }
                if meta.ecn == Some(EcnCodepoint::Ce) {
                    core.engine.next_is_marked();
                }
                core.engine.handle_borrowed(now, local, from, datagram, Verify::Checksum);
            }
        }
    }

    /// A socket that only fails is dropped; a watched one will be opened again.
    fn give_up(&mut self, slot: usize, error: &io::Error) {
        let Some(port) = self.ports.get_mut(slot) else { return };
        tracing::warn!(%error, "a socket was given up");
        port.io = None;
        let local = port.local;
        self.local_down(local, &error.to_string());
    }
}

fn note_arrival(
    capture: &mut crate::capture::Capture,
    locals: &crate::locals::Locals,
    local: LocalId,
    (from, meta): (SocketAddr, &RecvMeta),
    datagram: &[u8],
) -> bool {
    let Some(side) = locals.get(local) else { return false };
    let to = SocketAddr::new(meta.dst_ip.unwrap_or(side.address.ip()), side.address.port());
    capture.packet(Direction::In, (local, &side.name), (from, to), datagram)
}
