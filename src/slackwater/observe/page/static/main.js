// The page: listens to the job, keeps a bounded number of records, and draws those in view.

import { bytes, count, duration, moment } from "./format.js";
import { Picture } from "./picture.js";
import { Slack } from "./slack.js";
import { starting } from "./starting.js";
import { Strip } from "./strips.js";
import { element, tables } from "./tables.js";
import { followTheme } from "./theme.js";

const MOST_RECORDS = 20000;
const MOST_BEFORE = 500;
const MOST_SAMPLES = 100;
const MOST_QUIET_MS = 60000; // a batch that takes longer is shown as trouble
const PLAN_SHRINKS = 1.3; // a plan this much wider than its place can still be read; a wider one
const PLAN_SCROLLS = 1.1; // is shrunk by this much, and scrolls
const byId = (id) => document.getElementById(id);
const query = new URLSearchParams(location.search);
const carried = ["token"].filter((name) => query.has(name)).map((name) => [name, query.get(name)]);

const state = { job: null, records: [], view: [], samples: [], lateness: {}, live: true, lost: false, refused: "", selected: query.get("job") };
const picture = new Picture(byId("picture"));
const slack = new Slack(byId("curve"), byId("slider"), byId("price"));
const named = (names, value) => names.map((name) => ({ name, values: state.view.map((record) => value(record, name)) }));
const keys = (value) => [...new Set(state.view.flatMap((record) => Object.keys(value(record))))];
const strips = {
  phases: new Strip(byId("phases"), { stacked: true, show: (s) => `${s.toFixed(s < 1 ? 2 : 1)} s`, series: () => named(keys((r) => r.phases), (r, name) => r.phases[name] || 0) }),
  throughput: new Strip(byId("throughput"), { show: count, series: () => named(["rows per second"], (r) => r.rows / Math.max(0.001, r.seconds)) }),
  latency: new Strip(byId("latency"), { show: duration, series: () => named(keys((r) => r.outputs).filter((name) => state.view.some((r) => r.outputs[name]?.p99 != null)), (r, name) => r.outputs[name]?.p99 ?? null) }),
  memory: new Strip(byId("memory"), { stacked: false, show: bytes, series: () => named(keys((r) => r.steps), (r, name) => r.steps[name]?.bytes ?? null) }),
};

function address(path) {
  const url = new URL(path, location.href);
  for (const [name, value] of carried) url.searchParams.set(name, value);
  if (state.selected) url.searchParams.set("job", state.selected);
  return url;
}

