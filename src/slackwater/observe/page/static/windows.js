// The windows of a step in the picture: bands of event time that open, fill, close, are corrected and are forgotten.

import { roundDistance, timeWithin } from "./axes.js";
import { colour } from "./canvas.js";
import { spread } from "./spread.js";

const LEAST_PX = 5; // windows that would be lower than this are drawn together,
const TOGETHER_PX = 16; // in bands that are at least so high
const APART = 14;
let hatch = null;

export function reached(known, stream) {
  // [record, its watermark]: before there is one it is -Infinity, and Infinity at the end of time.
  let before = -Infinity;
  return known.map((record) => {
    before = record.streams[stream].watermark ?? (before > -Infinity ? Infinity : before);
    return [record, before];
  });
}

export function hatched(ink) {
  // Drawn once per colour.
  const style = colour("gone", 0.4);
  if (hatch?.style !== style) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 7;
    const pen = tile.getContext("2d");
    pen.strokeStyle = style;
    for (const shift of [-7, 0, 7]) { pen.moveTo(shift - 1, 8); pen.lineTo(shift + 8, -1); }
    pen.stroke();
    hatch = { style, pattern: ink.createPattern(tile, "repeat") };
  }
  return hatch.pattern;
}

export class Windows {
  // `picture` has the columns, the scales and the chosen step.
  constructor(picture) {
    this.picture = picture;
    this.all = [];
    this.together = 1;
    const { step, stream, low, high } = picture;
    if (!step || !step.size_ms) return;
    const { offset_ms: offset = 0, lateness_ms: lateness = 0 } = step;
    const size = this.drawn(step.size_ms);
    this.together = Math.round(size / step.size_ms);
    const known = picture.known.filter((record) => record.streams[stream]);
    const when = (reached) => known.find(reached)?.at ?? Infinity;
    const marks = new Map(reached(known, stream));
    const mark = (record) => marks.get(record);
    const bottom = Math.floor((low - offset) / size) * size + offset;
    const opened = openings(known, stream, { size, lateness, bottom, high, range: high - low });
    for (let start = bottom; start < high; start += size) {
      const end = start + size;
      if (!opened.has(start)) continue;
      this.all.push({
        start,
        end,
        opened: opened.get(start),
        closed: when((record) => mark(record) >= end),
        gone: when((record) => mark(record) >= end + lateness),
      });
    }
    this.first = known[0]?.at;
  }

  drawn(size) {
    // The event time of a band: a window's, or that of several windows if each one would be too low to see.
    const pixels = (ms) => Math.abs(this.picture.y(this.picture.low) - this.picture.y(this.picture.low + ms));
    if (pixels(size) >= LEAST_PX) return size;
    const least = size * Math.ceil(TOGETHER_PX / pixels(size));
    const round = roundDistance(least);
    return round % size === 0 && round < 4 * least ? round : least;
  }

  bands() {
    for (const window of this.all) this.band(window);
  }

  band({ start, end, opened, closed, gone }) {
    const { ink, from, to, width } = this.picture;
    const [top, bottom] = [this.picture.y(end), this.picture.y(start)];
    const across = (first, last, style) => {
      const [left, right] = [this.picture.x(Math.max(first, from)), this.picture.x(Math.min(last, to))];
      if (!(right > left)) return;
      ink.fillStyle = style;
      ink.fillRect(left, top + 0.5, right - left, bottom - top - 1);
    };
    across(opened, Math.min(closed, gone), colour("band", 0.2));
    across(Math.max(opened, closed), gone, colour("correctable", 0.28));
    across(Math.max(opened, gone), to, hatched(ink));
    ink.strokeStyle = colour("line");
    ink.beginPath();
    ink.moveTo(this.picture.x(from), top);
    ink.lineTo(width, top);
    ink.stroke();
    if (opened > from && opened < Math.min(gone, to)) {
      ink.fillStyle = colour("band", 1);
      ink.fillRect(this.picture.x(opened) - 1, top + 0.5, 3, bottom - top - 1);
    }
  }

