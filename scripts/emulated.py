"""What `anabranch lab emulate --out FILE` writes: values on real sockets and in the simulator, and how far their means lie apart."""
import collections
import math
import statistics


def quantile(freedom):
    """The 97.5 % quantile of Student's t, by the expansion of Cornish and Fisher; good to 0.01 from four degrees on."""
    z = 1.959964
    terms = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + sum(t / freedom ** (i + 1) for i, t in enumerate(terms))


def difference(real, simulated):
    """The mean difference and half of its interval, variances not taken to be equal."""
    parts = [(statistics.variance(v) / len(v), len(v) - 1) for v in (real, simulated)]
    whole = sum(p for p, _ in parts)
    mean = statistics.mean(real) - statistics.mean(simulated)
    if whole == 0:
        return mean, 0.0
    freedom = whole**2 / sum(p**2 / n for p, n in parts)
    return mean, quantile(freedom) * math.sqrt(whole)


def read(path, metric, scale=1.0):
    """Of each point the values on real sockets and in the simulator; none of a point where one side has fewer than two."""
    values = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            cells = line.rstrip("\n").split(",")
            # The point may have commas of its own; what follows it has none.
            if len(cells) >= 5 and cells[-3] == metric:
                values[",".join(cells[1:-3])][cells[-2]].append(scale * float(cells[-1]))
    enough = lambda by: all(len(by[place]) >= 2 for place in ("real", "simulated"))
    return {at: (by["real"], by["simulated"]) if enough(by) else None for at, by in values.items()}
