//! Transport streams whose packets run on from datagram to datagram, as ffmpeg writes them where no packet size is named
//! (1,472 bytes, no multiple of 188).

use crate::ts::{PACKET_LEN, SYNC_BYTE};

/// Headers in one datagram that may be chance no longer: it is worth a look at the next one.
const LIKELY: usize = 3;
/// Headers in one datagram of which some may be damaged, and how many.
const MANY: usize = 5;
const DAMAGED: usize = 2;
/// Headers in datagrams that continue each other which settle it.
const SURE: usize = 8;
/// Packets with a time in front (M2TS), and with parity behind.
const WIDER: [usize; 2] = [192, 204];

/// What a datagram is to those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// They are one transport stream for sure.
    Sure,
    /// It may be part of one.
    Perhaps,
    /// It is not.
    Nothing,
}

/// Follows packets across datagrams.
#[derive(Default, Debug)]
pub struct RunOn {
    /// Where in the next datagram a packet begins, while there is a series.
    next: Option<usize>,
    /// Headers and datagrams of the series.
    headers: usize,
    datagrams: usize,
    /// Some datagram had so many headers by itself.
    most: usize,
    broken: bool,
}

impl RunOn {
    /// Looks at the next datagram: are this one and those before it a transport stream for sure?
    pub fn is_sure(&mut self, datagram: &[u8]) -> bool {
        self.push(datagram) == Found::Sure
    }

    /// Looks at the next datagram.
    pub(super) fn push(&mut self, datagram: &[u8]) -> Found {
        let continues = self.next.filter(|from| {
            let (valid, all) = headers(datagram, *from, PACKET_LEN);
            valid == all || fits(valid, all)
        });
        let Some(from) = continues.or_else(|| begin(datagram, PACKET_LEN)) else {
            self.broken |= self.next.take().is_some();
            return Found::Nothing;
        };
        let (valid, _) = headers(datagram, from, PACKET_LEN);
        if continues.is_none() {
            self.broken |= self.next.is_some();
            (self.headers, self.datagrams) = (0, 0);
        }
        self.headers += valid;
        self.datagrams += 1;
        self.most = self.most.max(valid);
        let beyond = (datagram.len() + PACKET_LEN - from) % PACKET_LEN;
        self.next = Some((PACKET_LEN - beyond) % PACKET_LEN);
        if self.datagrams > 1 && self.headers >= SURE { Found::Sure } else { Found::Perhaps }
    }

    /// Has there been anything like a transport stream?
    pub(super) fn has_begun(&self) -> bool {
        self.most > 0
    }

    /// Nothing has contradicted it, and there are headers enough.
    pub(super) fn is_likely(&self) -> bool {
        !self.broken && self.most >= MANY
    }
}

/// The size of a transport stream's packets in a datagram or the head of a file, where they are larger than 188 bytes.
pub fn wider_packets(datagram: &[u8]) -> Option<usize> {
    WIDER.into_iter().find(|size| begin(datagram, *size).is_some_and(|from| headers(datagram, from, *size).0 >= MANY))
}

/// Where the first packet begins, if packets of this size fill the datagram.
fn begin(datagram: &[u8], size: usize) -> Option<usize> {
    (0..size.min(datagram.len())).find(|from| {
        let (valid, all) = headers(datagram, *from, size);
        valid == all && valid >= LIKELY || fits(valid, all)
    })
}

fn fits(valid: usize, all: usize) -> bool {
    valid >= MANY && all - valid <= DAMAGED
}

/// Of the places where packets begin, how many have a packet's header, and how many there are. A datagram full of `G`
/// has none: what follows a header (ISO 13818-1 §2.4.3.3, adaptation_field_control) is never 0.
fn headers(datagram: &[u8], from: usize, size: usize) -> (usize, usize) {
    let places = datagram.get(from..).unwrap_or(&[]).chunks(size);
    let all = places.len();
    let is_header = |p: &&[u8]| p.first() == Some(&SYNC_BYTE) && p.get(3).is_none_or(|b| b & 0x30 != 0);
    (places.filter(is_header).count(), all)
}
