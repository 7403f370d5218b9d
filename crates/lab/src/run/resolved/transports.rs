//! What a flow goes over, with its policies, limits and timers.

use super::Below;
use crate::node::{Delivery, Streams};
use crate::run::models::{self, rate, time};
use crate::scenario::{Mptcp, Sctp, Transport};
use anabranch_engine::AssocConfig;
use anabranch_policy::registry::{Hook, Profile};
use anabranch_sim::transport::mptcp::{Coding, FmtcpConfig, MptcpConfig, NcConfig};
use anabranch_sim::transport::tcp::{RtoConfig, TcpConfig};

pub(super) fn of_transport(to: &mut Below<'_>, transport: &Transport) -> Result<(), String> {
    match transport {
        Transport::Sctp(s) => {
            to.put("transport", "sctp");
            of_sctp(to, s)
        }
        Transport::Tcp(c) => {
            to.put("transport", "tcp");
            of_tcp(to, c);
            Ok(())
        }
        Transport::Mptcp(m) => {
            to.put("transport", transport.name());
            of_mptcp(to, m);
            Ok(())
        }
        Transport::Udp(header) => {
            to.put("transport", "udp");
            to.put("header", *header);
            Ok(())
        }
    }
}

fn of_sctp(to: &mut Below<'_>, s: &Sctp) -> Result<(), String> {
    let Sctp { profile, peer, limits: _, delivery, read_rate, paths, overhead, shared_by: _, shared_streams: _ } = s;
    of_profile(to, profile);
    if let Some((peer, association)) = peer.as_ref().zip(s.peer_config(0).map_err(|e| e.to_string())?) {
        let mut to = to.below("peer");
        of_profile(&mut to, peer);
        of_association(&mut to, association);
    }
    let Delivery { streams, unordered, lifetime, max_retransmissions, class, first_stream } = *delivery;
    to.put("streams", delivery.stream_count());
    to.put("streams-by", if matches!(streams, Streams::ByClass(_)) { "class" } else { "turn" });
    if first_stream > 0 {
        to.put("first-stream", first_stream);
    }
    to.put("unordered", unordered);
    to.put("class", class);
    to.by_class("lifetime", lifetime.map(|l| l.map(time)));
    to.by_class("max-retransmissions", max_retransmissions);
    to.put("read-rate", read_rate.map(rate));
    to.put("paths", paths.map(|n| n as u64));
    to.put("overhead", *overhead);
    // What the limits of the scenario made of the profile's.
    of_association(to, s.config(0).map_err(|e| e.to_string())?.0);
    Ok(())
}

fn of_profile(to: &mut Below<'_>, profile: &Profile) {
    to.put("profile", profile.name());
    for hook in Hook::ALL {
        to.put(&hook.name().replace('_', "-"), profile.spec_in_full(hook));
    }
}

