"""Small, slow reference model of the semantics that the conformance cases fix (standard library only).

    python -m tests.conformance.reference                # check tests/conformance/cases
    python -m tests.conformance.reference -v folder      # check every case of a folder or file, naming each

Time rule used everywhere: the watermark W is EXCLUSIVE - "W" says that every event with
ts < W is believed to have been seen.
    window [s, e) becomes complete   when W >= e
    window [s, e) is forgotten       when W >= e + allowed_lateness
    a row of a row-level operator is late when ts < W
One step = one micro-batch: its rows are judged against the watermark in force when the step
starts, count triggers are looked at once after the last row, then the watermark is advanced.
"""
import copy
import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from tests.conformance.reference_rows import INF, NEG, Dedup, IntervalJoin, Op, TemporalJoin

# Points on which Beam, Flink, Spark and Kafka Streams differ; a case pins the ones it depends on in
# params.semantics, everything else is at this default.
DEFAULTS = {
    "session_touch": "merge",           # merge | separate: sessions [a,b) and [b,c)
    "session_lateness": "after_merge",  # after_merge | before_merge: is the merged or the single
                                        #   window compared with the watermark
    "on_time_pane": "always",           # always | if_new_data: accumulating on-time pane although
                                        #   nothing arrived since the last early pane
    "empty_on_time_pane": "skip",       # skip | emit: the same in discarding mode (empty value)
    "late_join_rows": "drop",           # drop | process
    "late_probe": "drop",               # drop | join: late left row of a temporal join
    "retract_unchanged": "skip",        # skip | emit: retract+emit although the value is equal
    "on_close": "discard",              # discard | flush: rows no trigger has shown when the
                                        #   window is forgotten
}


