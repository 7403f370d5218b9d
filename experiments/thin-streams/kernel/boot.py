"""A user-mode Linux kernel in virtual time that carries out many streams at once."""

import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = ["lib/crc-ccitt", "crypto/hmac", "net/ipv6/ipv6", "net/ipv4/udp_tunnel", "net/ipv6/ip6_udp_tunnel", "net/sctp/sctp",
           "net/sched/sch_netem", "drivers/net/veth"]
# Loops of the boot that wait for the clock, which stands.
QUICK = ["lpj=10000000", "initcall_blacklist=raid6_select_algo,calibrate_xor_blocks"]


class Skipped(Exception):
    """Why there is no kernel here."""


class Kernel:
    """The programs that a boot needs, built once."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        for tool in ("linux.uml", "cc", "ip", "tc", "insmod"):
            if not shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
                raise Skipped(f"{tool} is not installed")
        found = sorted(Path("/usr/lib/uml/modules").glob("*/kernel/net/sctp/sctp.ko"))
        if not found:
            raise Skipped("the user-mode kernel has no sctp.ko")
        self.modules = found[-1].parents[2]
        self.version = self.modules.parent.name
        self.compile("clock.so", "clock.c", "-shared", "-fPIC", "-ldl")
        self.compile("messages", "messages.c", "-static")

    def compile(self, name, source, *flags):
        done = subprocess.run(["cc", "-O2", "-o", self.folder / name, HERE / source, *flags], capture_output=True, text=True)
        if done.returncode:
            raise Skipped(f"{source} does not build ({done.stderr.splitlines()[0]})")

    def run(self, streams, wire=False, keep=None):
        """Boots with these streams, each with `words`, `link`, `count` and `seed`. Returns the folder of what came."""
        folder = Path(keep or tempfile.mkdtemp(prefix="anabranch-kernel."))
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.folder / "messages", folder)
        (folder / "modules").write_text("".join(f"{self.modules / m}.ko\n" for m in MODULES))
        links, lossy, clean, jobs = [], [], [], []
        for i, s in enumerate(streams, 1):
            links += link_commands(i)
            for side, far, near in (("a", "x", 1), ("b", "y", 2)):
                (folder / f"{side}{i}.ip").write_text("\n".join(host_commands(i, far, near)) + "\n")
            for device, way in ((f"q{i}", s["link"]["up"]), (f"p{i}", s["link"]["down"])):
                shape = f"delay {way['delay'] * 1e6:.0f}us"
                if way["jitter"]:
                    shape += f" {way['jitter'] * 1e6:.0f}us"
                if way["rate"]:
                    shape += f" rate {way['rate']:.0f}bit"
                # Packets that wait for their delay count too.
                shape += " limit 100000"
                clean.append(f"qdisc add dev {device} root netem {shape}")
                if way["loss"]:
                    lossy.append(f"qdisc change dev {device} root netem {shape} {way['loss']}")
            jobs.append(job_line(i, s, wire))
        for name, lines in (("links", links), ("open.tc", clean), ("lossy.tc", lossy), ("jobs", jobs)):
            (folder / name).write_text("\n".join(lines) + "\n")
        command = ["linux.uml", "mem=512M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={HERE / 'init.sh'}",
                   "con=null", "con0=null,fd:1", "quiet", *QUICK, f"jobs={folder}"]
        with open(folder / "console", "w") as console:
            env = {**os.environ, "LD_PRELOAD": str(self.folder / "clock.so"), "TMPDIR": "/dev/shm"}
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=console, stderr=console, env=env, check=False)
        if not (folder / "state").exists():
            said = (folder / "log").read_text() if (folder / "log").exists() else (folder / "console").read_text(errors="replace")
            if "ptrace set fp regs failed" in (folder / "console").read_text(errors="replace"):
                raise Skipped("user-mode Linux runs no program on this processor, whose registers are too large for it")
            raise SystemExit(f"the kernel did not finish; its files are in {folder}:\n" + "\n".join(said.splitlines()[-8:]))
        return folder


def address(i, side, host):
    return f"10.{i}.{side}.{host}"


def hardware(i, side, host):
    return f"02:00:00:{i:02x}:{side:02x}:{host:02x}"


def link_commands(i):
    """The router is the first namespace; its two links to the hosts of stream i, which need no ARP."""
    lines = [f"netns add a{i}", f"netns add b{i}"]
    for far, near, space, side in (("x", "p", "a", 1), ("y", "q", "b", 2)):
        lines += [
            f"link add {far}{i} address {hardware(i, side, 2)} netns {space}{i} type veth peer name {near}{i} address {hardware(i, side, 1)}",
            f"addr add {address(i, side, 1)}/24 dev {near}{i}",
            f"link set {near}{i} up",
            f"neigh replace {address(i, side, 2)} lladdr {hardware(i, side, 2)} dev {near}{i} nud permanent",
        ]
    return lines


def host_commands(i, device, side):
    return [
        "link set lo up",
        f"addr add {address(i, side, 2)}/24 dev {device}{i}",
        # Packets as they are on a wire, none joined to be divided later: a loss takes one.
        f"link set {device}{i} gso_max_size 1500 gso_max_segs 1",
        f"link set {device}{i} up",
        f"neigh replace {address(i, side, 1)} lladdr {hardware(i, side, 1)} dev {device}{i} nud permanent",
        f"route add default via {address(i, side, 1)}",
    ]


def job_line(i, s, wire):
    words = dict(s["words"])
    # Where in the kernel's tick a stream sends is drawn; Debian's user-mode kernel lacks cryptomgr, so that cookies have
    # no HMAC.
    phase = random.Random(f"{s['seed']} {i}").randrange(words["interval"])
    settings = list(words.pop("set", []))
    if words["transport"] == "sctp":
        settings.append("sctp/cookie_hmac_alg=none")
    line = [str(i), f"count={s['count']}", f"phase={phase}", f"wire={int(wire)}"]
    return " ".join(line + [f"{k}={v}" for k, v in words.items()] + [f"set={x}" for x in settings])
