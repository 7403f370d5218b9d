//! What both ends announced, and so use.

use super::announced::Announced;
use crate::association::sender::transmit::parity::PARITY_ROOM;
use crate::config::AssocConfig;
use crate::parity_kind::ParityKind;
use anabranch_policy::Asks;
use anabranch_wire::{DATA_HEADER_LEN, I_DATA_HEADER_LEN};
use std::ops::Deref;

/// Extensions that both ends can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::association) struct Features {
    pub forward_tsn: bool,
    pub asconf: bool,
    /// It reads how many packets a SACK answers.
    pub packet_count: bool,
    /// Both read time stamps beside SACKs.
    pub time_stamps: bool,
    /// Both take parity, and skip what is lost of it.
    pub parity: bool,
    /// It reads the kind of parity that is made here.
    pub makes_parity: bool,
    pub reconfig: bool,
    /// I-DATA in place of DATA.
    pub interleaving: bool,
    pub nr_sack: bool,
    /// It takes packets without a checksum.
    pub zero_checksum: bool,
    /// It reports marked packets, and we mark ours as ones that may be.
    pub ecn: bool,
    pub packet_drop: bool,
    pub adaptation: Option<u32>,
}

impl Features {
    /// By how many bytes the header of each chunk is longer than that of DATA.
    pub fn data_extra(&self) -> usize {
        if self.interleaving { I_DATA_HEADER_LEN - DATA_HEADER_LEN } else { 0 }
    }

    /// What messages leave free of a packet for parity that is made of them.
    pub fn spare(&self) -> usize {
        if self.makes_parity { PARITY_ROOM } else { 0 }
    }
}

impl AssocConfig {
    /// Payload of the largest message that leaves in one packet of `packet_size` bytes once an association with an end
    /// that is configured as `peer` is established: less than the headers leave where both ends have I-DATA or parity.
    /// Without what AUTH takes of each packet where an end has chunks of DATA signed.
    /// [`Association::max_payload`](crate::Association::max_payload) is what it is of one that there is.
    pub fn full_payload(&self, peer: &AssocConfig) -> usize {
        let theirs = &peer.extensions;
        let announced = Announced {
            forward_tsn: theirs.partial_reliability,
            parity: peer.takes_parity(),
            parity_read: ParityKind::read(peer.profile.asks()),
            interleaving: theirs.interleaving,
            i_forward_tsn: theirs.interleaving && theirs.partial_reliability,
            ..Announced::default()
        };
        let both = PeerFeatures::agreed(&announced, self, false);
        self.max_payload() - both.data_extra() - both.spare()
    }
}

/// The peer's [`Features`]: anyone in the association reads them, and they change here alone.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::association) struct PeerFeatures(Features);

impl Deref for PeerFeatures {
    type Target = Features;

    fn deref(&self) -> &Features {
        &self.0
    }
}

impl PeerFeatures {
    /// What INIT or INIT ACK announced, as far as we do it too. ASCONF needs an agreed way to sign (RFC 5061 §4.2.7).
    pub fn agreed(a: &Announced<'_>, config: &AssocConfig, signs: bool) -> Self {
        let ours = &config.extensions;
        let interleaving = a.interleaving && ours.interleaving;
        // With I-DATA it is I-FORWARD-TSN that skips (RFC 8260 §2.3).
        let forward_tsn = a.forward_tsn && ours.partial_reliability && (a.i_forward_tsn || !interleaving);
        let parity = a.parity && config.takes_parity() && forward_tsn;
        let made = ParityKind::made(config.profile.asks());
        PeerFeatures(Features {
            forward_tsn,
            asconf: a.asconf && ours.dynamic_addresses && signs,
            packet_count: a.packet_count,
            time_stamps: a.time_stamps && config.profile.asks().any(Asks::TIME_STAMPS),
            parity,
            makes_parity: parity && made.is_some() && made == a.parity_read,
            reconfig: a.reconfig && ours.stream_reconfiguration,
            interleaving,
            nr_sack: a.nr_sack && ours.nr_sack,
            zero_checksum: a.takes_zero_checksum(config),
            ecn: a.ecn && ours.ecn,
            packet_drop: a.packet_drop && ours.packet_drop_reports,
            adaptation: a.adaptation,
        })
    }

    /// It announced FORWARD-TSN and does not know it (RFC 3758 §3.3.1).
    pub fn forgot_forward_tsn(&mut self) {
        self.0.forward_tsn = false;
    }

