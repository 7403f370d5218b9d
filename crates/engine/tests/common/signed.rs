//! An accepted association with a peer that signs, whose ASCONF is written by hand.
#![allow(dead_code, reason = "each test file uses its part")]

use super::keys::{association_key, key_vector, signed};
use super::raw::*;
use super::*;
use anabranch_engine::{AssocConfig, AssocId, ListedAddress, LocalId};
use anabranch_policy::view::PathState;
use anabranch_wire::{AsconfAckOut, AsconfOut, Causes, Chunk, Parameter, Params, kind};
use std::net::{IpAddr, Ipv4Addr};

pub const WILDCARD: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

pub fn ours(i: u16) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1 + i as u8))
}

pub fn offer(more: &[u8]) -> Vec<u8> {
    offer_of(&[kind::ASCONF, kind::ASCONF_ACK], more)
}

/// What a peer says that wants `chunks` authenticated.
pub fn offer_of(chunks: &[u8], more: &[u8]) -> Vec<u8> {
    let list = [
        bytes(&Parameter::Random(&[0x55; 32])),
        bytes(&Parameter::ChunkList(chunks)),
        bytes(&Parameter::HmacAlgo(&[0, 3, 0, 1])),
        bytes(&Parameter::SupportedExtensions(&[kind::AUTH, kind::ASCONF, kind::ASCONF_ACK])),
        more.to_vec(),
    ];
    list.concat()
}

/// An accepted association with a peer that offered `theirs`, and the key vectors of us and of it.
pub fn accepted_with_keys(config: &AssocConfig, theirs: &[u8]) -> (Raw, AssocId, [Vec<u8>; 2]) {
    let mut r = Raw::with(config, |_| {});
    r.give_tagged(0, &[&init(init_fields(PEER_TAG), theirs)]);
    let answer = r.take_one();
    let (fields, params) = init_of(&answer);
    (r.tag, r.first_tsn) = (fields.tag, fields.initial_tsn);
    r.echo(&cookie_of(&answer));
    let id = r.only();
    (r, id, [key_vector(&params), key_vector(theirs)])
}

/// An accepted association with a peer that signs.
pub struct Signed {
    pub r: Raw,
    pub id: AssocId,
    pub key: Vec<u8>,
    pub serial: u32,
}

impl Signed {
    /// The peer listed `more` of its addresses; we have two and list both.
    pub fn new(more: &[u8]) -> Signed {
        let addresses = (0..2).map(|i| ListedAddress { local: LocalId(i), ip: ours(i) }).collect();
        Signed::with(&changed(assoc_config("sctp"), |c| c.addresses.listed = addresses), more)
    }

    pub fn with(config: &AssocConfig, more: &[u8]) -> Signed {
        let (r, id, [ours, theirs]) = accepted_with_keys(config, &offer(more));
        let key = association_key(&[], &ours, &theirs);
        let mut s = Signed { r, id, key, serial: PEER_TSN.0 };
        // All paths are confirmed.
        for _ in 0..40 {
            for sent in s.r.take() {
                if sent.kinds().contains(&kind::HEARTBEAT) {
                    s.r.answer_heartbeat(&sent);
                }
            }
            s.r.run_for(ms(100));
        }
        s.r.take();
        s.r.events.clear();
        s
    }

    pub fn chunk(&self, serial: u32, params: &[Parameter<'_>]) -> Vec<u8> {
        let params: Vec<u8> = params.iter().flat_map(bytes).collect();
        bytes(&AsconfOut { serial, address: WILDCARD, params: &params })
    }

    /// The next ASCONF of the peer, signed, from its address `from`; what is sent for it.
    pub fn ask(&mut self, from: u8, params: &[Parameter<'_>]) -> Vec<Sent> {
        let chunk = self.chunk(self.serial, params);
        self.serial = self.serial.wrapping_add(1);
        self.give(from, &chunk)
    }

    pub fn give(&mut self, from: u8, chunk: &[u8]) -> Vec<Sent> {
        let (tag, packet) = (self.r.tag, signed(0, &self.key, &[chunk]));
        self.r.give_from(peer(from), tag, &[&packet]);
        self.r.take()
    }

    /// Remote addresses and states of the paths from interface 0.
    pub fn paths(&self) -> Vec<(IpAddr, PathState)> {
        let a = self.r.endpoint.association(self.id).expect("alive");
        a.paths().filter(|(_, p)| p.local == 0).map(|(_, p)| (p.remote.ip(), p.state)).collect()
    }

    pub fn answer_asconf(&mut self, serial: u32, params: &[u8]) {
        let ack = bytes(&AsconfAckOut { serial, params });
        let packet = signed(0, &self.key, &[&ack]);
        self.r.give(&[&packet]);
    }
}

/// Correlation ids with the cause of each refusal, none where it was carried out.
pub fn answers(sent: &[Sent]) -> Vec<(u32, Option<u16>)> {
    let ack =
        sent.iter().flat_map(|s| s.packet().chunks().flatten().map(|c| (c.kind, c.value.to_vec())).collect::<Vec<_>>());
    let ack = ack.into_iter().find(|c| c.0 == kind::ASCONF_ACK).expect("an answer").1;
    let of = |p| match p {
        Parameter::AsconfSuccess { correlation } => Some((correlation, None)),
        Parameter::AsconfErrorCause { correlation, causes } => {
            let first = Causes::new(causes).iter().next().expect("a cause").expect("framed");
            Some((correlation, Some(first.code())))
        }
        _ => None,
    };
    Params::new(&ack[4..]).iter().flatten().filter_map(of).collect()
}

pub fn add(correlation: u32, address: IpAddr) -> Parameter<'static> {
    Parameter::AsconfAdd { correlation, address }
}
pub fn delete(correlation: u32, address: IpAddr) -> Parameter<'static> {
    Parameter::AsconfDelete { correlation, address }
}
pub fn prefer(correlation: u32, address: IpAddr) -> Parameter<'static> {
    Parameter::AsconfSetPrimary { correlation, address }
}

/// Our ASCONF in what was sent: its serial and requests.
pub fn asked(sent: &[Sent]) -> Vec<(Sent, u32, Vec<u8>)> {
    let of = |s: &Sent| {
        s.chunks().into_iter().find_map(|c| match c {
            Chunk::Asconf(a) => Some((s.clone(), a.serial, a.params.raw().to_vec())),
            _ => None,
        })
    };
    sent.iter().filter_map(of).collect()
}
