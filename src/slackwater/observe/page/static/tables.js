// The tables below the picture: partitions, losses with samples, outputs, sinks, starts, lookups, joins.

import { dayOf } from "./axes.js";
import { bytes, clock, count, duration, moment, share } from "./format.js";

const MOST_ROWS = 200;

export function element(kind, text, { className = "", title = "" } = {}) {
  const made = document.createElement(kind);
  made.textContent = text;
  if (className) made.className = className;
  if (title) made.title = title;
  return made;
}

// `heads` are [text, sentence, kind]; a cell is a text or [text, class, sentence].
function table(id, heads, rows, empty) {
  const place = document.getElementById(id);
  if (!rows.length) { place.replaceChildren(element("p", empty, { className: "caption" })); return; }
  const made = document.createElement("table");
  const head = made.createTHead().insertRow();
  const kinds = heads.map(([, , kind], at) => kind ?? (at ? "n" : ""));
  heads.forEach(([text, title], at) => head.append(element("th", text, { className: kinds[at], title })));
  const body = made.createTBody();
  for (const cells of rows.slice(0, MOST_ROWS)) {
    const row = body.insertRow();
    cells.forEach((cell, at) => {
      const [text, className, title] = Array.isArray(cell) ? cell : [cell, "", ""];
      const shown = element("td", kinds[at] === "code" ? "" : text, { className: `${kinds[at]} ${className}`.trim(), title: title || heads[at][1] });
      shown.dataset.head = heads[at][0]; // beside it where a row is a list
      if (kinds[at] === "code" && text) shown.append(element("code", text));
      row.append(shown);
    });
  }
  place.replaceChildren(made);
}

const names = (records, part) => [...new Set(records.flatMap((record) => Object.keys(record[part] || {})))];
const summed = (records, value) => records.reduce((total, record) => total + (value(record) || 0), 0);

export function tables({ job, records, view, samples, last, stream }) {
  if (!last) return;
  partitions(last, stream);
  losses(view);
  sampled(samples);
  outputs(job, records, last);
  starts(job, records);
  lookups(view);
  joins(last);
  captions(last);
}

function partitions(last, stream) {
  const own = last.streams[stream];
  const heads = [
    ["partition", "A part of the source with its own order."], ["newest event", "Its largest event time so far."],
    ["behind", "How far that is behind the clock."], ["unread", "Records waiting in it, if the source reports that."],
    ["", "Whether the watermark waits for it."],
  ];
  const rows = Object.entries(own?.partitions ?? {}).map(([name, part]) => [
    name,
    part.max_ts === null ? "none" : moment(part.max_ts).slice(dayOf(part.max_ts) === dayOf(last.at) ? 11 : 0),
    part.max_ts === null ? "–" : duration(last.at - part.max_ts),
    part.lag === null || part.lag === undefined ? "–" : count(part.lag),
    own.held_by === name ? ["holds", "holds", "The slowest partition that is not idle: the watermark waits for it."]
      : part.finished ? ["finished", "idle", "Read to the end of a bounded run: the watermark does not wait for it."]
      : part.idle ? ["idle", "idle", "No usable row for idle_after: the watermark does not wait for it."] : ["live", "", "It sends rows and is not the slowest."],
  ]);
  table("partitions", heads, rows, "No partitions yet.");
}

function losses(view) {
  const heads = [["what", "The reason, or the step that the rows were too late for."], ["rows", "Rows in the time shown."]];
  const late = names(view, "steps").map((name) => [[`late for ${name}`, "", "They arrived after their windows were forgotten, and went to the late output."], summed(view, (r) => r.steps[name]?.late)]);
  const refired = names(view, "steps").map((name) => [[`corrected ${name}`, "", "They arrived after their window was complete, in time for a late pane."], summed(view, (r) => r.steps[name]?.refired)]);
  const places = (record) => [...Object.values(record.streams), ...Object.values(record.steps)].map((each) => each.dead || {});
  const reasons = [...new Set(view.flatMap((record) => places(record).flatMap(Object.keys)))];
  const dead = reasons.map((reason) => [[`dead: ${reason}`, "", "Records that could not be used; they went to the dead-letter output."], summed(view, (r) => summed(places(r), (each) => each[reason]))]);
  const rows = [...late, ...refired, ...dead].filter(([, number]) => number).map(([what, number]) => [what, count(number)]);
  table("losses", heads, rows, "No late rows and no dead letters in this time.");
}

function sampled(samples) {
  const heads = [
    ["when", "When its batch was delivered, in UTC."], ["why", "The reason for a dead letter, or how late the row was.", ""],
    ["step", "The step that could not use it.", ""], ["where", "The source, the partition and the offset of the record.", ""],
  ];
  const hasData = samples.some((each) => each.data !== undefined || each.message !== undefined);
  if (hasData) heads.push(["contents", "At most two kilobytes of the record; shown because of --show-data.", "code"]);
  const rows = samples.slice(-100).reverse().map((each) => [
    each.at ? clock(each.at) : "–",
    each.kind === "late" ? `late by ${duration(each.late_by_ms)}` : each.reason,
    each.step,
    [each.source, each.partition, each.offset].filter((part) => part !== null && part !== undefined).join(" / "),
    ...(hasData ? [[each.message, each.data].filter(Boolean).join("\n")] : []),
  ]);
  table("samples", heads, rows, "");
}

