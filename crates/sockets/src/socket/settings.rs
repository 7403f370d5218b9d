//! What the kernels keep in `sysctl`: defaults of every socket of the process. See docs/SOCKETS.md for the names.

use super::options::SHORTEST_PROBE_INTERVAL;
use anabranch_base::Duration;
use anabranch_engine::Nagle;

/// Defaults of all sockets.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Profile of policies by name.
    pub profile: String,
    /// RTO.Initial.
    pub rto_initial: Duration,
    /// RTO.Min.
    pub rto_min: Duration,
    /// RTO.Max.
    pub rto_max: Duration,
    /// Max.Init.Retransmits.
    pub init_retrans: u16,
    /// Association.Max.Retrans.
    pub association_retrans: u16,
    /// Path.Max.Retrans.
    pub path_retrans: u16,
    /// HB.interval.
    pub heartbeat_interval: Duration,
    /// SACK.Delay.
    pub sack_delay: Duration,
    /// Packets with DATA per SACK.
    pub sack_frequency: u32,
    /// Valid.Cookie.Life.
    pub cookie_life: Duration,
    /// Streams asked for.
    pub outbound_streams: u16,
    /// Streams accepted.
    pub inbound_streams: u16,
    /// PR-SCTP (RFC 3758).
    pub partial_reliability: bool,
    /// ASCONF (RFC 5061); needs `authentication`.
    pub dynamic_addresses: bool,
    /// AUTH (RFC 4895).
    pub authentication: bool,
    /// RE-CONFIG (RFC 6525).
    pub stream_reset: bool,
    /// NR-SACK.
    pub nr_sack: bool,
    /// NR-SACK vouches only for what the program could read at once.
    pub may_renege: bool,
    /// ECN.
    pub ecn: bool,
    /// A path is left before it has failed (RFC 7829), where the profile judges paths as RFC 9260 does.
    pub pf_enable: bool,
    /// PF.Max.Retrans.
    pub pf_retrans: u16,
    /// Primary.Switchover.Max.Retrans; 65535 is never.
    pub ps_retrans: u16,
    /// Who hears of potentially failed paths: 0 `getsockopt`, 1 none, 2 notifications too.
    pub pf_expose: u32,
    /// Programs may turn message interleaving on (RFC 8260).
    pub interleaving: bool,
    /// SCTP_AUTO_ASCONF of new sockets.
    pub auto_asconf: bool,
    /// SCTP_PLPMTUD_PROBE_INTERVAL of new sockets, ms; 0 does not look for larger packets.
    pub probe_interval: u32,
    /// First window in packets; 0 is RFC 9260 §7.2.1's.
    pub initial_window: u32,
    /// Max.Burst; 0 is unlimited.
    pub max_burst: u16,
    /// Send buffer, bytes.
    pub send_buffer: usize,
    /// Receive buffer, bytes.
    pub receive_buffer: usize,
    /// A packet without an association is answered with a checksum of zero where that is allowed (RFC 9653).
    pub zero_checksum_for_strangers: bool,
    /// Choices that the standards leave open, and older rules, are those of FreeBSD's and Linux's kernels: see
    /// docs/SOCKETS.md.
    pub as_kernels: bool,
    /// Largest IP packet, bytes.
    pub mtu: usize,
    /// The peers' UDP port where SCTP is encapsulated in UDP (RFC 6951).
    pub udp_port: Option<u16>,
    /// Our own UDP port; the peers' without.
    pub local_udp_port: Option<u16>,
    /// Interfaces and addresses of ours that associations use, by name; none leaves it to the routing table.
    pub local: Vec<String>,
    /// How long the end of the process waits for associations to end.
    pub exit_patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            profile: "sctp".into(),
            rto_initial: Duration::from_secs(1),
            rto_min: Duration::from_secs(1),
            rto_max: Duration::from_secs(60),
            init_retrans: 8,
            association_retrans: 10,
            path_retrans: 5,
            heartbeat_interval: Duration::from_secs(30),
            sack_delay: Duration::from_millis(200),
            sack_frequency: 2,
            cookie_life: Duration::from_secs(60),
            outbound_streams: 10,
            inbound_streams: 2_048,
            partial_reliability: true,
            dynamic_addresses: false,
            authentication: false,
            stream_reset: false,
            nr_sack: false,
            may_renege: true,
            ecn: false,
            pf_enable: false,
            pf_retrans: 0,
            ps_retrans: u16::MAX,
            pf_expose: 0,
            interleaving: true,
            auto_asconf: false,
            probe_interval: 0,
            initial_window: 0,
            max_burst: 4,
            send_buffer: 1 << 20,
            receive_buffer: 1 << 20,
            zero_checksum_for_strangers: false,
            as_kernels: true,
            mtu: 1_500,
            udp_port: None,
            local_udp_port: None,
            local: Vec::new(),
            exit_patience: Duration::from_secs(3),
        }
    }
}

/// UDP port registered for SCTP over UDP (RFC 6951 §5.1).
const UDP_PORT: u16 = 9_899;

impl Settings {
    /// What less than a packet waits for, where the user has not switched that off.
    pub(super) fn nagle(&self, on: bool) -> Nagle {
        match (on, self.as_kernels) {
            (false, _) => Nagle::Off,
            (true, true) => Nagle::All,
            (true, false) => Nagle::NotLastFragment,
        }
    }

