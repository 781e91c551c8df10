// Where the rows of a batch are in event time: bars of [from, to, rows], from their ages or from how late they were.

const MOST_APART = 8; // more partitions are taken together

export function newestOf(record, stream) {
  const times = Object.values(record?.streams[stream]?.partitions ?? {}).map((part) => part.max_ts).filter((ms) => ms !== null);
  return times.length ? Math.max(...times) : null;
}

export function isCoarse(record, stream, range) {
  // A bar of ages is the wider, the older its rows: those of a replay would all be in one.
  const newest = newestOf(record, stream);
  const { ages, behind } = record.streams[stream];
  if (newest === null || record.now - newest <= range / 4 || !behind?.length) return false;
  const widths = ages.map(([low, high, rows]) => [low, high - low, rows]).sort(([, one], [, other]) => one - other);
  return quantile(widths, 0.5) > range / 20;
}

// `before` and `after` are the batches around `record`, if known; `range` is how much event time is drawn.
export function spread(record, { before, after, stream, range }) {
  if (isCoarse(record, stream, range)) return behind(record, { before, after, stream });
  const { ages, oldest } = record.streams[stream];
  return ages.map(([low, high, rows]) => [Math.max(oldest ?? -Infinity, record.now - high), record.now - low, rows]);
}

export function quantile(bins, part) {
  const total = bins.reduce((sum, bin) => sum + bin[2], 0);
  let seen = 0;
  for (const [, high, rows] of bins) {
    seen += rows;
    if (seen >= part * total) return high;
  }
  return null;
}

function firstOf({ batch, now, streams }, stream) {
  // Where the rows of a job's first batch begin; a clock that is years behind is no beginning.
  const { oldest = null, ages } = streams[stream];
  return batch > 0 || oldest === null ? null : Math.max(oldest, now - (quantile(ages, 0.995) ?? Infinity));
}

export function behind(record, { before, after, stream }) {
  // While a batch is read, its newest event moves from that of the batch before to its own; rows are so far behind it.
  const own = record.streams[stream];
  const begin = before ? null : firstOf(record, stream);
  const parts = Object.entries(own.partitions).filter(([, part]) => part.max_ts !== null && part.rows);
  const moved = (parts.length > MOST_APART ? [] : parts).map(([name, part]) => {
    const [was, will] = [before, after].map((each) => each?.streams[stream]?.partitions[name]?.max_ts ?? null);
    return [was ?? begin ?? (will === null ? part.max_ts : 2 * part.max_ts - will), part.max_ts, part.rows];
  });
  if (!moved.length && newestOf(record, stream) !== null) {
    const newest = newestOf(record, stream);
    moved.push([newestOf(before, stream) ?? begin ?? newest, newest, own.rows]);
  }
  const total = moved.reduce((sum, [, , rows]) => sum + rows, 0) || 1;
  return moved.flatMap(([first, last, rows]) => own.behind.map(([low, high, each]) => (
    [Math.max(own.oldest ?? -Infinity, Math.min(first, last) - high), last - low, (each * rows) / total]
  )));
}