async function fetched(path) {
  const answer = await fetch(address(path));
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

async function begin() {
  const kept = byId("data");
  if (kept) { // one file, without a server
    const all = JSON.parse(kept.textContent);
    Object.assign(state, { job: all.job, records: all.records, samples: all.samples ?? [], lateness: all.lateness, live: false });
    introduce();
    draw();
    return;
  }
  try {
    const jobs = await fetched("api/jobs");
    choose(jobs);
    await loaded();
  } catch (error) {
    badge("lost", "not reachable; retrying");
    setTimeout(begin, 2000);
    return;
  }
  introduce();
  draw();
  listen();
}

function choose(jobs) {
  const box = byId("jobs");
  box.hidden = jobs.length < 2;
  const order = (job) => (job.state === "running" ? 0 : 1);
  const sorted = jobs.map((job, at) => ({ ...job, at })).sort((one, other) => order(one) - order(other) || one.at - other.at);
  state.selected = state.selected || sorted[0].name;
  fill(box.querySelector("select"), sorted.map((job) => [job.name, `${job.name} (${job.state})`]), state.selected);
  box.querySelector("select").onchange = (event) => {
    query.set("job", event.target.value);
    location.search = query.toString();
  };
}

function fill(select, options, chosen) {
  select.replaceChildren(...options.map(([value, text]) => {
    const option = document.createElement("option");
    [option.value, option.textContent, option.selected] = [value, text, value === chosen];
    return option;
  }));
}

function introduce() {
  const { job } = state;
  document.title = `${job.pipeline} · Slackwater`;
  byId("name").textContent = job.pipeline;
  fill(byId("stream"), job.streams.map((stream) => [stream.name, stream.name]), byId("stream").value);
  const windows = job.steps.filter((step) => step.size_ms || step.gap_ms || step.lateness_ms);
  fill(byId("step"), [...windows.map((step) => [step.name, step.name]), ["", "no step"]], byId("step").value || windows[0]?.name || "");
  drawPlan(job);
}

let shownPlan = "";
function drawPlan({ pipeline, svg, svg_upright: upright }) {
  // From left to right if that is readable in the width there is; else from top to bottom.
  byId("plan").hidden = !svg;
  if (!svg) return;
  const figure = byId("plan").querySelector("figure");
  const widthOf = (drawn) => Number(/ width="(\d+)"/.exec(drawn)?.[1] ?? 0);
  const isReadable = (drawn) => widthOf(drawn) <= PLAN_SHRINKS * figure.clientWidth;
  const chosen = !upright || isReadable(svg) || widthOf(upright) >= widthOf(svg) ? svg : upright;
  figure.style.setProperty("--least", isReadable(chosen) ? "0" : `${Math.round(widthOf(chosen) / PLAN_SCROLLS)}px`);
  if (shownPlan === chosen) return;
  shownPlan = chosen;
  const image = new Image();
  image.alt = `Plan of ${pipeline}`;
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(chosen)}`;
  figure.replaceChildren(image);
}

async function loaded() {
  state.job = await fetched("api/job");
  state.records = await fetched("api/history");
  state.lateness = await fetched("api/lateness");
  state.samples = await fetched("api/samples");
}

async function caughtUp({ last: [at, batch], ...known }) {
  // Batches may have been missed: before the first event, or while the connection was lost.
  Object.assign(state.job, known);
  const mine = state.records.at(-1);
  if (!mine || mine.at < at || mine.batch !== batch) await loaded().catch(() => {});
  later();
}

function listen() {
  const events = new EventSource(address("api/events"));
  events.onmessage = (event) => {
    const record = JSON.parse(event.data);
    if (record.last) { caughtUp(record); return; }
    if (record.lateness) state.lateness = record.lateness;
    if (record.samples) state.samples = [...state.samples, ...record.samples].slice(-MOST_SAMPLES);
    if (record.state) Object.assign(state.job, record);
    if (record.streams && record.batch === undefined) introduce(); // restarted, maybe with other steps
    if (record.batch === undefined) { later(); return; }
    if (state.records.length && record.batch <= state.records.at(-1).batch && record.at <= state.records.at(-1).at) return;
    delete record.samples;
    delete record.lateness;
    state.records.push(record);
    if (state.records.length > MOST_RECORDS) state.records.splice(0, state.records.length - MOST_RECORDS);
    later();
  };
  events.onopen = () => { Object.assign(state, { live: true, lost: false, refused: "" }); later(); };
  events.onerror = () => {
    state.lost = state.job.state === "running";
    later();
    if (events.readyState === EventSource.CLOSED) refused();
  };
}

async function refused() {
  // An EventSource does not say why it was refused; a plain request does.
  const asking = new AbortController();
  const answer = await fetch(address("api/events"), { signal: asking.signal }).catch(() => null);
  state.refused = answer?.status === 503 ? await answer.text() : "";
  asking.abort();
  later();
  setTimeout(begin, state.refused ? 15000 : 2000);
}

let due = false;
function later() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => { due = false; draw(); });
}

function draw() {
  const { job, records } = state;
  if (!job) return;
  const span = Number(byId("span").value) * 1000;
  const newest = records.at(-1)?.at ?? Date.now();
  const oldest = records.length ? records[0].at - records[0].seconds * 1000 : newest;
  const end = state.live && job.state === "running" ? Math.max(newest, Math.min(Date.now(), newest + 30000)) : newest;
  const place = Number(byId("scroll").value);
  const to = place >= 1 || end - oldest <= span ? end : oldest + span + place * (end - oldest - span);
  // A job younger than the span still fills the picture; one that runs has some seconds of it to fill.
  const from = Math.max(to - span, Math.min(oldest - 0.02 * (to - oldest), to - (job.state === "running" ? 20000 : 20)));
  byId("scroll").disabled = end - oldest <= span;
  // One record before the span, so that lines reach the left edge.
  const inside = records.filter((record) => record.at >= from && record.at <= to);
  const before = records.filter((record) => record.at < from).at(-1);
  state.view = before ? [before, ...inside] : inside;
  const stream = byId("stream").value || job.streams[0]?.name;
  const step = job.steps.find((each) => each.name === byId("step").value) || null;
  const known = records.filter((record) => record.at <= to).slice(-state.view.length - MOST_BEFORE);
  picture.draw(state.view, { stream, step, from, to, known });
  for (const strip of Object.values(strips)) strip.draw(state.view, from, to);
  const setting = job.streams.find((each) => each.name === stream);
  const measured = state.lateness[stream];
  slack.draw({ points: measured?.points ?? [], p99_ms: measured?.p99_ms ?? 0, rows: measured?.rows ?? 0, slack_ms: setting?.slack_ms ?? 0 });
  header(records.at(-1), stream);
  tables({ ...state, last: records.at(-1), stream });
}

function badge(kind, text) {
  byId("state").className = `badge ${kind}`;
  byId("state").textContent = text;
}

function header(last, stream) {
  if (state.refused) badge("lost", state.refused);
  else if (state.lost) badge("lost", "connection lost; retrying");
  else badge(state.job.state, state.job.state);
  byId("notice").hidden = !state.job.notice;
  byId("notice").textContent = state.job.notice ?? "";
  starting(state.job);
  if (!last) return;
  const own = last.streams[stream];
  const recent = state.records.filter((record) => record.at > last.at - 60000);
  const rows = recent.reduce((sum, record) => sum + record.rows, 0);
  const took = Math.max(1, (last.at - recent[0].at) / 1000 + recent[0].seconds);
  const follows = state.live && state.job.state === "running";
  const ago = Math.max(0, Date.now() - last.at);
  const isOver = own?.watermark === null && (state.job.state === "finished" || state.records.some((record) => record.streams[stream]?.watermark != null));
  const figures = [
    ["batch", `${last.batch}${follows ? `, ${ago < 1000 ? "just now" : `${duration(Math.floor(ago / 1000) * 1000)} ago`}` : ""}`, "The number of the last batch, and how long ago it was delivered.", follows && ago > MOST_QUIET_MS ? "holds" : ""],
    ["rows/s", count(rows / took), "Rows read per second, over the last minute."],
    ["watermark", isOver ? "end of time" : own ? moment(own.watermark) : "–", "Up to this event time, in UTC, all events of the stream are assumed to have arrived."],
    ["lag", own && own.watermark !== null ? duration(last.at - own.watermark) : "–", "How far the watermark was behind the clock at the last batch."],
    ["starts", String(state.job.starts ?? 1), "How often a driver has started on this checkpoint."],
  ];
  byId("figures").replaceChildren(...figures.map(([term, value, title, className]) => {
    const pair = document.createElement("div");
    pair.title = title;
    pair.append(element("dt", term), element("dd", value, { className }));
    return pair;
  }));
}

followTheme(byId("theme"), later);
for (const id of ["stream", "step", "span", "scroll"]) byId(id).addEventListener("input", () => { slack.moved = slack.moved && id !== "stream"; later(); });
new ResizeObserver(() => { if (state.job) drawPlan(state.job); later(); }).observe(document.body);
setInterval(() => { if (state.live && state.job?.state === "running" && !document.hidden) later(); }, 1000);
begin();
