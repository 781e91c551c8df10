// The sessions of a step in the picture. Each key has its own, so there are no bands: the shades show, for every event
// time, what a session is whose last event was then.

import { colour } from "./canvas.js";
import { newestOf, spread } from "./spread.js";
import { hatched, reached } from "./windows.js";

export class Sessions {
  // `picture` has the columns, the scales and the chosen step.
  constructor(picture) {
    this.picture = picture;
    this.together = 1;
    const { step, stream, from, to, low, high } = picture;
    const known = picture.known.filter((record) => record.streams[stream]);
    const { gap_ms: gap, lateness_ms: lateness = 0 } = step;
    const first = known[0]?.batch > 0 ? [] : spread(known[0], { after: known[1], stream, range: high - low }).map(([ms]) => ms);
    const bottom = Math.max(low, Math.min(...first, first.length ? Infinity : low));
    let newest = -Infinity;
    // Each shade as [from, to, low, high] for every batch.
    this.shades = { open: [], correctable: [], forgotten: [] };
    reached(known, stream).forEach(([record, mark], at) => {
      newest = Math.max(newest, newestOf(record, stream) ?? -Infinity);
      const [start, end] = [Math.max(record.at, from), Math.min(known[at + 1]?.at ?? to, to)];
      if (!(end > start)) return;
      const ends = [newest, mark - gap, mark - gap - lateness, -Infinity].map((ms) => Math.min(newest, Math.max(bottom, ms)));
      Object.values(this.shades).forEach((shade, number) => {
        if (ends[number] > ends[number + 1]) shade.push([start, end, ends[number + 1], ends[number]]);
      });
    });
  }

  bands() {
    const { open, correctable, forgotten } = this.shades;
    this.shade(open, colour("band", 0.2));
    this.shade(correctable, colour("correctable", 0.28));
    this.shade(forgotten, hatched(this.picture.ink));
  }

  shade(parts, style) {
    // One path, so that there are no seams between batches.
    const { ink } = this.picture;
    ink.beginPath();
    for (const [start, end, low, high] of parts) {
      const [left, right, top, bottom] = [this.picture.x(start), this.picture.x(end), this.picture.y(high), this.picture.y(low)];
      ink.rect(left, top, right - left, bottom - top);
    }
    ink.fillStyle = style;
    ink.fill();
  }

  panes() {}
}
