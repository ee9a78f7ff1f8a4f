// The plots of one run, from its curves. Names are text nodes, and what would be hidden is written out.

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;
const shown = text => text.replace(HIDDEN, char => `\\u${char.codePointAt(0).toString(16).padStart(4, "0")}`);
const moment = at => `${new Date(at * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;

const CLASSES = ["up to 5 ms", "up to 10 ms", "up to 25 ms", "up to 50 ms", "up to 100 ms", "up to 250 ms", "up to 500 ms",
  "up to 1 s", "up to 2.5 s", "up to 5 s", "up to 10 s", "above 10 s"];

function plots(curves) {
  const base = {total: curves.total_s, breaks: curves.breaks_s}, points = curves.points_s, found = [];
  const when = at => [duration(at), moment(curves.started_at + at)];
  const rows = columns => points.map((at, place) => [...when(at), ...columns.map(column => column[place] ?? "–")]);
  const kinds = curves.kinds.map((name, place) => ({name, className: `f-${name}`, values: curves.outcomes.map(each => each[place] / curves.bin_s)}))
    .filter(series => series.values.some(value => value));
  if (kinds.length && curves.outcomes.length > 1) {
    const most = Math.max(...curves.outcomes.map(each => each.reduce((sum, count) => sum + count) / curves.bin_s));
    found.push({...base, ...linear(most, "/s"), title: "Items that ended, per second", draw: stacked, unit: "/s", series: kinds,
      edges: Array.from({length: curves.outcomes.length + 1}, (_, place) => place * curves.bin_s),
      legend: kinds.map(({name}) => [name, `b-${name}`]), heads: ["After", "Moment", ...kinds.map(({name}) => name)],
      figures: () => curves.outcomes.map((each, place) => [...when(place * curves.bin_s),
        ...kinds.map(({name}) => each[curves.kinds.indexOf(name)])])});
  }
  if (points.length < 2) return found;
  for (const budget of curves.budgets) {
    if (!budget.left.some(left => left !== null)) continue;
    found.push({...base, ...linear(budget.limit, ""), title: `Budget ${shown(budget.name)}: requests left`, draw: lines, points, marks: budget.resets,
      series: [{name: "left", className: "s0", values: budget.left}], legend: [["left", "c0"], ...(budget.resets.length ? [["┊ reset", "none"]] : [])],
      heads: ["After", "Moment", "Left"], figures: () => rows([budget.left])});
  }
  if (curves.latencies.some(counts => counts.length)) {
    found.push({...base, top: CLASSES.length, ticks: [[0, "0"], [2, "10 ms"], [4, "50 ms"], [6, "250 ms"], [8, "1 s"], [10, "5 s"], [12, "more"]],
      title: "How long good answers took", draw: heat, points, cells: curves.latencies, rows: CLASSES,
      heads: ["After", "Moment", ...CLASSES], figures: () => points.map((at, place) => [...when(at), ...CLASSES.map((_, row) => curves.latencies[place][row] ?? 0)])});
  }
  const waits = Object.entries(curves.waits).map(([name, values], place) => ({name: name.replace("_", " "), className: `c${place % 8}`, values: values.slice(1)}));
  if (waits.length) {
    const most = Math.max(...points.slice(1).map((_, place) => waits.reduce((sum, {values}) => sum + values[place], 0)));
    found.push({...base, ...linear(most, ""), title: "Items that waited, by reason", draw: stacked, unit: "", series: waits, edges: points,
      legend: waits.map(({name, className}) => [name, className]), heads: ["After", "Moment", ...waits.map(({name}) => name)],
      figures: () => points.slice(1).map((at, place) => [...when(at), ...waits.map(({values}) => values[place])])});
  }
  const flight = [{name: "in flight", className: "s0", values: curves.in_flight}, {name: "allowed", className: "s1", values: curves.concurrency}];
  found.push({...base, ...linear(Math.max(1, ...curves.concurrency), ""), title: "Requests in flight", draw: lines, points, series: flight,
    legend: [["in flight", "c0"], ["allowed", "c1"]], heads: ["After", "Moment", "In flight", "Allowed"],
    figures: () => rows([curves.in_flight, curves.concurrency])});
  return found;
}
