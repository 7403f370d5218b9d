//! INIT: answered by an INIT ACK whose cookie holds all there is to know. Nothing is kept, and an association that is
//! there already does not change (§5.1 B, §5.2.1, §5.2.2).

use super::{AssocId, Endpoint};
use crate::association::handshake::announced::{Announced, announce};
use crate::association::handshake::own_parameters;
use crate::association::handshake::restart::InitAnswer;
use crate::association::receive::Source;
use crate::auth::AuthParams;
use crate::cookie::{Cookie, Features};
use crate::parity_kind::ParityKind;
use anabranch_base::{Duration, Instant, Tsn};
use anabranch_wire::{Cause, Chunk, CommonHeader, Encode, InitFields, InitOut, Packet, Parameter, RawChunk};
use std::net::IpAddr;

/// What our answer says of us.
struct Ourselves {
    tag: u32,
    initial_tsn: Tsn,
    auth: AuthParams,
    ties: (u32, u32),
    /// The association whose settings are announced; none for a new one.
    of: Option<AssocId>,
}

impl Endpoint {
    pub(super) fn on_init(&mut self, now: Instant, from: Source, packet: &Packet<'_>, raw: &RawChunk<'_>) {
        let Ok(Chunk::Init(init)) = raw.decode() else { return };
        let f = init.fields;
        if f.tag == 0 {
            return;
        }
        self.jar.rotate_if_due(now, self.entropy.as_mut());
        let h = packet.header;
        let back = CommonHeader { src_port: h.dst_port, dst_port: h.src_port, vtag: f.tag };
        let mut announced = Announced::read(init.params);
        if let Some(cause) = impossible(f, &announced) {
            return self.replies.abort(from, back, &[cause]);
        }
        let existing = self.find_by_addresses(from, &announced.addresses, h.src_port);
        let ourselves = match existing {
            Some(id) => match self.as_we_are(id, from, &announced.addresses) {
                Ok(o) => o,
                Err(None) => return,
                Err(Some(added)) => return self.replies.abort(from, back, &[Cause::RestartNewAddresses(&added)]),
            },
            None if !self.config.accept => return self.replies.abort(from, back, &[]),
            None if self.slots.len() >= self.config.max_associations => {
                return self.replies.abort(from, back, &[Cause::OutOfResource]);
            }
            None => self.as_new(),
        };
        let of = ourselves.of.and_then(|id| self.slots.get(&id)).map(|s| &s.association.config);
        announced.own = own_parameters::read(init.params, of.unwrap_or(&self.accepted));
        self.answer_init(now, from, back, f, &announced, &ourselves);
    }

    fn as_new(&mut self) -> Ourselves {
        Ourselves {
            tag: self.new_tag(),
            initial_tsn: Tsn(self.entropy.u32()),
            auth: AuthParams::new(self.entropy.as_mut()),
            ties: (0, 0),
            of: None,
        }
    }

    /// An association with this peer exists. `Err` with the parameters of addresses that the INIT would add, or with
    /// nothing when there is no answer to it.
    fn as_we_are(&mut self, id: AssocId, from: Source, listed: &[IpAddr]) -> Result<Ourselves, Option<Vec<u8>>> {
        let Some(s) = self.slots.work_on(&id) else { return Err(None) };
        match s.association.answer_to_init(from, listed) {
            InitAnswer::SameTag { ties } => Ok(Ourselves {
                tag: s.association.handshake.local_tag(),
                initial_tsn: s.association.handshake.local_initial(),
                auth: s.association.handshake.local_auth().clone(),
                ties,
                of: Some(id),
            }),
            InitAnswer::NewTag { ties } => Ok(Ourselves { ties, of: Some(id), ..self.as_new() }),
            InitAnswer::NewAddresses(added) => {
                let mut list = Vec::new();
                added.into_iter().for_each(|ip| Parameter::from(ip).encode(&mut list));
                Err(Some(list))
            }
            InitAnswer::None => {
                // SHUTDOWN ACK leaves again (§9.2).
                self.wake(id);
                Err(None)
            }
        }
    }

