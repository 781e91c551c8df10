// Axes of time: round times for ticks, as many as fit, with dates where days matter. All times are in UTC.

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60000, 3600000, 86400000];
const DISTANCES = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((each) => each * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((each) => each * MINUTE),
  ...[1, 2, 3, 6, 12].map((each) => each * HOUR),
  ...[1, 2, 7, 14].map((each) => each * DAY),
];
const [MONTH, SOME_MONTHS] = [30.44 * DAY, [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12000]];
const MONDAY = 4 * DAY; // the first one since 1970
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export function roundDistance(least) {
  // The smallest round distance that is at least `least`.
  return DISTANCES.find((each) => each >= least) ?? Math.ceil(least / DISTANCES.at(-1)) * DISTANCES.at(-1);
}

const iso = (ms) => (Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : "–");
export const dayOf = (ms) => iso(ms).slice(0, -14);

function date(ms, withYear) {
  const at = new Date(ms);
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}${withYear ? ` ${at.getUTCFullYear()}` : ""}`;
}

export function timeTicks(low, high, most) {
  // [{ms, text}]: a time has its date where the day changes, and nothing but the date if ticks are days apart.
  const least = (high - low) / Math.max(1, most);
  if (least > DISTANCES.at(-1)) return monthTicks(low, high, least);
  const distance = roundDistance(least);
  const found = [];
  const shift = distance % (7 * DAY) ? 0 : MONDAY;
  let day = dayOf(low);
  const crosses = day !== dayOf(high);
  for (let ms = Math.ceil((low - shift) / distance) * distance + shift; ms <= high; ms += distance) {
    const time = iso(ms).slice(11, distance < SECOND ? 23 : distance < MINUTE ? 19 : 16);
    const isNew = crosses && (dayOf(ms) !== day || !found.length);
    found.push({ ms, text: distance >= DAY ? date(ms, false) : isNew ? `${date(ms, false)} ${time}` : time, isNew });
    day = dayOf(ms);
  }
  return found;
}

function monthTicks(low, high, least) {
  const months = SOME_MONTHS.find((each) => each * MONTH >= least) ?? SOME_MONTHS.at(-1);
  const first = new Date(low);
  const found = [];
  for (let at = Math.floor((12 * first.getUTCFullYear() + first.getUTCMonth()) / months) * months; ; at += months) {
    const ms = Date.UTC(Math.floor(at / 12), at % 12);
    if (!(ms <= high)) return found;
    if (ms >= low) found.push({ ms, text: months < 12 ? `${MONTHS[at % 12]} ${Math.floor(at / 12)}` : String(Math.floor(at / 12)), isNew: true });
  }
}

export function days(low, high) {
  // The days that an axis covers, for its title.
  return dayOf(low) === dayOf(high) ? dayOf(low) : `${dayOf(low)} to ${dayOf(high)}`;
}

export function timeWithin(ms, low, high) {
  // A time in a text about a span of time: with its date if the span has several days.
  const time = iso(ms).slice(11, high - low < 10 * SECOND ? 23 : 19);
  if (dayOf(low) === dayOf(high) && dayOf(ms) === dayOf(low)) return time;
  if (high - low <= 3 * DAY) return `${date(ms, false)} ${time}`;
  return ms % DAY ? `${date(ms, false)} ${time.slice(0, 5)}` : date(ms, false);
}
