#!/usr/bin/env python3
"""What the best erasure code reaches in jitter.toml and loss.toml: any k packets of a block restore all of its k.

    experiments/erasure/ideal.py            both tables, seeded, half a minute

Jitter. A burst of 20 packets, one each 25 ms, is a block. The WLAN carries 15 packets in that time, the 3G path 10; the
WLAN is kept full, and what it has no room for goes over the 3G path, where packet i leaves i transmission times after the
burst was made and takes 160 ms with a normal deviation of 50. Code and sender are ideal, windows are known, headers free:

    first     parity leaves with its burst, over the WLAN; data fill the 3G path
    last      parity leaves with its burst, over the 3G path, so that more data have room on the WLAN
    feedback  parity leaves over the WLAN at the last moment, when the sender knows what has come; of each burst as much
              as saves most, with a price for each byte that makes the mean what was asked for

Loss. A block is what leaves in the time that the deadline leaves beyond the way there, over both paths by turns.
"""
import math
import random

BURST, DEADLINE, GAP = 20, 200.0, 25.0
WIRE = 1298 * 8 / 1000  # kbit
WLAN, UMTS = WIRE / 6.2688, WIRE / 4.1792  # ms for each packet
LOSS = 0.005


def late_after(age):
    """The part of the packets of the 3G path that takes longer than this, ms."""
    return 0.5 * math.erfc((age - 160) / (50 * math.sqrt(2)))


def counts(parts):
    """How many of independent events with these probabilities happen: a distribution."""
    out = [1.0]
    for p in parts:
        out = [a * (1 - p) + b * p for a, b in zip(out + [0.0], [0.0] + out)]
    return out


def split(parity):
    """How many packets of a burst each path gets, on average, when the WLAN is full."""
    on_wlan = min(GAP / WLAN, BURST + parity)
    return on_wlan, BURST + parity - on_wlan


def between(f, x):
    """A function of whole numbers at one that is none."""
    low = math.floor(x)
    return f(low) * (1 - x + low) + (f(low + 1) * (x - low) if x > low else 0)


def without_feedback(parity, parity_late):
    """Part of the data unusable."""

    def of(on_3g):
        late = [late_after(DEADLINE - (i + 1) * UMTS) for i in range(on_3g)]
        on_wlan = BURST + parity - on_3g
        missing_3g, missing_wlan = counts(late), counts([LOSS] * on_wlan)
        data_3g = max(on_3g - parity, 0) if parity_late else on_3g
        data_wlan = BURST - data_3g
        unusable = 0.0
        for a, pa in enumerate(missing_3g):
            for b, pb in enumerate(missing_wlan):
                if a + b > parity:
                    unusable += pa * pb * (a * data_3g / max(on_3g, 1) + b * data_wlan / max(on_wlan, 1))
        return unusable / BURST

    return between(of, split(parity)[1])


def with_feedback(parity, bursts=20_000, seed=1):
    """Part of the data unusable, and the mean of the parity packets that left for each burst."""
    on_3g = split(parity)[1]
    rng, known = random.Random(seed), []
    decide = DEADLINE - 30 - 3 * 1.333 - 3 * WLAN
    for _ in range(bursts):
        n = math.floor(on_3g) + (rng.random() < on_3g % 1)
        chances, missing = [], 0
        for i in range(n):
            sent = (i + 1) * UMTS
            arrives = sent + rng.gauss(160, 50)
            if arrives > decide:
                chances.append(late_after(DEADLINE - sent) / late_after(decide - sent))
                missing += arrives > DEADLINE
        for _ in range(BURST - n):
            if rng.random() < LOSS:
                chances.append(1.0)
                missing += 1
        # What so much parity saves, in the mean.
        saves, sum_ = [], 0.0
        for k, p in enumerate(counts(chances)):
            sum_ += k * p
            saves.append(sum_)
        known.append((saves, missing))

    def at(price):
        left = unusable = 0
        for saves, missing in known:
            r = max(range(len(saves)), key=lambda r: saves[r] * (1 - LOSS) - price * r)
            left += r
            unusable += missing if missing > r else 0
        return unusable / bursts / BURST, left / bursts

    low, high = 0.0, 2.0
    for _ in range(20):
        price = (low + high) / 2
        low, high = (price, high) if at(price)[1] > parity else (low, price)
    return at(high)


def block_loss(n, parity, loss, burst, rounds=20_000, seed=1):
    """Part of n data packets lost for good, with so much parity; losses of a two-state chain on each of two paths."""
    rng, lost = random.Random(seed), 0
    leave = 1 / burst
    enter = loss * leave / (1 - loss) if burst > 1 else 0
    bad = [rng.random() < loss for _ in range(2)]
    for _ in range(rounds):
        gone = []
        for i in range(n + parity):
            p = i % 2
            if burst > 1:
                bad[p] = rng.random() >= leave if bad[p] else rng.random() < enter
            gone.append(bad[p] if burst > 1 else rng.random() < loss)
        if sum(gone) > parity:
            lost += sum(gone[:n])
    return lost / rounds / n


def main():
    print("jitter: unusable, %\n")
    print("| parity | first | last | feedback (parity that left) |\n|---|---|---|---|")
    for percent in (0, 5, 10, 15, 20):
        parity = BURST * percent // 100
        unusable, left = with_feedback(parity)
        rest = [100 * without_feedback(parity, last) for last in (False, True)]
        print(f"| {percent} % | {rest[0]:.2f} | {rest[1]:.2f} | {100 * unusable:.2f} ({100 * left / BURST:.1f} %) |")
    print("\nloss: lost for good, %; 3 Mbit/s in messages of 1128 bytes, ways of 40 and 60 ms\n")
    print("| deadline | loss | packets of a block | no parity | 10 % | 20 % |\n|---|---|---|---|---|---|")
    for deadline in (110, 150, 250):
        n = max(1, round((deadline - 60) * 3000 / 8 / 1128))
        for loss, burst in ((0.01, 1), (0.04, 1), (0.01, 5), (0.04, 5)):
            # A part of a packet is sent with some of the blocks.
            row = [
                100 * between(lambda r: block_loss(n, r, loss, burst), n * rate) for rate in (0, 0.1, 0.2)
            ]
            name = f"{loss:.0%}" + (f" burst {burst}" if burst > 1 else "")
            print(f"| {deadline} ms | {name} | {n} | " + " | ".join(f"{v:.2f}" for v in row) + " |")


if __name__ == "__main__":
    main()
