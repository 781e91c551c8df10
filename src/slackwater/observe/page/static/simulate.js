// The simulator: controls, the address that stores them, and the page's picture of the result.

import { bytes, count, duration } from "./format.js";
import { Picture } from "./picture.js";
import { Controls } from "./simulate-controls.js";
import { drawAccount } from "./simulate-account.js";
import { Slack } from "./slack.js";
import { Strip } from "./strips.js";
import { followTheme } from "./theme.js";

const PAUSE_MS = 150;
const byId = (id) => document.getElementById(id);
const query = new URLSearchParams(location.search);
const token = query.get("token");

const state = { presets: {}, preset: "", shown: null, account: null, before: null };
const picture = new Picture(byId("picture"));
const slack = new Slack(byId("curve"), byId("slider"), byId("price"));
const of = (name, value) => [{ name, values: state.shown.records.map(value) }];
const strips = [
  new Strip(byId("latency"), { show: duration, series: () => of("p99", (record) => record.outputs.per_window?.p99 ?? null) }),
  new Strip(byId("lates"), { show: count, stacked: true, series: () => of("late", (record) => record.late) }),
  new Strip(byId("memory"), { show: bytes, series: () => of("state", (record) => record.steps.per_window?.bytes ?? 0) }),
];
const controls = new Controls({ pipeline: byId("pipeline"), events: byId("events"), trouble: byId("trouble") }, () => soon());

function address(path, settings) {
  const url = new URL(path, location.href);
  url.search = new URLSearchParams({ ...settings, ...(token === null ? {} : { token }) }).toString();
  return url;
}

async function begin() {
  let known;
  try {
    const answer = await fetch(address("api/controls", {}));
    if (!answer.ok) throw new Error(await answer.text());
    known = await answer.json();
  } catch (error) {
    failed(`The simulator does not respond: ${error.message}`);
    return;
  }
  state.presets = Object.fromEntries(known.presets.map((preset) => [preset.name, preset]));
  controls.build(known.controls);
  byId("presets").replaceChildren(...known.presets.map((preset) => {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", textContent: preset.name, title: preset.about });
    made.addEventListener("click", () => { state.before = null; state.account = null; choose(preset.name, {}); run(); });
    return made;
  }));
  const asked = Object.fromEntries([...query].filter(([name]) => !["token", "preset"].includes(name)));
  const wanted = query.get("preset") ?? known.default;
  choose(wanted in state.presets ? wanted : known.default, asked);
  // The server checks the settings in the address, so that a wrong one gives an error that says why.
  run({ ...(query.has("preset") ? { preset: wanted } : {}), ...asked });
}

function choose(name, changes) {
  state.preset = name;
  const preset = state.presets[name];
  controls.set({ ...preset.settings, ...changes }, preset.settings);
  for (const each of byId("presets").children) each.setAttribute("aria-pressed", String(each.textContent === name));
  for (const part of ["about", "look", "then"]) byId(part).textContent = preset[part];
}

function remedied() {
  const { remedy } = state.presets[state.preset];
  return Object.entries(remedy).every(([name, text]) => controls.values[name] === text);
}

function remember() {
  const preset = state.presets[state.preset];
  const asked = { preset: state.preset, ...controls.changes() };
  history.replaceState(null, "", address("", asked));
  const line = Object.entries(preset.remedy).map(([name, text]) => `${name} = ${text}`).join(", ");
  byId("remedy").textContent = remedied() ? `undo ${line}` : line;
  byId("remedy").setAttribute("aria-pressed", String(remedied()));
  const changes = Object.entries(controls.changes()).map(([name, text]) => `${name} = ${text} (was ${preset.settings[name]})`);
  byId("changed").hidden = changes.length === 0;
  byId("changed").querySelector("span").textContent = changes.join(", ");
  return asked;
}

let pause = 0;
let running = null;
function soon() {
  // A response in flight would reset the control to its previous value.
  running?.abort();
  clearTimeout(pause);
  pause = setTimeout(() => run(), PAUSE_MS);
}

async function run(asked = remember()) {
  running?.abort();
  const own = new AbortController();
  running = own;
  document.body.classList.add("busy");
  badge("", "simulating …");
  try {
    const answer = await fetch(address("api/simulation", asked), { signal: own.signal });
    const shown = await answer.json();
    if (shown.error) { failed(shown.error); return; }
    state.shown = shown;
    state.before = state.account;
    state.account = shown.account;
    controls.set(shown.settings, state.presets[state.preset].settings);
    remember();
    byId("error").hidden = true;
    badge("running", `${count(shown.account.events)} events, ${shown.records.length} batches`);
    slack.moved = false;
    draw();
  } catch (error) {
    if (error.name !== "AbortError") failed(`The simulator does not respond: ${error.message}`);
  } finally {
    if (running === own) document.body.classList.remove("busy");
  }
}

function failed(text) {
  byId("error").textContent = text;
  byId("error").hidden = false;
  badge("failed", "not simulated");
}

function badge(kind, text) {
  byId("state").className = `badge ${kind}`;
  byId("state").textContent = text;
}

let due = false;
function later() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => { due = false; draw(); });
}

function draw() {
  if (!state.shown) return;
  const { job, records, lateness } = state.shown;
  const from = records[0].at - records[0].seconds * 1000;
  const to = records.at(-1).at;
  const stream = job.streams[0];
  picture.draw(records, { stream: stream.name, step: job.steps[0], from, to });
  for (const strip of strips) strip.draw(records, from, to);
  const measured = lateness[stream.name];
  slack.draw({ points: measured?.points ?? [], p99_ms: measured?.p99_ms ?? 0, rows: measured?.rows ?? 0, slack_ms: stream.slack_ms });
  drawAccount({ bar: byId("bar"), parts: byId("parts"), figures: byId("figures") }, state.account, state.before);
}

followTheme(byId("theme"), later);
byId("remedy").addEventListener("click", () => {
  const preset = state.presets[state.preset];
  const names = Object.keys(preset.remedy);
  const undone = Object.fromEntries(names.map((name) => [name, preset.settings[name]]));
  controls.set({ ...controls.values, ...(remedied() ? undone : preset.remedy) }, preset.settings);
  run();
});
byId("reset").addEventListener("click", () => { choose(state.preset, {}); run(); });
new ResizeObserver(later).observe(document.body);
begin();