# ------------------------------------------------------------------------------ assignment
def floor_to(ts, step, offset):
    return offset + ((ts - offset) // step) * step


def assign(w, ts, gap=None):
    t, off = w["type"], w.get("offset_ms", 0)
    if t == "tumbling":
        s = floor_to(ts, w["size_ms"], off)
        return [(s, s + w["size_ms"])]
    if t == "hopping":
        out, s = [], floor_to(ts, w["slide_ms"], off)
        while s + w["size_ms"] > ts:
            out.append((s, s + w["size_ms"]))
            s -= w["slide_ms"]
        return sorted(out)
    if t == "cumulate":
        s = floor_to(ts, w["size_ms"], off)
        ends = range(s + w["slide_ms"], s + w["size_ms"] + 1, w["slide_ms"])
        return [(s, e) for e in ends if e > ts]
    if t == "session":
        return [(ts, ts + (w["gap_ms"] if gap is None else gap))]
    if t == "global":
        return [(NEG, INF)]
    raise ValueError(t)


def valid(w):
    t, off = w["type"], w.get("offset_ms", 0)
    if t == "tumbling":
        return w["size_ms"] > 0 and abs(off) < w["size_ms"]
    if t == "hopping":
        return w["size_ms"] > 0 and w["slide_ms"] > 0 and abs(off) < w["slide_ms"]
    if t == "session":
        return w["gap_ms"] > 0
    return True


def aggregate(name, vals):
    nn = [v for v in vals if v is not None]
    if name == "count":
        return len(vals)
    if name == "sum":
        return sum(nn) if nn else None
    if name == "max":
        return max(nn) if nn else None
    if name == "min":
        return min(nn) if nn else None
    if name == "avg":
        return sum(nn) / len(nn) if nn else None
    if name == "list":
        return sorted(vals, key=lambda v: (str(type(v)), v))
    if name == "count_sum":
        return {"count": len(vals), "sum": sum(nn) if nn else None}
    if name == "concat":                      # arrival order
        return "+".join(str(v) for v in vals)
    raise ValueError(name)


# ------------------------------------------------------------------------- windowed aggregate
class Win:
    def __init__(self, s, e):
        self.s, self.e = s, e
        self.all, self.new = [], []      # values kept / values since the last firing
        self.passed = False              # watermark has reached e
        self.done = False                # one-shot trigger used up
        self.shown = []                  # [(s, e, value)] that downstream currently holds
        self.due = None                  # next event-time / processing-time early firing


class WindowAgg(Op):
    def __init__(self, p, sem):
        super().__init__(p, sem)
        self.w, self.L = p["window"], p.get("allowed_lateness_ms", 0)
        self.trig = p.get("trigger") or {"type": "after_watermark"}
        self.acc, self.agg = p.get("accumulation", "accumulating"), p.get("agg", "count")
        self.keys = {}

    def row(self, key, s, e, value, pane, retract=False):
        self.out.append({"key": key, "window_start_ms": None if s == NEG else s,
                         "window_end_ms": None if e == INF else e,
                         "value": value, "pane": pane, "retract": retract})

    def fire(self, key, w, pane):
        vals = w.new if self.acc == "discarding" else w.all
        if not vals:
            if pane == "on_time" and self.sem["empty_on_time_pane"] == "emit":
                self.row(key, w.s, w.e, aggregate(self.agg, []), pane)
            return
        value = aggregate(self.agg, vals)
        if self.acc == "accumulating_retracting":
            if w.shown == [(w.s, w.e, value)] and self.sem["retract_unchanged"] == "skip":
                w.new = []
                return
            for s, e, v in w.shown:
                self.row(key, s, e, v, pane, True)
            w.shown = [(w.s, w.e, value)]
        self.row(key, w.s, w.e, value, pane)
        w.new = []
        if self.acc == "discarding":
            w.all = []
        if self.trig["type"] == "count" and not self.trig.get("repeat", True):
            w.done = True
        if self.trig["type"] == "after_watermark" and pane != "early" and "late" in self.trig \
                and self.trig["late"] is None:
            w.done = True

    def session(self, wins, s, e):
        touch = self.sem["session_touch"] == "merge"
        if self.sem["session_lateness"] == "before_merge" and e + self.L <= self.W:
            return None
        hit = [x for x in wins if (x.s <= e and s <= x.e if touch else x.s < e and s < x.e)]
        m = Win(min([s] + [x.s for x in hit]), max([e] + [x.e for x in hit]))
        if m.e + self.L <= self.W:
            return None
        for x in hit:
            m.all += x.all
            m.new += x.new
            m.shown += x.shown
            m.done = m.done or x.done
            m.due = x.due if m.due is None else min(m.due, x.due or INF)
            wins.remove(x)
        m.passed = m.e <= self.W
        wins.append(m)
        return m

    def batch(self, events):
        touched = []
        for ev in events:
            wins, hit = self.keys.setdefault(ev["key"], []), []
            for s, e in assign(self.w, ev["ts_ms"], ev.get("gap_ms")):
                if self.w["type"] == "session":
                    w = self.session(wins, s, e)
                elif e + self.L <= self.W:
                    w = None
                else:
                    w = next((x for x in wins if (x.s, x.e) == (s, e)), None)
                    if w is None:
                        w = Win(s, e)
                        w.passed = e <= self.W
                        wins.append(w)
                if w is not None:
                    hit.append(w)
            if not hit and assign(self.w, ev["ts_ms"], ev.get("gap_ms")):
                self.reject(ev)            # every window it belongs to is gone
            for w in hit:
                if not w.done:
                    w.all.append(ev["value"])
                    w.new.append(ev["value"])
                    if self.trig["type"] == "continuous_event_time" and w.due is None:
                        i = self.trig["interval_ms"]
                        w.due = ev["ts_ms"] - ev["ts_ms"] % i + i
                    touched.append((ev["key"], w))
        for key in self.keys:
            for w in self.keys[key]:
                if any(w is x for k, x in touched if k == key):
                    self.after_rows(key, w)

    def after_rows(self, key, w):
        t = self.trig
        if t["type"] in ("after_watermark", "continuous_event_time"):
            sub = t.get("late", {"type": "count", "n": 1}) if w.passed else t.get("early")
        else:
            sub = t
        if not sub or w.done:
            return
        if sub["type"] == "count" and len(w.new) >= sub["n"]:
            self.fire(key, w, "late" if w.passed else "early")
        if sub["type"] == "processing_time" and w.due is None:
            w.due = self.P + sub["delay_ms"]

    def tick(self, now):
        super().tick(now)
        if (self.trig.get("early") or {}).get("type") != "processing_time":
            return
        for key in self.keys:
            for w in self.keys[key]:
                while w.due is not None and w.due <= self.P:
                    if w.new and not w.passed:
                        self.fire(key, w, "early")
                    w.due += self.trig["early"]["delay_ms"]

    def advance(self, W):
        self.W = max(self.W, W)
        for key in self.keys:
            for w in sorted(self.keys[key], key=lambda x: (x.e, x.s)):
                if self.trig["type"] == "continuous_event_time" and not w.passed:
                    while w.due is not None and w.due < self.W and w.due < w.e - 1:
                        self.fire(key, w, "early")
                        w.due += self.trig["interval_ms"]
                if w.e <= self.W and not w.passed:
                    w.passed = True
                    if self.trig["type"] != "count" and not w.done:
                        if w.new or self.sem["on_time_pane"] == "always" or self.acc == "discarding":
                            self.fire(key, w, "on_time")
                if w.e + self.L <= self.W:
                    if self.sem["on_close"] == "flush" and w.new and not w.done:
                        self.fire(key, w, "late")
                    self.keys[key].remove(w)


class CountWindow(Op):
    """Windows of a number of rows per key, in arrival order: window i = rows [i*slide, i*slide+size)."""

    def __init__(self, p, sem):
        super().__init__(p, sem)
        self.rows = {}

    def batch(self, events):
        w = self.p["window"]
        for e in events:
            rows = self.rows.setdefault(e["key"], [])
            rows.append(e["value"])
            i = len(rows) - w["size"]
            if i >= 0 and i % w["slide"] == 0:
                self.out.append({"key": e["key"], "window_index": i // w["slide"],
                                 "value": aggregate(self.p["agg"], rows[i:])})

    def advance(self, W):
        pass


OPS = {"window_agg": WindowAgg, "interval_join": IntervalJoin, "temporal_join": TemporalJoin,
       "dedup": Dedup}


# ------------------------------------------------------------------------------------ runner
def canon(rows, unsure=()):
    def norm(v):
        if isinstance(v, dict):
            return {k: norm(x) for k, x in v.items() if k not in unsure}
        if isinstance(v, list):
            return sorted((norm(x) for x in v), key=lambda x: json.dumps(x, sort_keys=True))
        return v
    return sorted(json.dumps(norm(r), sort_keys=True) for r in rows)


def run_case(c: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Disagreements between the case and the model; [] = reproduced."""
    p = c["params"]
    sem = dict(DEFAULTS, **p.get("semantics", {}))
    bad = []
    if c["operator"] == "assign":
        if not valid(p["window"]) != bool(c.get("expect_invalid")):
            bad.append((0, "validity", c.get("expect_invalid"), valid(p["window"])))
        for i, st in enumerate(c["steps"]):
            got = sorted(assign(p["window"], st["events"][0]["ts_ms"]))
            if got != sorted(map(tuple, st["expect_windows"])):
                bad.append((i, "windows", st["expect_windows"], got))
        return bad
    cls = OPS[c["operator"]]
    if cls is WindowAgg and p["window"]["type"] == "count":
        cls = CountWindow
    op = cls(copy.deepcopy(p), sem)
    if p.get("initial_watermark_ms") is not None:
        op.advance(p["initial_watermark_ms"])
    for i, st in enumerate(c["steps"]):
        op.out, op.late = [], []
        op.batch(copy.deepcopy(st["events"]))
        if st.get("processing_time_ms") is not None:
            op.tick(st["processing_time_ms"])
        if st.get("watermark_ms") is not None:
            op.advance(st["watermark_ms"])
        if canon(op.out) != canon(st["expect"]):
            bad.append((i, "rows", canon(st["expect"]), canon(op.out)))
        if canon(op.late) != canon(st["late"]):
            bad.append((i, "late", canon(st["late"]), canon(op.late)))
    return bad


def load(paths: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for p in paths:
        fs = [p] if p.endswith(".json") else sorted(
            os.path.join(p, f) for f in os.listdir(p) if f.endswith(".json"))
        for f in fs:
            with open(f) as fh:
                for c in json.load(fh):
                    yield f, c


def main(argv):
    n = fail = 0
    for f, c in load([a for a in argv if a != "-v"] or ["tests/conformance/cases"]):
        n += 1
        bad = run_case(c)
        fail += bool(bad)
        if bad:
            print("DISAGREE %s (%s)" % (c["id"], f))
            for b in bad:
                print("   step %d %s\n      case : %s\n      model: %s" % b)
        elif "-v" in argv:
            print("ok       " + c["id"])
    print("%d cases, %d disagreements" % (n, fail))
    return 1 if fail else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