    fn answer_init(
        &mut self,
        now: Instant,
        from: Source,
        back: CommonHeader,
        f: InitFields,
        announced: &Announced<'_>,
        ourselves: &Ourselves,
    ) {
        let existing = ourselves.of.and_then(|id| self.slots.get(&id)).map(|s| &s.association.config);
        let config = existing.unwrap_or(&self.accepted);
        let unsummed = announced.takes_zero_checksum(config);
        // A peer for which our cookies grow old too soon may have twice the time (§3.3.2.1.3).
        let longer = announced.preservative.unwrap_or(Duration::ZERO).min(self.config.cookie_life);
        let cookie = Cookie {
            created: now,
            lifespan: self.config.cookie_life + longer,
            local_tag: ourselves.tag,
            peer_tag: f.tag,
            local_tie: ourselves.ties.0,
            peer_tie: ourselves.ties.1,
            local_port: back.src_port,
            peer_port: back.dst_port,
            local_initial_tsn: ourselves.initial_tsn,
            peer_initial_tsn: f.initial_tsn,
            peer_rwnd: f.a_rwnd,
            outbound_streams: f.inbound_streams,
            inbound_streams: f.outbound_streams,
            remote: from.remote,
            local: from.local,
            listed: announced.addresses.clone(),
            features: Features {
                forward_tsn: announced.forward_tsn,
                asconf: announced.asconf,
                packet_count: announced.packet_count,
                time_stamps: announced.time_stamps,
                parity: announced.parity,
                parity_sums: announced.parity_read == Some(ParityKind::Sums),
                parity_checks: announced.parity_read == Some(ParityKind::CheckBits),
                reconfig: announced.reconfig,
                interleaving: announced.interleaving,
                i_forward_tsn: announced.i_forward_tsn,
                nr_sack: announced.nr_sack,
                ecn: announced.ecn,
                packet_drop: announced.packet_drop,
                zero_checksum: unsummed,
                unsummed_to_us: config.extensions.error_detection.is_some(),
                ..Features::default()
            },
            local_random: if announced.auth.is_some() { ourselves.auth.random } else { Default::default() },
            peer_auth: announced.auth.clone(),
            adaptation: announced.adaptation,
            own: announced.own.clone(),
        };
        let [mut sealed, mut params] = core::mem::take(&mut self.rooms);
        sealed.clear();
        params.clear();
        self.jar.seal(&cookie, &mut sealed);
        announce(config, &ourselves.auth, Some((announced, from.remote.ip())), &mut params);
        // What varies in length comes last, as other implementations have it.
        let room = config.mtu.packet_size.saturating_sub(INIT_ACK_LEN + 4 + sealed.len());
        report_unknown(&announced.report, room, &mut params);
        Parameter::Cookie(&sealed).encode(&mut params);
        let fields = InitFields {
            tag: cookie.local_tag,
            a_rwnd: u32::try_from(config.limits.receive_buffer.max(1_500)).unwrap_or(u32::MAX),
            outbound_streams: config.limits.outbound_streams.max(1).min(f.inbound_streams),
            inbound_streams: config.limits.inbound_streams.max(1),
            initial_tsn: cookie.local_initial_tsn,
        };
        self.replies.push_as(from, back, &InitOut { ack: true, fields, params: &params }, unsummed);
        self.rooms = [sealed, params];
    }
}

/// Common header, chunk header and fixed fields.
const INIT_ACK_LEN: usize = 32;

/// Why no association can come of an INIT (§3.3.2, §5.1).
fn impossible<'a>(f: InitFields, announced: &Announced<'a>) -> Option<Cause<'a>> {
    if let Some(name) = announced.host_name {
        return Some(Cause::UnresolvableAddress(name));
    }
    if announced.broken {
        return Some(Cause::ProtocolViolation(b"a parameter without its format"));
    }
    let invalid = f.a_rwnd < 1_500 || f.outbound_streams == 0 || f.inbound_streams == 0;
    invalid.then_some(Cause::InvalidParameter)
}

/// Appends "Unrecognized Parameter" for each unknown parameter that still fits (§3.2.2).
fn report_unknown(mut list: &[u8], room: usize, params: &mut Vec<u8>) {
    while let Some((one, rest)) = split_parameter(list) {
        if params.len() + 4 + one.len().next_multiple_of(4) <= room {
            Parameter::Unrecognized(one).encode(params);
        }
        list = rest;
    }
}

/// The first of several padded parameters, without its padding.
fn split_parameter(b: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = usize::from(u16::from_be_bytes([*b.get(2)?, *b.get(3)?]));
    Some((b.get(..len)?, b.get(len.next_multiple_of(4)..).unwrap_or(&[])))
}
