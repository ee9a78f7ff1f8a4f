// The page of a report: search, filter and sort over every item that did not succeed, and the plots.
// It asks nobody for anything: the data stand in the page. Names are text nodes, and what would be hidden is written out.

const PAGE = 100;
const byId = id => document.getElementById(id);

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