function outputs(job, records, last) {
  const heads = [
    ["output", "What leaves the pipeline under this name."], ["rows", "Rows delivered, within the kept history."],
    ["p50", "Half of its rows were younger than this when they were delivered."], ["p99", "99 % of its rows were younger than this."],
  ];
  const rows = Object.entries(last.outputs).map(([name, output]) => [
    [name, "", job.outputs?.[name] || "It feeds the next step."], count(summed(records, (r) => r.outputs[name]?.rows)),
    output.p50 == null ? "–" : duration(output.p50), output.p99 == null ? "–" : duration(output.p99),
  ]);
  table("outputs", heads, rows, "No outputs yet.");
  const sinks = [
    ["sink", "Where an output is written."], ["guarantee", "What happens to its rows when a batch is delivered again after a crash.", ""],
    ["last batch", "The last batch that it has rows and a mark for."], ["writing", "Seconds of the last batch, waits included."],
    ["waited", "How long batches waited for it while it was unavailable, within the kept history."], ["retries", "How often writing was retried, within the kept history."],
  ];
  const written = Object.entries(last.sinks ?? {}).map(([name, sink]) => [
    [name, "", job.sinks?.[name]?.sink || ""], job.sinks?.[name]?.promise || "dropped",
    sink.last === null ? "none" : String(sink.last), `${sink.seconds.toFixed(2)} s`,
    duration(1000 * summed(records, (r) => r.sinks?.[name]?.waited)), count(summed(records, (r) => r.sinks?.[name]?.retries)),
  ]);
  table("sinks", sinks, written, "No sink has been written to yet.");
}

function starts(job, records) {
  const heads = [["start", "The number of the start on this checkpoint."], ["first batch", "Its first batch, within the kept history."], ["at", "When it started, in UTC; of an earlier start, when its first batch was delivered."]];
  const firsts = records.filter((record, at) => !at || record.run !== records[at - 1].run);
  const at = (record) => (job.started && (record.run ?? 1) === (job.starts ?? 1) ? job.started : record.at);
  const rows = firsts.slice(-20).reverse().map((record) => [String(record.run ?? 1), String(record.batch), moment(at(record))]);
  table("starts", heads, rows, "");
  document.getElementById("starts").append(element("p", `${count(job.starts ?? 1)} ${(job.starts ?? 1) === 1 ? "start" : "starts"} so far.`, { className: "caption" }));
}

function lookups(view) {
  const heads = [
    ["step", "The step that looks rows up in a store."], ["requests", "Requests to the store."], ["hits", "The share of keys answered from the cache."],
    ["errors", "Requests that failed; they were retried."], ["p99", "99 % of the requests of a batch took at most this long."],
  ];
  const found = names(view, "lookups").map((name) => {
    const sum = (what) => summed(view, (r) => r.lookups?.[name]?.[what]);
    const [hits, misses] = [sum("hits"), sum("misses")];
    const longest = Math.max(...view.map((r) => r.lookups?.[name]?.p99 ?? -1));
    return [name, count(sum("requests")), hits + misses ? share(hits / (hits + misses)) : "–", count(sum("errors")), longest < 0 ? "–" : duration(longest)];
  });
  document.getElementById("lookups-panel").hidden = !found.length;
  table("lookups", heads, found, "");
}

function joins(last) {
  const heads = [["join", "The step that joins two streams."], ["left", "Rows of the left side that wait for a partner."], ["right", "Rows of the right side that wait for a partner."]];
  const found = Object.entries(last.steps).filter(([, step]) => Object.keys(step.ports ?? {}).length);
  document.getElementById("joins-panel").hidden = !found.length;
  table("joins", heads, found.map(([name, step]) => [name, count(step.ports.left), count(step.ports.right)]), "");
}

function captions(last) {
  const text = (id, words) => { document.getElementById(`${id}-text`).textContent = words; };
  text("phases", Object.entries(last.phases).map(([name, s]) => `${name} ${s.toFixed(2)} s`).join(" · "));
  text("throughput", `${count(last.rows)} rows in the last batch`);
  text("latency", Object.entries(last.outputs).filter(([, o]) => o.p99 != null).map(([name, o]) => `${name} p99 ${duration(o.p99)}`).join(" · ") || "No rows in the last batch.");
  text("memory", Object.entries(last.steps).map(([name, step]) => `${name} ${bytes(step.bytes)}${step.keys == null ? "" : `, about ${count(step.keys)} ${step.keys === 1 ? "key" : "keys"}`}${step.share > 0.2 ? `, one key has ${share(step.share)}` : ""}`).join(" · "));
}
