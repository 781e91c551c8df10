// What became of the events, and the figures of the results, next to those before the last change.

import { bytes, count, duration, share } from "./format.js";

function element(kind, text, className = "") {
  const made = document.createElement(kind);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

export function drawAccount({ bar, parts, figures }, account, before) {
  const was = Object.fromEntries((before?.parts ?? []).map((part) => [part.name, part.rows]));
  const shown = account.parts.filter((part) => part.rows || was[part.name] || ["on_time", "corrected", "late"].includes(part.name));
  bar.replaceChildren(...shown.map((part) => {
    const piece = element("i", "", part.name);
    piece.style.width = `${(100 * part.rows) / Math.max(1, account.events)}%`;
    return piece;
  }));
  parts.replaceChildren(...shown.map((part) => {
    const item = document.createElement("li");
    item.title = part.help;
    item.dataset.account = part.name;
    item.append(element("i", "", part.name), `${part.label} `, element("b", count(part.rows)), ` (${share(part.rows / Math.max(1, account.events))})`);
    if (before && was[part.name] !== part.rows) item.append(element("span", ` was ${count(was[part.name])}`, "was"));
    return item;
  }));
  const rows = [
    ["delay of results p50", (each) => duration(each.delay_ms[0]), "From the end of a window to its result: half of the results are faster."],
    ["p95", (each) => duration(each.delay_ms[1]), "95 % of the results are faster."],
    ["p99", (each) => duration(each.delay_ms[2]), "99 % of the results are faster."],
    ["results per window", (each) => each.panes_per_window.toFixed(2), "More than one: early results and corrections."],
    ["oldest open window", (each) => duration(each.oldest_open_ms), "How long ago the oldest window without a result began."],
    ["largest state", (each) => bytes(each.state_bytes), "The most state that the windows held at once."],
  ];
  figures.replaceChildren(...rows.map(([term, value, help]) => {
    const pair = document.createElement("div");
    pair.title = help;
    pair.append(element("dt", term), element("dd", value(account)));
    if (before && value(before) !== value(account)) pair.append(element("dd", `was ${value(before)}`, "was"));
    return pair;
  }));
}
