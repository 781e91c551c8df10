"""The row-level part of the slow reference model: interval and temporal joins, and deduplication.

Standard library only, one row at a time, nothing clever: it is read to be believed, not run to be fast.
`reference.py` has the time rules, the windows, and the runner.
"""

NEG, INF = -(10 ** 18), 10 ** 18


class Op:
    def __init__(self, p, sem):
        self.p, self.sem, self.W, self.P = p, sem, NEG, 0
        self.out, self.late = [], []

    def reject(self, e):
        self.late.append({k: e[k] for k in ("side", "key", "ts_ms", "value") if k in e})

    def tick(self, now):
        self.P = max(self.P, now)

    def batch(self, events):
        raise NotImplementedError

    def advance(self, W):
        raise NotImplementedError


class IntervalJoin(Op):
    """Pairs with lower <= right.ts - left.ts <= upper; pairs appear at once; an unmatched row of
    the preserved side appears, padded with null, once no partner can come any more."""

    def __init__(self, p, sem):
        super().__init__(p, sem)
        j = p["join"]
        self.type = j["type"]
        self.lo = j["lower_ms"] + (0 if j.get("lower_inclusive", True) else 1)
        self.hi = j["upper_ms"] - (0 if j.get("upper_inclusive", True) else 1)
        self.buf = {"left": [], "right": []}

    def emit(self, key, l, r):
        self.out.append({"key": key, "left": l, "right": r})

    def over(self, side, ts):       # can no partner come any more?
        return self.W > ts + (self.hi if side == "left" else -self.lo)

    def batch(self, events):
        for e in events:
            side, other = e["side"], {"left": "right", "right": "left"}[e["side"]]
            if e["ts_ms"] < self.W and self.sem["late_join_rows"] == "drop":
                self.reject(e)
                continue
            me = [e["key"], e["ts_ms"], e["value"], False]
            for o in self.buf[other]:
                d = o[1] - me[1] if side == "left" else me[1] - o[1]
                if o[0] == me[0] is not None and self.lo <= d <= self.hi:
                    o[3] = me[3] = True
                    self.emit(me[0], *((me[2], o[2]) if side == "left" else (o[2], me[2])))
            self.buf[side].append(me)
        self.expire()

    def expire(self):
        for side in ("left", "right"):
            for x in [x for x in self.buf[side] if self.over(side, x[1])]:
                self.buf[side].remove(x)
                if not x[3] and self.type in ("full", side):
                    self.emit(x[0], *((x[2], None) if side == "left" else (None, x[2])))

    def advance(self, W):
        self.W = max(self.W, W)
        self.expire()


class TemporalJoin(Op):
    """A left row at t meets the right version with the greatest ts <= t of its key; decided when
    the watermark passes t."""

    def __init__(self, p, sem):
        super().__init__(p, sem)
        self.type, self.left, self.vers = p["join"]["type"], [], {}

    def emit(self, e):
        vs = [(ts, v) for ts, v in self.vers.get(e["key"], {}).items() if ts <= e["ts_ms"]]
        v = max(vs, key=lambda x: x[0])[1] if vs else None
        if v is not None or self.type == "left":
            self.out.append({"key": e["key"], "left": e["value"], "right": v})

    def batch(self, events):
        for e in events:
            if e["side"] == "right":
                self.vers.setdefault(e["key"], {})[e["ts_ms"]] = \
                    None if e.get("op") == "delete" else e["value"]
            elif e["ts_ms"] >= self.W:
                self.left.append(e)
            elif self.sem["late_probe"] == "drop":
                self.reject(e)
            else:
                self.emit(e)

    def advance(self, W):
        self.W = max(self.W, W)
        for e in sorted(self.left, key=lambda e: e["ts_ms"]):
            if e["ts_ms"] < self.W:
                self.emit(e)
        self.left = [e for e in self.left if e["ts_ms"] >= self.W]


class Dedup(Op):
    """first_arrival  first row seen of a key, at once; forgotten when W > ts + expire_after_ms
    first_by_time  smallest ts of a key, when the watermark passes it
    last_by_time   greatest ts of a key so far (ties: later arrival), at once, retracting the old"""

    def __init__(self, p, sem):
        super().__init__(p, sem)
        self.d, self.st = p["dedup"], {}

    def emit(self, e, retract=False):
        self.out.append({"key": e["key"], "ts_ms": e["ts_ms"], "value": e["value"],
                         "retract": retract})

    def batch(self, events):
        for e in events:
            k, mode = e["key"], self.d["mode"]
            if self.d.get("key_includes_time"):
                k = (k, e["ts_ms"])
            if self.d.get("drop_late", True) and e["ts_ms"] < self.W:
                self.reject(e)
            elif mode == "first_arrival" and k not in self.st:
                self.st[k] = e
                self.emit(e)
            elif mode == "first_by_time":
                if k not in self.st or (not self.st[k].get("done")
                                        and e["ts_ms"] < self.st[k]["ts_ms"]):
                    self.st[k] = e
            elif mode == "last_by_time":
                if k not in self.st or e["ts_ms"] >= self.st[k]["ts_ms"]:
                    if k in self.st:
                        self.emit(self.st[k], True)
                    self.st[k] = e
                    self.emit(e)

    def advance(self, W):
        self.W = max(self.W, W)
        for k, e in list(self.st.items()):
            if self.d["mode"] == "first_by_time" and not e.get("done") and e["ts_ms"] < self.W:
                self.emit(e)
                e["done"] = True
            if self.d["mode"] == "first_arrival" and "expire_after_ms" in self.d \
                    and e["ts_ms"] + self.d["expire_after_ms"] < self.W:
                del self.st[k]
