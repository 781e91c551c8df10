// Formatting of figures: durations, times, counts, bytes.

const UNITS = [["d", 86400000], ["h", 3600000], ["m", 60000], ["s", 1000]];

export function duration(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10000) return `${(ms / 1000).toFixed(1)} s`;
  const parts = [];
  let rest = ms;
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count || parts.length) parts.push(`${count}${unit}`);
    if (parts.length === 2) break;
  }
  return parts.filter((part) => !part.startsWith("0")).join(" ");
}

export function clock(ms) {
  return new Date(ms).toISOString().slice(11, 19);
}

export function moment(ms) {
  return ms === null || ms === undefined ? "none yet" : new Date(ms).toISOString().replace("T", " ").slice(0, 19);
}

export function count(number) {
  if (number === null || number === undefined) return "–";
  if (number >= 1e9) return `${(number / 1e9).toFixed(1)} G`;
  if (number >= 1e6) return `${(number / 1e6).toFixed(1)} M`;
  return Math.round(number).toLocaleString("en");
}

export function bytes(number) {
  if (number >= 1 << 30) return `${(number / (1 << 30)).toFixed(2)} GB`;
  if (number >= 1 << 20) return `${(number / (1 << 20)).toFixed(1)} MB`;
  if (number >= 1 << 10) return `${(number / (1 << 10)).toFixed(1)} kB`;
  return `${number} B`;
}

export function share(part) {
  if (part === 0) return "0 %";
  return part < 0.0001 ? "< 0.01 %" : `${(part * 100).toFixed(part < 0.01 ? 2 : 1)} %`;
}
