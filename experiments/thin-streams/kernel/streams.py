"""From a scenario's resolved parameters to what a Linux kernel is asked to do."""

import json
import re
from pathlib import Path

# What every other parameter has to be, by transport: the kernel's own is what these values of the lab stand for.
KEPT = json.loads(Path(__file__).with_name("kept.json").read_text())
# Of a flow and of a link, what is asked of the kernel, or is no matter of the transport.
MAPPED = {
    "flow": ["transport", "traffic", "from", "to"],
    "link": ["delay", "rate", "loss", "jitter", "jitter-distribution", "order", "limit-packets"],
    "sctp": ["profile", "timer", "acknowledge", "sack-delay", "retransmission-order", "loss-threshold", "nagle", "redundancy", "path-state"],
    # The kernel always validates its window; the lab may hold one that does not beside it.
    "tcp": ["congestion", "recovery", "tail-probe", "nagle", "validate-window"],
}


class NotInKernel(Exception):
    """What a scenario asks for that a Linux kernel does not have."""


def points(manifest, scenario):
    """The points of a scenario: values of its sweep keys, and every parameter by name."""
    of = next(s for s in manifest["scenarios"] if s["name"] == scenario)
    return [key for key, _ in of["keys"]], [(p["values"], {**of["resolved"], **p["changes"]}) for p in of["points"]]


def parameters(policy):
    """`name:a=1,b=2` as name and table."""
    name, _, rest = policy.partition(":")
    return name, dict(pair.split("=") for pair in rest.split(",") if pair)


def only(what, there, *allowed):
    if there not in allowed:
        raise NotInKernel(f"{what} {there}")


def kept(what, values, *mapped):
    """Nothing of these values is lost on the way to the kernel: what is not mapped is as it is there."""
    mapped = {key for name in mapped for key in MAPPED[name]}
    for key, value in values.items():
        if key in mapped or value is None and key not in KEPT[what]:
            continue
        if key not in KEPT[what] or value != KEPT[what][key]:
            raise NotInKernel(f"{key} {value}")


def stream(values):
    """The one flow of a point as words for messages.c, and its link; raises NotInKernel."""
    flows = {m[1] for key in values if (m := re.match(r"flow\.([^.]+)\.transport$", key))}
    if len(flows) != 1:
        raise NotInKernel(f"{len(flows)} flows")
    name = flows.pop()
    flow = {key.removeprefix(f"flow.{name}."): v for key, v in values.items() if key.startswith(f"flow.{name}.")}
    traffic = flow["traffic"]
    only("traffic", traffic["kind"], "cbr")
    link = {}
    for way in ("up", "down"):
        of = {key.removeprefix(f"topology.path1.{way}."): v for key, v in values.items() if f".path1.{way}." in key}
        kept("link", of, "link")
        link[way] = {"delay": of["delay"], "rate": of["rate"], "jitter": of["jitter"], "limit": of["limit-packets"],
                     "loss": losses(of["loss"])}
        if of["jitter"]:
            only("jitter-distribution", of["jitter-distribution"], "uniform")
            # netem lets no packet overtake another where it has a rate, and all where it has none.
            only("jitter that makes the order", of["order"], "kept" if of["rate"] else "free")
    words = {
        "size": traffic["size"],
        "interval": round(traffic["size"] * 8 / traffic["rate"] * 1e9),
        "transport": flow["transport"],
    }
    (sctp if flow["transport"] == "sctp" else tcp)(flow, words)
    return {"flow": name, "words": words, "link": link, "duration": values["duration"], "from": values.get("measure-from") or 0.0}


def losses(loss):
    """What netem is asked for, or nothing."""
    only("loss", loss["kind"], "none", "random", "gemodel")
    percent = [f"{loss[key] * 100:.9g}%" for key in ("p", "r", "1-h", "1-k") if key in loss]
    return {"none": "", "random": "loss random ", "gemodel": "loss gemodel "}[loss["kind"]] + " ".join(percent)


def sctp(flow, words):
    """Linux's socket options for SCTP. Of the profiles lksctp and linux everything else is the kernel's own."""
    timer, of = parameters(flow["timer"])
    only("timer", timer, "rfc9260", "thin")
    only("clock of", of["tick"], "0", "10")
    only("karn", of["karn"], "1")
    if timer == "thin":
        # The lower floor alone: SCTP_RTOINFO has it for all streams, the timer for thin ones.
        only("reset", of["reset"], "standard")
        only("linear", of["linear"], "0")
    words["rto_min"], words["rto_initial"], words["rto_max"] = of["rto_min"], of["rto_initial"], of["rto_max"]
    acknowledge, of = parameters(flow["acknowledge"])
    only("acknowledge", acknowledge, "rfc9260", "immediate")
    if acknowledge == "immediate":
        words["sack_every"] = 1
    else:
        only("bulk of acknowledge", of["bulk"], "0")
        only("hurry_fill of acknowledge", of["hurry_fill"], "1")
        words["sack_every"], words["sack_delay"] = of["every"], round(flow["sack-delay"] * 1000)
    only("profile", flow["profile"], "lksctp", "linux")
    only("retransmission order", flow["retransmission-order"], "tsn", "bundle_outstanding")
    only("loss threshold", flow["loss-threshold"].partition(":")[0], "three")
    only("nagle", flow["nagle"], "off")
    only("redundancy", flow["redundancy"], "none")
    # Old kernels and the standard have no potentially failed paths (RFC 7829); new ones do by default, and a lost HEARTBEAT
    # on such a path keeps the time-out of a stream at what it was backed off to.
    only("path state", flow["path-state"].partition(":")[0], "rfc9260", "potentially_failed")
    kept(flow["profile"], flow, "flow", "sctp")
    words["set"] = [] if flow["path-state"].startswith("potentially_failed") else ["sctp/pf_enable=0"]


def tcp(flow, words):
    """Linux's TCP with RACK, tail loss probes and the rest; or, for NewReno, with all of that switched off."""
    words["congestion"] = flow["congestion"]
    only("nagle", flow["nagle"], False)
    only("recovery", flow["recovery"], "rack", "newreno")
    kept(flow["recovery"], flow, "flow", "tcp")
    settings = []
    if flow["recovery"] == "newreno":
        settings = ["tcp_sack=0", "tcp_recovery=0", "tcp_early_retrans=0", "tcp_frto=0"]
    elif not flow.get("tail-probe", True):
        settings = ["tcp_early_retrans=0"]
    words["set"] = [f"ipv4/{s}" for s in settings]
