// The page of a report: search, filter and sort over every item that did not succeed, and the plots.
// It asks nobody for anything: the data stand in the page. Names are text nodes, and what would be hidden is written out.

const PAGE = 100;
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;
const byId = id => document.getElementById(id);
const shown = text => text.replace(HIDDEN, char => `\\u${char.codePointAt(0).toString(16).padStart(4, "0")}`);
const moment = at => `${new Date(at * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;

async function unpacked() {
  const bytes = Uint8Array.from(atob(byId("data").textContent), char => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

function explorer(items) {
  const size = items.index.length, columns = [
    ["Item", row => items.label[row], row => `#${items.index[row]} ${shown(items.label[row])}`],
    ["Job", row => items.job[row], row => shown(items.jobs[items.job[row]])],
    ["Outcome", row => items.outcome[row], row => items.outcomes[items.outcome[row]]],
    ["Code", row => items.code[row], row => items.codes[items.code[row]]],
    ["Status", row => items.status[row], row => items.status[row] || "–"],
    ["Sent", row => items.attempts[row], row => `${items.attempts[row]}×`],
    ["Message", row => items.message[row], row => shown(items.messages[items.message[row]])],
    ["When", row => items.at[row], row => items.attempts[row] ? moment(items.at[row]) : "–"],
  ];
  const words = (row, field) => (items[field][row] ?? "");
  const searched = new Array(size);
  const text = row => searched[row] ??= [
    items.label[row], `#${items.index[row]}`, words(row, "id"), words(row, "request"), items.codes[items.code[row]],
    items.jobs[items.job[row]], items.messages[items.message[row]],
  ].join("\n").toLowerCase();
  for (let row = 0; row < size; row++) text(row);
  const state = {order: Uint32Array.from({length: size}, (_, row) => row), sorted: -1, descending: false, cause: -1, page: PAGE, found: []};

  function line(row) {
    return element("tr", {}, ...columns.map(([name, , words], place) => {
      const cell = element(place ? "td" : "th", {}, element("bdi", {textContent: words(row)}));
      if (!place) {
        cell.scope = "row";
        if (items.id[row]) cell.append(" ", element("span", {className: "tag"}, element("bdi", {textContent: shown(items.id[row])})));
        if (items.request[row]) cell.title = `request ${shown(items.request[row])}`;
      } else cell.dataset.head = name;
      if (name === "Outcome") cell.className = items.outcomes[items.outcome[row]];
      return cell;
    }));
  }

  function show() {
    const found = state.found, most = Math.min(state.page, found.length);
    byId("rows").replaceChildren(...Array.from({length: most}, (_, place) => line(found[place])));
    const of = found.length === size ? "" : ` of ${size.toLocaleString("en")}`;
    byId("count").textContent = `${found.length.toLocaleString("en")}${of} items, ${most.toLocaleString("en")} shown`;
    byId("more").hidden = most === found.length;
  }

  function filter() {
    const needle = byId("search").value.trim().toLowerCase();
    const wanted = ["job", "outcome", "code"].map(field => [items[field], byId(field).value]).filter(([, value]) => value !== "");
    const found = [];
    for (const row of state.order) {
      if (state.cause >= 0 && items.cause[row] !== state.cause) continue;
      if (wanted.some(([column, value]) => column[row] !== +value)) continue;
      if (needle && !searched[row].includes(needle)) continue;
      found.push(row);
    }
    Object.assign(state, {found, page: PAGE});
    show();
  }

  // Words are compared once each, by their places in the order of all of them: numbers sort in a tenth of the time.
  function ranks(place) {
    const key = columns[place][1], table = [, items.jobs, items.outcomes, items.codes, , , items.messages][place];
    if (table) {
      const rank = new Float64Array(table.length);
      [...table.keys()].sort((a, b) => table[a] < table[b] ? -1 : 1).forEach((word, at) => rank[word] = at);
      return Float64Array.from({length: size}, (_, row) => rank[key(row)]);
    }
    if (place) return Float64Array.from({length: size}, (_, row) => key(row));
    const rank = new Float64Array(size), labels = items.label;
    Uint32Array.from(rank.keys()).sort((a, b) => labels[a] < labels[b] ? -1 : labels[a] > labels[b] ? 1 : a - b).forEach((row, at) => rank[row] = at);
    return rank;
  }

  function sort(place) {
    state.descending = state.sorted === place && !state.descending;
    state.sorted = place;
    const rank = ranks(place), way = state.descending ? -1 : 1;
    state.order.sort((a, b) => way * (rank[a] - rank[b]) || a - b);
    [...byId("heads").children].forEach((head, at) => {
      head.setAttribute("aria-sort", at !== place ? "none" : state.descending ? "descending" : "ascending");
    });
    filter();
  }

  byId("heads").append(...columns.map(([name], place) => {
    const button = element("button", {type: "button", textContent: name});
    button.addEventListener("click", () => sort(place));
    const head = element("th", {scope: "col"}, button);
    head.setAttribute("aria-sort", "none");
    return head;
  }));
  for (const [field, table] of [["job", items.jobs], ["outcome", items.outcomes], ["code", items.codes]]) {
    byId(field).append(element("option", {value: "", textContent: "all"}), ...table.map((word, place) => element("option", {value: place, textContent: shown(word) || "none"})));
    byId(field).addEventListener("change", filter);
  }
  byId("search").addEventListener("input", filter);
  byId("more").addEventListener("click", () => { state.page += 10 * PAGE; show(); });
  byId("clear").addEventListener("click", () => {
    state.cause = -1;
    for (const id of ["search", "job", "outcome", "code"]) byId(id).value = "";
    filter();
  });
  for (const button of document.querySelectorAll("[data-cause]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      byId("clear").click();
      state.cause = +button.dataset.cause;
      filter();
      byId("explorer").scrollIntoView();
      byId("search").focus({preventScroll: true});
    });
  }
  filter();
}

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

const data = await unpacked();
if (data.items.index.length) {
  explorer(data.items);
  byId("explorer").hidden = false;
  if (byId("plain")) byId("plain").hidden = true;
}
const drawn = plots(data.curves);
if (drawn.length) {
  byId("plots").hidden = false;
  byId("plots").querySelector(".plots").append(...drawn.map(figure));
}
document.documentElement.dataset.ready = "yes";