    /// It announced ASCONF and does not know it, or nothing that it could ask for (RFC 5061 §5.1).
    pub fn forgot_asconf(&mut self) {
        self.0.asconf = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::registry::Profile;

    fn all_ours() -> AssocConfig {
        let mut c = AssocConfig::new(Profile::named("live").expect("a profile"));
        let e = &mut c.extensions;
        (e.stream_reconfiguration, e.interleaving, e.nr_sack, e.ecn) = (true, true, true, true);
        (e.packet_drop_reports, e.error_detection, e.parity) = (true, Some(1), true);
        c
    }

    fn all_theirs() -> Announced<'static> {
        Announced {
            forward_tsn: true,
            asconf: true,
            packet_count: true,
            time_stamps: true,
            parity: true,
            parity_read: Some(ParityKind::Sums),
            reconfig: true,
            interleaving: true,
            i_forward_tsn: true,
            nr_sack: true,
            ecn: true,
            packet_drop: true,
            error_detection: Some(1),
            ..Announced::default()
        }
    }

    #[test]
    fn an_extension_takes_both_ends() {
        let both = *PeerFeatures::agreed(&all_theirs(), &all_ours(), true);
        let all = Features {
            forward_tsn: true,
            asconf: true,
            packet_count: true,
            time_stamps: true,
            parity: true,
            makes_parity: false,
            reconfig: true,
            interleaving: true,
            nr_sack: true,
            zero_checksum: true,
            ecn: true,
            packet_drop: true,
            adaptation: None,
        };
        assert_eq!(both, all);
        assert_eq!(*PeerFeatures::agreed(&Announced::default(), &all_ours(), true), Features::default());
        let mut none = all_ours();
        none.profile = Profile::named("sctp").expect("a profile");
        let e = &mut none.extensions;
        (e.partial_reliability, e.dynamic_addresses, e.stream_reconfiguration) = (false, false, false);
        (e.interleaving, e.nr_sack, e.ecn, e.packet_drop_reports, e.error_detection, e.parity) =
            (false, false, false, false, None, false);
        // Packet counts are in a SACK whether we read them or not.
        let counts = Features { packet_count: true, ..Features::default() };
        assert_eq!(*PeerFeatures::agreed(&all_theirs(), &none, true), counts);
    }

    /// Whatever policies the ends have: parity is made where the other end reads that kind.
    #[test]
    fn parity_is_made_of_a_kind_that_is_read() {
        use anabranch_policy::registry::Hook;
        let kinds = ["none", "erasure", "split_error_correction"];
        let with = |redundancy: &str, repair: &str| {
            let mut c = all_ours();
            c.profile.set(Hook::Redundancy, redundancy).expect("registered");
            c.profile.set(Hook::Repair, repair).expect("registered");
            c
        };
        for (made, read) in kinds.iter().flat_map(|m| kinds.map(|r| (*m, r))) {
            let (ours, theirs) = (with(made, "none"), with("none", read));
            let mut said = vec![];
            let auth = crate::auth::AuthParams { random: [1; crate::auth::RANDOM_LEN] };
            super::super::announced::announce(&theirs, &auth, None, &mut said);
            let announced = Announced::read(anabranch_wire::Params::new(&said));
            let agreed = PeerFeatures::agreed(&announced, &ours, true);
            let fits = made == read && made != "none";
            assert_eq!((agreed.parity, agreed.makes_parity), (true, fits), "{made} for {read}");
            assert_eq!(
                ours.full_payload(&theirs) < with("none", "none").full_payload(&theirs),
                fits,
                "{made} for {read}"
            );
        }
        let old = Announced::read(anabranch_wire::Params::new(&[0xbf, 0x45, 0, 4]));
        assert_eq!(old.parity_read, Some(ParityKind::Sums));
    }

    #[test]
    fn asconf_needs_a_way_to_sign() {
        assert!(!PeerFeatures::agreed(&all_theirs(), &all_ours(), false).asconf);
    }

    /// Only I-FORWARD-TSN skips what I-DATA carries; without I-DATA it is not needed.
    #[test]
    fn with_interleaving_partial_reliability_needs_i_forward_tsn() {
        let theirs = Announced { i_forward_tsn: false, ..all_theirs() };
        assert!(!PeerFeatures::agreed(&theirs, &all_ours(), true).forward_tsn);
        assert!(!PeerFeatures::agreed(&theirs, &all_ours(), true).parity, "what is lost of it could not be skipped");
        let mut plain = all_ours();
        plain.extensions.interleaving = false;
        assert!(PeerFeatures::agreed(&theirs, &plain, true).forward_tsn);
    }
}
