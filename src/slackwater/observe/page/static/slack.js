// What another out-of-orderness would have cost, for the rows of this run.

import { duration, share } from "./format.js";
import { colour, paper } from "./canvas.js";

export class Slack {
  constructor(canvas, slider, price) {
    Object.assign(this, { canvas, slider, price, points: [], now: 0, moved: false });
    slider.addEventListener("input", () => { this.moved = true; this.redraw(); });
  }

  // `points` are [lateness_ms, share of rows later than that], `slack` is the setting, `p99` covers 99 % of the rows.
  draw({ points, slack_ms: slack, p99_ms: p99, rows }) {
    Object.assign(this, { points, slack, p99, rows });
    this.most = Math.max(1000, 2 * slack, 1.5 * (p99 || 0), ...points.slice(0, 1).map(([ms]) => ms));
    if (!this.moved) this.slider.value = String(Math.round(1000 * Math.sqrt(slack / this.most)));
    this.redraw();
  }

  // A square-root scale gives small durations more room.
  chosen() {
    const ms = ((Number(this.slider.value) / 1000) ** 2) * this.most;
    if (Math.abs(ms - this.slack) < this.most / 400) return this.slack;
    const unit = [3600000, 600000, 60000, 10000, 1000, 100, 10, 1].find((each) => each <= ms / 20) || 1;
    return Math.round(ms / unit) * unit;
  }

  later(ms) {
    let above = 1;
    if (!this.points.length) return 0;
    if (ms < this.points[0][0]) return this.points[0][2] ?? above;
    for (const [end, part] of this.points) {
      if (end > ms) break;
      above = part;
    }
    return above;
  }

  redraw() {
    const { ink, width, height } = paper(this.canvas);
    if (!this.rows) { this.price.textContent = "Nothing measured yet."; return; }
    const x = (ms) => 6 + Math.sqrt(Math.min(1, ms / this.most)) * (width - 12);
    const top = Math.max(0.01, this.later(0));
    const y = (part) => height - 16 - (Math.sqrt(part / top)) * (height - 30);
    ink.beginPath();
    ink.moveTo(x(0), y(this.later(0)));
    for (const [ms, part] of this.points) if (ms <= this.most) ink.lineTo(x(ms), y(part));
    ink.lineTo(x(this.most), y(this.later(this.most)));
    ink.strokeStyle = colour("late");
    ink.lineWidth = 2;
    ink.stroke();
    ink.lineWidth = 1;
    this.flag(ink, x(this.slack), height, "now", colour("soft"), 22);
    if (this.p99) this.flag(ink, x(this.p99), height, "p99", colour("s2"), 10);
    this.flag(ink, x(this.chosen()), height, "", colour("ink"), 0);
    ink.fillStyle = colour("soft");
    ink.textAlign = "left";
    this.text(ink, `${share(top)} behind the watermark`, 8, 10);
    ink.textAlign = "right";
    ink.fillText(duration(this.most), width - 6, height - 3);
    const ms = this.chosen();
    const longer = ms - this.slack;
    const delay = Math.abs(longer) < 1 ? "as they do now" : `${duration(Math.abs(longer))} ${longer > 0 ? "later" : "sooner"} than now`;
    this.price.textContent = `out_of_orderness="${duration(ms).replaceAll(" ", "").replace(".0s", "s")}": ${share(this.later(ms))} of the rows arrive after the watermark, results arrive ${delay}. Now: ${duration(this.slack)}, ${share(this.later(this.slack))}.`;
  }

  text(ink, text, x, y) {
    // With a rim, because the curve may be behind it.
    ink.strokeStyle = colour("card");
    ink.lineWidth = 4;
    ink.strokeText(text, x, y);
    ink.lineWidth = 1;
    ink.fillText(text, x, y);
  }

  flag(ink, x, height, text, style, top) {
    ink.strokeStyle = style;
    ink.beginPath();
    ink.moveTo(x, top);
    ink.lineTo(x, height - 14);
    ink.stroke();
    ink.fillStyle = style;
    ink.textAlign = x > 40 ? "right" : "left";
    this.text(ink, text, x + (x > 40 ? -3 : 3), top + 9);
  }
}