    /// The defaults where packets are real: what the engine's other users have, over UDP, which needs no right.
    pub fn outward() -> Settings {
        Settings {
            send_buffer: 4 << 20,
            receive_buffer: 4 << 20,
            as_kernels: false,
            pf_enable: true,
            interleaving: false,
            udp_port: Some(UDP_PORT),
            ..Settings::default()
        }
    }

    /// Sets what Linux (`net.sctp.…`) or FreeBSD (`net.inet.sctp.…`) call `name`; ours are among them under the last
    /// part of the name. False when the name is not known or the value is none for it; nothing changes then.
    pub fn set(&mut self, name: &str, value: &str) -> bool {
        let short = name.rsplit('.').next().unwrap_or(name);
        if short == "profile" {
            let known = anabranch_policy::registry::Profile::named(value).is_ok();
            if known {
                self.profile = value.to_owned();
            }
            return known;
        }
        match (short, value) {
            ("transport", "raw" | "ip") => self.udp_port = None,
            ("transport", "udp") => self.udp_port = self.udp_port.or(Some(UDP_PORT)),
            ("local", list) => {
                self.local = list.split([',', ' ', '+']).filter(|l| !l.is_empty()).map(str::to_owned).collect();
            }
            _ => return self.set_text_as_number(short, value),
        }
        true
    }

    fn set_text_as_number(&mut self, short: &str, value: &str) -> bool {
        let Ok(v) = value.trim().parse::<u64>() else { return false };
        self.set_number(short, v)
    }

    fn set_number(&mut self, name: &str, v: u64) -> bool {
        let ms = Duration::from_millis(v.min(1 << 40));
        let small = u16::try_from(v).unwrap_or(u16::MAX);
        match name {
            "rto_initial" => self.rto_initial = ms,
            "rto_min" => self.rto_min = ms,
            "rto_max" => self.rto_max = ms,
            "max_init_retransmits" | "init_rtx_max" => self.init_retrans = small,
            "association_max_retrans" | "assoc_rtx_max" => self.association_retrans = small,
            "path_max_retrans" | "path_rtx_max" => self.path_retrans = small,
            "hb_interval" => self.heartbeat_interval = ms,
            // FreeBSD counts this one in seconds in its documents and in ms in its scripts; ms as everywhere else.
            "heartbeat_interval" => self.heartbeat_interval = ms,
            "sack_timeout" | "delayed_sack_time" => self.sack_delay = ms,
            "sack_freq" => self.sack_frequency = v.clamp(1, 1_000) as u32,
            "valid_cookie_life" => self.cookie_life = ms,
            "outgoing_streams" => self.outbound_streams = small,
            "incoming_streams" => self.inbound_streams = small,
            "pr_enable" | "prsctp_enable" => self.partial_reliability = v != 0,
            "asconf_enable" | "addip_enable" => self.dynamic_addresses = v != 0,
            "auth_enable" => self.authentication = v != 0,
            "auth_disable" => self.authentication = v == 0,
            "reconfig_enable" => self.stream_reset = v != 0,
            "nrsack_enable" | "nrsack_on_off" | "nr_sack_on_off" => self.nr_sack = v != 0,
            "do_sctp_drain" => self.may_renege = v != 0,
            "ecn_enable" => self.ecn = v != 0,
            "pf_enable" => self.pf_enable = v != 0,
            "pf_retrans" => self.pf_retrans = small,
            "ps_retrans" => self.ps_retrans = small,
            "pf_expose" if v <= 2 => self.pf_expose = v as u32,
            "intl_enable" => self.interleaving = v != 0,
            "default_auto_asconf" => self.auto_asconf = v != 0,
            "plpmtud_probe_interval" if v == 0 || (u64::from(SHORTEST_PROBE_INTERVAL)..1 << 31).contains(&v) => {
                self.probe_interval = v as u32;
            }
            "initial_cwnd" => self.initial_window = v.min(1_000) as u32,
            "max_burst" | "maxburst" => self.max_burst = small,
            "sendspace" => self.send_buffer = v.min(1 << 30) as usize,
            "recvspace" => self.receive_buffer = v.min(1 << 30) as usize,
            "ootb_with_zero_cksum" => self.zero_checksum_for_strangers = v != 0,
            "udp_port" | "encap_port" | "udp_tunneling_port" => self.udp_port = Some(small).filter(|p| *p != 0),
            "local_udp_port" => self.local_udp_port = Some(small).filter(|p| *p != 0),
            "exit_patience" => self.exit_patience = ms,
            "as_kernels" => self.as_kernels = v != 0,
            "mtu" => self.mtu = v.clamp(576, 65_535) as usize,
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_kernels() {
        let mut s = Settings::default();
        assert!(s.set("net.inet.sctp.rto_min", "100") && s.set("net.sctp.rto_initial", "200"));
        assert_eq!((s.rto_min.as_millis(), s.rto_initial.as_millis()), (100, 200));
        assert!(s.set("net.inet.sctp.pr_enable", "0") && !s.partial_reliability);
        assert!(s.set("net.sctp.prsctp_enable", "1") && s.partial_reliability);
        assert!(s.set("net.inet.sctp.auth_disable", "0") && s.authentication);
        assert!(s.set("profile", "cmt") && s.profile == "cmt");
        let before = s.clone();
        assert!(!s.set("pf_expose", "3") && !s.set("plpmtud_probe_interval", "4999"));
        assert!(!s.set("profile", "nonsense") && !s.set("kern.timecounter", "0") && !s.set("rto_min", "soon"));
        assert_eq!(s, before);
    }
}
