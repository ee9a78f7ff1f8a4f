// The items of a run that have ended: filter, search and pages; and one item whole.

const OUTCOMES = ["failed", "unknown", "skipped", "succeeded", "unchanged"];
const list = {key: "", rows: [], next: "", indexed: null, count: null, asked: 0, isGrowing: false};

function itemRows(name, rows) {
  return grid("Items", ["Item", "Job", "Outcome", "Code", "Status", "Message", "When"], rows.map(row => [
    [h("a", {href: `${runPath(name)}/items/${encodeURIComponent(row.job)}/${row.index}`}, text(`#${row.index} ${row.label}`)), row.id ? h("span", {class: "tag"}, text(row.id)) : ""],
    row.job, h("span", {class: row.outcome}, row.outcome), row.code || "–", row.http_status ?? "–", row.message || "–", [clock(row.started_at)],
  ]), {right: [4]});
}

function itemsView(page, query) {
  const chosen = (name, values) => h("label", {}, {job: "Job", outcome: "Outcome", code: "Code"}[name], h("select", {name, "data-key": values.join()}, h("option", {value: ""}, "all"),
    ...values.map(value => h("option", {value, selected: value === query.get(name)}, shown(value)))));
  const codes = [...new Set([...page.failures.map(each => each.code), query.get("code") ?? ""])].filter(Boolean);
  const found = list.key === "" ? "Searching…" : list.count === null ? `${list.next ? `${count(list.rows.length)} or more items` : several(list.rows.length, "item")} found` : `${count(list.rows.length)} of ${several(list.count, "item")}`;
  const isSearching = list.indexed !== null && list.indexed < 1;
  const canRetry = !page.is_read_only && page.run.state === "complete" && list.count && !query.get("q") && !["succeeded", "unchanged"].includes(query.get("outcome")) && (query.get("outcome") || query.get("code"));
  const retried = {job: query.get("job") ?? "", outcome: query.get("outcome") ?? "", code: query.get("code") ?? ""};
  return [
    h("div", {class: "head"}, h("h1", {tabindex: "-1"}, "Items of ", h("a", {href: runPath(page.name)}, text(page.run.name))), pill(page.run.state, page.run.exit_code)),
    h("section", {},
      h("form", {class: "tools filters", role: "search", "data-filter": "items"},
        h("label", {}, "Search names, ids, request ids, messages", h("input", {type: "search", name: "q", value: query.get("q") ?? "", autocomplete: "off", maxlength: "200"})),
        chosen("job", page.run.jobs.map(job => job.name)), chosen("outcome", OUTCOMES), chosen("code", codes)),
      h("p", {class: "soft small", id: "found", role: "status"}, isSearching ? `${found}; ${Math.floor(100 * list.indexed)}% of the run can be searched so far` : found),
      list.rows.length ? itemRows(page.name, list.rows) : h("p", {}, isSearching ? "Searching…" : list.key === "" ? "" : "No item fits."),
      h("div", {class: "foot"}, list.next && !isSearching ? h("button", {type: "button", id: "more"}, "More") : null,
        canRetry ? h("button", {type: "button", "data-step": "retry", "data-job": retried.job, "data-outcome": retried.outcome, "data-code": retried.code, "data-items": list.count}, `Retry these ${count(list.count)}`) : null)),
  ];
}

const listKey = (name, query) => `${name}\n${["q", "job", "outcome", "code"].map(each => query.get(each) ?? "").join("\n")}`;

// Fetches a page of the list: the first one, or the next. A search goes on by itself until it has found a page, or all.
// Only the answers to what was asked last are taken in; while the next page is fetched, the first one is not asked for.
async function fetchItems(name, query, isMore) {
  list.isGrowing = isMore;
  try {
    await fetchPages(name, query, isMore, ++list.asked);
  } finally {
    if (isMore) list.isGrowing = false;
  }
}

async function fetchPages(name, query, isMore, turn) {
  const key = listKey(name, query), asked = new URLSearchParams();
  for (const each of ["q", "job", "outcome", "code"]) if (query.get(each)) asked.set(each, query.get(each));
  let after = isMore ? list.next : "", rows = isMore ? list.rows : [], wanted = rows.length + 100;
  for (;;) {
    if (after) asked.set("after", after);
    const page = await ask(`/runs/${encodeURIComponent(name)}/items?${asked}`);
    if (turn !== list.asked || key !== listKey(name, new URLSearchParams(location.search))) return;
    rows = rows.concat(page.rows);
    Object.assign(list, {key, rows, next: page.next, indexed: page.indexed, count: page.count});
    const isWhole = page.indexed === null || page.indexed >= 1;
    if (isWhole && (!page.next || rows.length >= wanted || page.rows.length >= 100)) return;
    if (isWhole) after = page.next;
    show();
  }
}

function itemView(name, line) {
  const error = line.error ?? {};
  const pairs = [["Outcome", h("span", {class: line.outcome}, line.outcome)], ["Code", error.code], ["Message", error.message], ["Status", error.http_status ?? line.http_status],
    ["Sends", line.attempts], ["First sent", clock(line.started_at)], ["Took", line.attempts ? duration(line.elapsed_ms / 1000) : null], ["Id", line.id]].filter(([, value]) => value !== null && value !== undefined && value !== "");
  return [
    h("div", {class: "head"}, h("h1", {tabindex: "-1"}, text(`${line.job} #${line.index}`)), h("span", {}, h("a", {href: `${runPath(name)}/items`}, "Items"), " · ", h("a", {href: runPath(name)}, text(name)))),
    h("section", {}, h("dl", {class: "facts"}, ...pairs.flatMap(([head, value]) => [h("dt", {}, head), h("dd", {}, value instanceof Node ? value : text(value))])),
      line.request_id ? h("div", {class: "command"}, "Request id ", h("code", {}, shown(line.request_id)), h("button", {type: "button", "data-copy": line.request_id}, "Copy")) : null),
    h("section", {}, h("h2", {}, "Item"), h("pre", {tabindex: "0"}, shown(JSON.stringify(line.item, null, 2)).replaceAll("\\u000a", "\n"))),
    line.result === null ? null : h("section", {}, h("h2", {}, "Result"), h("pre", {tabindex: "0"}, shown(JSON.stringify(line.result, null, 2)).replaceAll("\\u000a", "\n"))),
  ].filter(Boolean);
}