  name({ start, end, opened }) {
    // At its opening or the left edge, readable on any background.
    const { ink, from, width } = this.picture;
    const [top, bottom] = [this.picture.y(end), this.picture.y(start)];
    const at = this.picture.x(Math.max(opened, from)) + 7;
    if (bottom - top < 24 || !(at + 150 < width)) return;
    const { low, high } = this.picture;
    const text = `${timeWithin(start, low, high)} – ${timeWithin(end, low, high)}`;
    ink.textAlign = "left";
    ink.strokeStyle = colour("card");
    ink.lineWidth = 3;
    ink.strokeText(text, at, top + 14);
    ink.lineWidth = 1;
    ink.fillStyle = colour("ink");
    ink.fillText(text, at, top + 14);
  }

  panes() {
    // A dot for the on-time pane; a ring for a late one, where rows arrived for a complete window.
    const { ink, columns, step, stream } = this.picture;
    for (const window of this.all) this.name(window);
    for (const { end, opened, closed } of this.all) {
      if (closed === Infinity || closed === this.first || opened > closed) continue;
      ink.fillStyle = colour("mark");
      ink.beginPath();
      ink.arc(this.picture.x(closed), this.picture.y(end), 4.2, 0, 7);
      ink.fill();
    }
    const last = new Map(); // keeps rings apart, so that they can be distinguished
    columns.forEach((record, at) => {
      if (!this.all.length || !record.steps?.[step.name]?.refired) return;
      const around = { before: columns[at - 1], after: columns[at + 1], stream, range: this.picture.high - this.picture.low };
      const times = spread(record, around).map(([low, high]) => (low + high) / 2);
      const complete = this.all.filter(({ closed, gone }) => record.at > closed && record.at <= gone);
      const met = complete.filter(({ start, end }) => times.some((ms) => ms >= start && ms < end));
      // The bars of a replay leave out the last few rows, and some of those were for a complete window.
      for (const { start, end } of met.length || this.together > 1 ? met : complete.slice(-1)) {
        const x = this.picture.x(record.at);
        if (x - (last.get(start) ?? -Infinity) < APART) continue;
        last.set(start, x);
        this.ring(x, this.picture.y(end));
      }
    });
  }

  ring(x, y) {
    const { ink } = this.picture;
    ink.fillStyle = colour("card");
    ink.strokeStyle = colour("late");
    ink.lineWidth = 2;
    ink.beginPath();
    ink.arc(x, y, 3.6, 0, 7);
    ink.fill();
    ink.stroke();
    ink.lineWidth = 1;
  }
}

function openings(known, stream, { size, lateness, bottom, high, range }) {
  // When each window, by its start, had its first row: the bars of rows tell, and the newest events, which may be ahead.
  const found = new Map();
  const open = (first, last, at) => {
    const lowest = bottom + Math.floor((Math.max(first, bottom) - bottom) / size) * size;
    for (let start = lowest; start <= Math.min(last, high); start += size) if (!found.has(start)) found.set(start, at);
  };
  known.forEach((record, place) => {
    const { batch, at, streams } = record;
    const { partitions, watermark, oldest = null } = streams[stream];
    const newest = Object.values(partitions).map((part) => part.max_ts).filter((ms) => ms !== null);
    for (const ms of newest) open(ms, ms, at);
    if (oldest !== null && oldest >= bottom) open(oldest, oldest, at);
    for (const [low, last] of spread(record, { before: known[place - 1], after: known[place + 1], stream, range })) {
      // Where a bar's rows are is not known; one longer than a window is taken to be in several.
      open(last - Math.max(0, last - low - size), last, at);
    }
    // What the batches before the first one brought is not known.
    if (place === 0 && batch > 0 && watermark !== null) open(watermark - lateness, Math.max(...newest), at);
  });
  return found;
}