fn of_association(to: &mut Below<'_>, a: AssocConfig) {
    to.put("outbound-streams", a.limits.outbound_streams);
    to.put("inbound-streams", a.limits.inbound_streams);
    to.put("receive-buffer", a.limits.receive_buffer);
    to.put("send-buffer", a.limits.send_buffer);
    to.put("max-paths", a.limits.max_paths);
    to.put("receive-overhead", a.limits.receive_overhead);
    to.put("peer-chunk-overhead", a.limits.peer_chunk_overhead);
    to.put("max-streams", a.limits.max_streams);
    to.put("heartbeat-interval", time(a.timers.heartbeat_interval));
    to.put("heartbeat-max-burst", a.timers.heartbeat_max_burst);
    to.put("sack-delay", time(a.timers.sack_delay));
    to.put("rto-initial", time(a.timers.rto_initial));
    to.put("rto-max", time(a.timers.rto_max));
    to.put("max-init-timeout", a.timers.max_init_timeout.map(time));
    to.put("association-max-retrans", a.failure.max_association_retrans);
    to.put("peer-timeout", a.failure.peer_timeout.map(time));
    to.put("path-max-retrans", a.failure.max_path_retrans);
    to.put("primary-switchover", a.failure.primary_switchover);
    to.put("expose-potentially-failed", a.failure.expose_potentially_failed);
    to.put("max-init-retrans", a.failure.max_init_retrans);
    to.put("abort-when-given-up", a.failure.abort_when_given_up);
    to.put("sctp-packet-size", a.mtu.packet_size);
    to.put("path-mtu-discovery", a.mtu.discovery.as_ref().map(models::discovery));
    to.put("max-burst", a.sending.max_burst);
    to.put("initial-window", a.sending.initial_window);
    to.put("initial-ssthresh", a.sending.initial_ssthresh);
    to.put("nagle", models::nagle(a.sending.nagle));
    to.put("fragmentation", a.messages.fragmentation);
    to.put("partial-delivery", a.messages.partial_delivery);
    to.put("return-given-up", a.messages.return_given_up);
    to.put("partial-reliability", a.extensions.partial_reliability);
    to.put("dynamic-addresses", a.extensions.dynamic_addresses);
    to.put("error-detection", a.extensions.error_detection);
    to.put("stream-reconfiguration", a.extensions.stream_reconfiguration);
    to.put("interleaving", a.extensions.interleaving);
    to.put("nr-sack", a.extensions.nr_sack);
    to.put("parity", a.extensions.parity);
    to.put("own-parameters", a.extensions.own_parameters.iter().map(|p| p.kind).collect::<Vec<_>>());
    to.put("nr-sack-covers-undelivered", a.extensions.nr_sack_covers_undelivered);
    to.put("adaptation", a.extensions.adaptation);
    to.put("ecn", a.extensions.ecn);
    to.put("packet-drop-reports", a.extensions.packet_drop_reports);
    to.put("auth-chunks", a.auth.chunks);
    to.put("auth-keys", a.auth.keys.iter().map(|k| k.0).collect::<Vec<_>>());
    to.put("auth-active-key", a.auth.active_key);
    to.put("address-types", a.addresses.types);
    to.put("probe-at-once", a.compatibility.probe_at_once);
    to.put("resend-probes", a.compatibility.resend_probes);
    to.put("retransmissions-ask", a.compatibility.retransmissions_ask);
    to.put("give-up-late-holes", a.compatibility.give_up_late_holes);
    to.put("gap-blocks-alone", a.compatibility.gap_blocks_alone);
    to.put("first-data-waits", a.compatibility.first_data_waits);
    to.put("window-updates", a.compatibility.window_updates);
    to.put("sacks-follow-data", a.compatibility.sacks_follow_data);
    to.put("confirm-first", a.compatibility.confirm_first);
    to.put("handshake-untimed", a.compatibility.handshake_untimed);
    to.put("advertise-unrequested-extensions", a.compatibility.advertise_unrequested_extensions);
}

fn of_mptcp(to: &mut Below<'_>, m: &Mptcp) {
    let Mptcp { config, paths } = m;
    let MptcpConfig { tcp, coupling, scheduler, receive_buffer, opportunistic, penalise, coding } = config;
    of_tcp(to, tcp);
    to.put("coupling", coupling.name());
    to.put("receive-buffer", *receive_buffer);
    match coding {
        Coding::Plain => {
            to.put("scheduler", scheduler.name());
            to.put("opportunistic", *opportunistic);
            to.put("penalise", *penalise);
        }
        Coding::Fmtcp(FmtcpConfig { symbol, block, margin }) => {
            to.put("symbol", *symbol);
            to.put("block", *block);
            to.put("margin", *margin);
        }
        Coding::Nc(NcConfig { generation }) => to.put("generation", *generation),
    }
    to.put("paths", paths.map(|n| n as u64));
}

fn of_tcp(to: &mut Below<'_>, c: &TcpConfig) {
    let TcpConfig {
        recovery,
        congestion,
        hystart,
        fast_convergence,
        prr,
        tail_probe,
        validate_window,
        segment,
        header,
        window,
        initial_window,
        initial_ssthresh,
        restart_window,
        limited_transmit,
        halve_flight,
        recovery_burst,
        nagle,
        coalesce,
        delayed_ack,
        quick_ack,
        sack_blocks,
        rto: RtoConfig { initial, min, max, tick, min_of_variation },
        // Set by what is measured.
        keep_first_sent: _,
    } = c;
    to.put("recovery", models::recovery(*recovery));
    to.put("congestion", models::congestion(*congestion));
    to.put("hystart", *hystart);
    to.put("fast-convergence", *fast_convergence);
    to.put("prr", *prr);
    to.put("tail-probe", *tail_probe);
    to.put("validate-window", *validate_window);
    to.put("segment", *segment);
    to.put("header", *header);
    to.put("window", *window);
    to.put("initial-window", *initial_window);
    to.put("initial-ssthresh", *initial_ssthresh);
    to.put("restart-window", *restart_window);
    to.put("limited-transmit", *limited_transmit);
    to.put("halve-flight", *halve_flight);
    to.put("recovery-burst", *recovery_burst);
    to.put("delayed-ack", delayed_ack.map(time));
    to.put("nagle", *nagle);
    to.put("coalesce", *coalesce);
    to.put("quick-ack", *quick_ack);
    to.put("sack-blocks", *sack_blocks);
    to.put("rto-initial", time(*initial));
    to.put("rto-min", time(*min));
    to.put("rto-max", time(*max));
    to.put("rto-tick", time(*tick));
    to.put("rto-min-of-variation", *min_of_variation);
}
