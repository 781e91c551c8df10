// The phases of a job's start, each with its seconds, until the first batch.

const startLine = document.getElementById("starting");
let startPhases = [];

export function starting(job) {
  startPhases = job.state === "starting" ? job.phases ?? [] : [];
  startLine.hidden = !startPhases.length;
  showStart();
}

function showStart() {
  const ends = [...startPhases.slice(1).map(([, at]) => at), Date.now()];
  const took = startPhases.map(([name, at], number) => ({ name, seconds: Math.max(0, ends[number] - at) / 1000, isLast: number === startPhases.length - 1 }));
  const shown = took.filter(({ seconds, isLast }) => isLast || seconds >= 0.1);
  startLine.textContent = shown.map(({ name, seconds, isLast }) => `${name} ${seconds.toFixed(isLast ? 0 : 1)} s`).join(" · ");
}

setInterval(() => { if (startPhases.length) showStart(); }, 1000);
