"""What a stream over the kernel came to, in the lab's metrics."""

import array
import math
import struct
from collections import defaultdict


def percentile(ordered, part):
    return ordered[min(len(ordered), max(1, math.ceil(part * len(ordered)))) - 1]


def spread(values, name):
    """Mean, 99th percentile and longest, in seconds, of values in nanoseconds."""
    if not values:
        return {name: None, f"{name}-p99": None, f"{name}-max": None}
    values = sorted(values)
    return {
        name: sum(values) / len(values) / 1e9,
        f"{name}-p99": percentile(values, 0.99) / 1e9,
        f"{name}-max": values[-1] / 1e9,
    }


def messages(folder, i, begin):
    """Rows of number, made, read, of messages that were made `begin` seconds after the first or later."""
    rows = array.array("Q")
    with open(folder / f"{i}.messages", "rb") as f:
        rows.frombytes(f.read())
    rows = list(zip(rows[0::3], rows[1::3], rows[2::3], strict=True))
    return [row for row in rows if row[1] >= rows[0][1] + begin * 1e9]


def delays(folder, i, begin):
    rows = messages(folder, i, begin)
    return {**spread([read - made for _, made, read in rows], "message-delay"), "messages": len(rows)}


def packets(name):
    """Time in nanoseconds, and the packet from its IP header on, of each packet of a capture."""
    with open(name, "rb") as f:
        data = f.read()
    at = 24
    while at + 16 <= len(data):
        seconds, rest, kept, _ = struct.unpack_from("<IIII", data, at)
        yield seconds * 1_000_000_000 + rest, data[at + 16 : at + 16 + kept]
        at += 16 + kept


def carried(packet, size, first):
    """Numbers of what a packet carries: TSNs of DATA, or messages of TCP (whose first sequence number `first` keeps)."""
    header = (packet[0] & 15) * 4
    length = struct.unpack_from(">H", packet, 2)[0]
    if length > len(packet):
        raise SystemExit(f"a packet of {length} bytes was cut to {len(packet)} in the capture")
    if packet[9] == 132:
        at = header + 12
        while at + 4 <= length:
            kind, chunk = packet[at], struct.unpack_from(">H", packet, at + 2)[0]
            if chunk < 4:
                return
            if kind == 0:
                yield struct.unpack_from(">I", packet, at + 4)[0]
            at += (chunk + 3) & ~3
    elif packet[9] == 6:
        sequence = struct.unpack_from(">I", packet, header + 4)[0]
        payload = length - header - (packet[header + 12] >> 4) * 4
        if packet[header + 13] & 2:
            first.setdefault("sequence", (sequence + 1) % 2**32)
        if payload > 0 and "sequence" in first:
            begin = (sequence - first["sequence"]) % 2**32
            yield from range(begin // size, (begin + payload - 1) // size + 1)


def transmissions(folder, i, size):
    """For each number when it left and when it came."""
    left, came, first = defaultdict(list), defaultdict(list), {}
    for table, name, sender in ((left, f"{i}.sender.pcap", bytes([10, i, 1, 2])), (came, f"{i}.receiver.pcap", bytes([10, i, 1, 2]))):
        for time, packet in packets(folder / name):
            if packet[12:16] == sender:
                for number in carried(packet, size, first):
                    table[number].append(time)
    return left, came


def repairs(folder, i, size, begin, way):
    """Delays by the number of the repetition that came first; `way` is the link's delay in seconds."""
    left, came = transmissions(folder, i, size)
    start = min(times[0] for times in left.values())
    by, counts, needless, all_of_them = defaultdict(list), defaultdict(int), 0, 0
    for number, times in left.items():
        if times[0] < start + begin * 1e9:
            continue
        for k in range(1, len(times)):
            counts[k] += 1
        arrivals = came.get(number, [])
        all_of_them += len(times)
        if arrivals:
            # The one that came first left at least the delay before; some microseconds are the link's rate.
            which = max(k for k, t in enumerate(times) if t <= arrivals[0] - way * 1e9 + 1)
            by[which].append(arrivals[0] - times[0])
            needless += sum(1 for t in times[which + 1 :])
    out = {"needless": needless / all_of_them if all_of_them else None}
    for k in (1, 2, 3):
        out |= spread(by[k], f"repair{k}-delay") | {f"repair{k}": counts[k]}
    return out


def t_quantile(n):
    """Two-sided 95 % of Student's t for n values."""
    known = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
             2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]
    degrees = n - 1
    return known[degrees - 1] if degrees <= len(known) else 1.96 + 2.4 / degrees


def interval(values):
    """Mean and half the width of its 95 % interval; no width for one value."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, None
    variance = sum((v - mean) ** 2 for v in values) / (len(values) - 1)
    return mean, t_quantile(len(values)) * math.sqrt(variance / len(values))
