// Small charts over time: lines, and stacked bars.

import { timeWithin } from "./axes.js";
import { colour, hinted, paper, ticks } from "./canvas.js";

const LEFT = 46; // the minimum: longer labels get more
const BELOW = 16;

export class Strip {
  // `series` is a function from the shown records to [{name, values}], one value per record.
  constructor(canvas, { series, stacked = false, show }) {
    Object.assign(this, { canvas, series, stacked, show, records: [], lines: [] });
    hinted(canvas, (x) => this.text(x));
  }

  draw(records, from, to) {
    Object.assign(this, { records, from, to });
    const { ink, width, height } = paper(this.canvas);
    this.width = width;
    this.lines = this.series(records);
    const totals = records.map((_, at) => this.lines.reduce((sum, line) => {
      const value = line.values[at] || 0;
      return this.stacked ? sum + value : Math.max(sum, value);
    }, 0));
    const largest = Math.max(...totals, 0) * 1.08 || 1;
    const y = (value) => height - BELOW - (value / largest) * (height - BELOW - 6);
    const marks = ticks(largest, 3, this.show);
    this.left = Math.max(LEFT, ...marks.map((value) => Math.ceil(ink.measureText(this.show(value)).width) + 9));
    this.axes(ink, width, height, marks, y);
    if (this.stacked) this.bars(ink, y);
    else this.lines.forEach((line, number) => this.line(ink, line.values, colour(`s${number % 6}`), y));
    this.canvas.setAttribute("aria-description", this.text(width - 1) || "no data yet");
  }

  x(ms) { return this.left + ((ms - this.from) / (this.to - this.from || 1)) * (this.width - this.left - 4); }

  axes(ink, width, height, marks, y) {
    ink.strokeStyle = colour("grid");
    ink.fillStyle = colour("soft");
    ink.textAlign = "right";
    for (const value of marks) {
      ink.beginPath();
      ink.moveTo(this.left, y(value));
      ink.lineTo(width, y(value));
      ink.stroke();
      ink.fillText(this.show(value), this.left - 5, y(value) + 4);
    }
    ink.textAlign = "left";
    ink.fillText(timeWithin(this.from, this.from, this.to), this.left, height - 3);
    ink.textAlign = "right";
    ink.fillText(timeWithin(this.to, this.from, this.to), width - 2, height - 3);
  }

  line(ink, values, style, y) {
    ink.strokeStyle = style;
    ink.lineWidth = 1.6;
    ink.beginPath();
    const isThere = (at) => values[at] !== null && values[at] !== undefined;
    const alone = [];
    values.forEach((value, at) => {
      if (!isThere(at)) return;
      const x = this.x(this.records[at].at);
      if (isThere(at - 1)) ink.lineTo(x, y(value)); else ink.moveTo(x, y(value));
      if (!isThere(at - 1) && !isThere(at + 1)) alone.push([x, y(value)]);
    });
    ink.stroke();
    ink.fillStyle = style;
    for (const [x, top] of alone) { // a line with one point would be invisible
      ink.beginPath();
      ink.arc(x, top, 2, 0, 7);
      ink.fill();
    }
    ink.lineWidth = 1;
  }

  bars(ink, y) {
    this.records.forEach((record, at) => {
      const right = this.x(record.at);
      const wide = Math.max(1, right - Math.max(this.left, this.x(record.at - record.seconds * 1000)) - 0.5);
      if (right < this.left) return;
      let below = 0;
      this.lines.forEach((line, number) => {
        const value = line.values[at] || 0;
        ink.fillStyle = colour(`s${number % 6}`);
        ink.fillRect(right - wide, y(below + value), wide, y(below) - y(below + value));
        below += value;
      });
    });
  }

  text(x) {
    if (!this.records.length) return "";
    let best = 0;
    this.records.forEach((record, at) => {
      if (Math.abs(this.x(record.at) - x) < Math.abs(this.x(this.records[best].at) - x)) best = at;
    });
    const record = this.records[best];
    const parts = this.lines.map((line) => `${line.name}: ${this.show(line.values[best] || 0)}`);
    return [`batch ${record.batch}, ${timeWithin(record.at, this.from, this.to)} UTC`, ...parts].join("\n");
  }
}
