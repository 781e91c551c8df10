// The picture of the watermark: processing time on the x axis, event time on the y axis.

import { days, timeTicks, timeWithin } from "./axes.js";
import { count, duration, moment } from "./format.js";
import { colour, hinted, paper } from "./canvas.js";
import { Sessions } from "./sessions.js";
import { behind, isCoarse, newestOf, quantile, spread } from "./spread.js";
import { Windows } from "./windows.js";

const MARGIN = { left: 84, right: 10, top: 32, bottom: 42 };
const [NEAR_MS, BRIEF_MS] = [60000, 10000]; // a picture of some seconds or more has the clock in it if that is so near
const colourOf = {};

export class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    this.records = [];
    this.cursor = null;
    this.caption = document.getElementById("picture-text");
    hinted(canvas, (x) => this.hovered(x));
    canvas.addEventListener("pointerleave", () => { this.cursor = null; this.redraw(); });
    canvas.addEventListener("keydown", (event) => this.pressed(event));
  }

  draw(records, { stream, step, from, to, known = records }) {
    // `known` are also the batches before the view, in which its windows may have opened.
    Object.assign(this, { records, stream, step, from, to, known });
    this.redraw();
  }

  redraw() {
    const { ink, width, height } = paper(this.canvas);
    Object.assign(this, { ink, width, height });
    this.columns = this.records.filter((record) => record.streams[this.stream]);
    this.range();
    if (this.low === undefined) {
      ink.fillStyle = colour("soft");
      ink.fillText("No events yet. The first batch takes a few seconds.", MARGIN.left, height / 2);
      return;
    }
    this.dots = []; // where late rows are drawn
    ink.save();
    ink.beginPath();
    ink.rect(MARGIN.left, MARGIN.top, width - MARGIN.left - MARGIN.right, height - MARGIN.top - MARGIN.bottom);
    ink.clip();
    const windows = this.step?.gap_ms ? new Sessions(this) : new Windows(this);
    this.windows = windows;
    windows.bands();
    this.cloud();
    this.diagonal();
    if (this.cursor !== null) this.partitions();
    this.watermark();
    windows.panes();
    ink.restore();
    this.marks();
    this.axes();
    this.say();
  }

  x(ms) { return MARGIN.left + ((ms - this.from) / (this.to - this.from || 1)) * (this.width - MARGIN.left - MARGIN.right); }

  y(ms) { return this.height - MARGIN.bottom - ((ms - this.low) / (this.high - this.low || 1)) * (this.height - MARGIN.top - MARGIN.bottom); }

  range() {
    // Event times to show: the newest, the watermark, windows that can still be corrected, and most late rows.
    const tops = this.columns.map((record) => newestOf(record, this.stream)).filter((ms) => ms !== null);
    if (!tops.length) { this.low = undefined; return; }
    const span = this.to - this.from;
    let high = Math.max(...tops);
    // A replay is far behind the clock; the diagonal would only squeeze everything else.
    this.follows = this.to - high < 2 * span + (span < BRIEF_MS ? 0 : NEAR_MS);
    if (this.follows) high = Math.max(high, this.to);
    let low = Math.min(...tops, high - (this.follows ? Math.max(1000, span / 4) : 10));
    for (const record of this.columns) {
      const { watermark } = record.streams[this.stream];
      if (watermark !== null) low = Math.min(low, watermark);
    }
    // What would make the rest small is left out.
    const floor = Math.min(high - 3 * Math.max(high - low, this.follows ? NEAR_MS : 10), this.follows ? high : 2 * this.bottom() - high);
    for (const ms of this.lows()) if (ms >= floor) low = Math.min(low, ms);
    const room = (high - low) * 0.05;
    Object.assign(this, { low: low - room, high: high + room, least: low, days: days(low, high) });
  }

  lows() {
    const oldest = (record) => record.now - (quantile(record.streams[this.stream].ages, 0.995) ?? -Infinity);
    const rows = this.columns.flatMap((record, at) => (this.follows ? [oldest(record)] : this.behind(at).map(([ms]) => ms)));
    // Before the first row of a job there are no windows.
    const begin = this.known[0]?.batch === 0 && this.known[0].streams[this.stream] ? Math.min(oldest(this.known[0]), ...rows) : -Infinity;
    const marks = this.columns.map((record) => record.streams[this.stream].watermark).filter((ms) => ms !== null);
    return [...rows, ...marks.map((ms) => Math.max(begin, ms - (this.step ? this.step.lateness_ms : 0)))];
  }

  behind(at) {
    if (!this.columns[at].streams[this.stream].behind) return [];
    return behind(this.columns[at], { before: this.columns[at - 1], after: this.columns[at + 1], stream: this.stream });
  }

  bottom() {
    // Where the rows of a replay begin, but for a few.
    const bars = this.columns.flatMap((_, at) => this.behind(at)).map(([low, , rows]) => [null, -low, rows]);
    const found = quantile(bars.sort(([, one], [, other]) => one - other), 0.98);
    return found === null ? Infinity : -found;
  }

  bars(at) {
    const [before, after] = [this.columns[at - 1], this.columns[at + 1]];
    return spread(this.columns[at], { before, after, stream: this.stream, range: this.high - this.low });
  }

  line(value) {
    // A step line that moves when a batch ends: the [x, y] of its corners.
    const points = [];
    let last = null;
    for (const record of this.columns) {
      const ms = value(record);
      if (ms === null || ms === undefined) { last = null; continue; }
      if (last !== null) points.push([this.x(record.at), this.y(last)]);
      points.push([this.x(record.at), this.y(ms)]);
      last = ms;
    }
    if (last !== null) points.push([this.x(this.to), this.y(last)]);
    return points;
  }

  trace(points) {
    this.ink.beginPath();
    points.forEach(([x, y], at) => (at ? this.ink.lineTo(x, y) : this.ink.moveTo(x, y)));
  }

  cloud() {
    const ink = this.ink;
    const cloud = colour("cloud", 1);
    colourOf.late = colour("late");
    const columns = this.columns;
    const all = columns.map((record, at) => this.bars(at));
    const density = ([low, high, rows]) => rows / Math.max(1, high - low);
    const most = Math.max(1e-9, ...all.flatMap((bars) => bars.map(density)));
    columns.forEach((record, at) => {
      const right = this.x(record.at);
      const left = Math.min(right - 1.5, at ? this.x(columns[at - 1].at) : this.x(record.at - record.seconds * 1000));
      const before = at ? columns[at - 1].streams[this.stream].watermark : null;
      let unseen = isCoarse(record, this.stream, this.high - this.low) ? this.lates(record) : 0;
      for (const bar of all[at]) {
        const [low, high, rows] = bar;
        if (before !== null && (low + high) / 2 < before) {
          // A bar's rows may be anywhere in it; those behind the watermark are below it.
          this.lit(record.batch, rows, left, right, Math.min(high, before), low);
          unseen = 0;
          continue;
        }
        const [top, bottom] = [this.y(high), this.y(low)];
        ink.globalAlpha = 0.08 + 0.84 * Math.log1p(1000 * (density(bar) / most)) / Math.log1p(1000);
        ink.fillStyle = cloud;
        ink.fillRect(left, top, Math.max(1, right - left - 0.4), Math.max(1.5, bottom - top));
      }
      // The bars of a replay leave out the last few rows: those are known by their number alone.
      if (before !== null && unseen) this.lit(record.batch, unseen, left, right, before, Math.min(before - 1, this.lowest(at)));
    });
    ink.globalAlpha = 1;
  }

  lates(record) {
    // A row may be late for several steps, whichever one is chosen.
    return Math.max(0, ...Object.values(record.steps ?? {}).map((step) => (step.late ?? 0) + (step.refired ?? 0)));
  }

  lowest(at) {
    const { watermark } = this.columns[at - 1].streams[this.stream];
    return Math.max(this.low, watermark - Math.max(this.step?.lateness_ms ?? 0, 0.06 * (this.high - this.low)));
  }

  lit(batch, rows, left, right, high, low) {
    // A sample of the rows behind the watermark; their positions within the bar are not known.
    const { ink } = this;
    const [top, bottom] = [this.y(high), this.y(Math.max(low, this.least))];
    const room = Math.max(1, Math.round((right - left) / 3));
    const dots = Math.min(rows, room, 2 + Math.round(Math.log2(rows + 1)));
    for (let dot = 0; dot < dots; dot += 1) {
      const [across, up] = [scatter(batch, dot, top), scatter(batch, dot + 50, bottom)];
      const [x, y] = [left + across * (right - left), top + Math.max(3, up * (bottom - top))];
      this.dots.push([x, y, top]);
      ink.fillStyle = colourOf.late;
      ink.globalAlpha = 0.25;
      ink.beginPath();
      ink.arc(x, y, 4.5, 0, 7);
      ink.fill();
      ink.globalAlpha = 1;
      ink.beginPath();
      ink.arc(x, y, 1.9, 0, 7);
      ink.fill();
    }
  }

  diagonal() {
    if (!this.follows) return;
    const ink = this.ink;
    ink.setLineDash([6, 5]);
    ink.strokeStyle = colour("now");
    ink.lineWidth = 1.5;
    this.trace([[this.x(this.from), this.y(this.from)], [this.x(this.to), this.y(this.to)]]);
    ink.stroke();
    ink.setLineDash([]);
  }

  partitions() {
    const names = new Set(this.columns.flatMap((record) => Object.keys(record.streams[this.stream].partitions)));
    [...names].slice(0, 24).forEach((name, number) => {
      this.ink.strokeStyle = colour(`s${number % 6}`);
      this.ink.lineWidth = 1;
      this.trace(this.line((record) => record.streams[this.stream].partitions[name]?.max_ts ?? null));
      this.ink.stroke();
    });
    const record = this.records[this.cursor];
    if (!record) return;
    this.ink.strokeStyle = colour("soft");
    this.trace([[this.x(record.at), 0], [this.x(record.at), this.height]]);
    this.ink.stroke();
  }

  watermark() {
    this.ink.strokeStyle = colour("mark");
    this.ink.lineWidth = 2.6;
    this.ink.lineJoin = "round";
    this.trace(this.line((record) => record.streams[this.stream].watermark));
    this.ink.stroke();
    this.ink.lineWidth = 1;
  }

  marks() {
    const ink = this.ink;
    for (const record of this.columns) {
      const own = record.streams[this.stream];
      const dead = Object.values(own.dead).reduce((sum, rows) => sum + rows, 0) - own.ahead;
      const x = this.x(record.at);
      if (dead > 0) {
        ink.fillStyle = colour("dead");
        ink.beginPath();
        ink.arc(x, this.height - MARGIN.bottom + 6, Math.min(5, 2 + Math.log10(dead + 1)), 0, 7);
        ink.fill();
      }
      if (own.ahead > 0) {
        ink.fillStyle = colour("ahead");
        ink.save();
        ink.translate(x, MARGIN.top - 6);
        ink.rotate(Math.PI / 4);
        ink.fillRect(-3.5, -3.5, 7, 7);
        ink.restore();
      }
    }
  }

  axes() {
    const { ink, low, high, from, to } = this;
    const [bottom, right] = [this.height - MARGIN.bottom, this.width - MARGIN.right];
    ink.fillStyle = colour("soft");
    ink.strokeStyle = colour("line");
    ink.strokeRect(MARGIN.left, MARGIN.top, right - MARGIN.left, bottom - MARGIN.top);
    this.ticks = { event: timeTicks(low, high, (bottom - MARGIN.top) / 45), processing: timeTicks(from, to, (right - MARGIN.left) / 110) };
    ink.textAlign = "right";
    for (const { ms, text } of this.ticks.event) {
      this.tick(MARGIN.left - 4, this.y(ms), MARGIN.left, this.y(ms));
      ink.fillText(text, MARGIN.left - 7, this.y(ms) + 4);
    }
    ink.textAlign = "center";
    for (const { ms, text } of this.ticks.processing) {
      this.tick(this.x(ms), bottom, this.x(ms), bottom + 4);
      const half = ink.measureText(text).width / 2;
      ink.fillText(text, Math.min(right - half, Math.max(MARGIN.left + half, this.x(ms))), bottom + 22);
    }
    // The titles are outside the picture, so that no colour is behind them.
    ink.fillStyle = colour("ink");
    ink.textAlign = "left";
    ink.fillText(`↑ event time, ${this.days} UTC`, 4, 12);
    ink.textAlign = "right";
    ink.fillText(`processing time, ${days(from, to)} UTC →`, right, this.height - 6);
  }

  tick(x, y, toX, toY) {
    this.trace([[x, y], [toX, toY]]);
    this.ink.stroke();
  }

  nearest(x) {
    let best = null;
    this.records.forEach((record, at) => {
      if (record.streams[this.stream] && (best === null || Math.abs(this.x(record.at) - x) < Math.abs(this.x(this.records[best].at) - x))) best = at;
    });
    return best;
  }

  hovered(x) {
    const at = this.nearest(x);
    if (at === null || this.low === undefined) return "";
    if (at !== this.cursor) { this.cursor = at; this.redraw(); }
    return this.summary(at);
  }

  summary(at) {
    const record = this.records[at];
    const own = record.streams[this.stream];
    const lines = [`batch ${record.batch}, ${timeWithin(record.at, this.from, this.to)} UTC: ${count(own.rows)} rows`];
    const hadOne = this.records.slice(0, at).some((before) => before.streams[this.stream]?.watermark != null);
    lines.push(own.watermark === null ? (hadOne ? "watermark at the end of time" : "no watermark yet") : `watermark ${moment(own.watermark)}, ${duration(record.at - own.watermark)} behind the clock`);
    if (own.held_by) lines.push(`held back by partition ${own.held_by}`);
    if (own.aside && Object.keys(record.streams).length > 1) lines.push(`set aside: ${own.aside}`);
    if (own.waits) lines.push(`waiting: ${duration(own.waits.by_ms)} ahead of ${own.waits.of}`);
    const parts = Object.entries(own.partitions).slice(0, 6);
    for (const [name, part] of parts) lines.push(`${name}: ${part.finished ? "finished, " : part.idle ? "idle, " : ""}newest event ${part.max_ts === null ? "none" : timeWithin(part.max_ts, this.low, this.high)}`);
    for (const [reason, rows] of Object.entries(own.dead)) lines.push(`${count(rows)} dead: ${reason}`);
    const step = this.step && record.steps?.[this.step.name];
    if (step?.refired) lines.push(`${count(step.refired)} rows corrected windows of ${this.step.name}`);
    if (step?.late) lines.push(`${count(step.late)} rows too late for ${this.step.name}`);
    return lines.join("\n");
  }

  pressed(event) {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move || !this.records.length) return;
    event.preventDefault();
    const from = this.cursor === null ? this.records.length : this.cursor;
    this.cursor = Math.max(0, Math.min(this.records.length - 1, from + move));
    if (!this.records[this.cursor].streams[this.stream]) return;
    this.redraw();
    this.caption.textContent = this.summary(this.cursor).replaceAll("\n", "; ");
  }

  say() {
    if (document.activeElement === this.canvas && this.cursor !== null) return;
    const last = this.columns.at(-1);
    const own = last.streams[this.stream];
    const lateIn = (record) => (this.step ? record.steps?.[this.step.name]?.late ?? 0 : record.late);
    const late = this.columns.reduce((sum, record) => sum + lateIn(record), 0);
    const lag = own.watermark === null ? "" : ` The watermark is ${duration(Math.abs(last.at - own.watermark))} ${own.watermark > last.at ? "ahead of" : "behind"} the clock.`;
    const far = this.follows ? "" : ` These events are ${duration(last.at - this.high)} old: the clock is not in the picture.`;
    const what = late === 1 ? "1 row in this picture was" : `${count(late)} rows in this picture were`;
    const many = this.step?.gap_ms ? ` A session of ${this.step.name} ends ${duration(this.step.gap_ms)} after its last event; the shades show what it is then.` : this.windows.together > 1 ? ` Each band stands for ${count(this.windows.together)} windows of ${duration(this.step.size_ms)}.` : "";
    this.caption.textContent = `${what} too late for ${this.step ? this.step.name : "its step"}.${lag}${far}${many}`;
  }
}

function scatter(batch, dot, place) {
  // The same position every time the picture is drawn.
  const mixed = Math.sin(batch * 12.9898 + dot * 78.233 + Math.round(place) * 0.01) * 43758.5453;
  return mixed - Math.floor(mixed);
}
