// The page: which view an address is, and asking for it once a second (every ten where nobody looks).

const EVERY_MS = 1000, HIDDEN_MS = 10000, PLOTS_EVERY = 5, TYPED_MS = 250;
const view = byId("view");
let typed = 0;
const now = {page: null, isNew: true, turn: 0, state: "", timer: 0, asking: 0, problem: null, drawn: null};

function takeKey() {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!key) return;
  sessionStorage.setItem("key", key);
  history.replaceState(null, "", location.pathname + location.search);
}

function route() {
  const parts = location.pathname.split("/").slice(1).map(decodeURIComponent);
  if (parts[0] === "budgets") return {kind: "budgets"};
  if (parts[0] === "workers") return {kind: "workers"};
  if (parts[0] === "audits") return {kind: "audits"};
  if (parts[0] === "audit") return parts.length === 2 ? {kind: "audit", audit: parts[1]} : {kind: "auditList", audit: parts[1], list: parts[2]};
  if (parts[0] !== "run") return {kind: "runs"};
  if (parts.length === 2) return {kind: "run", name: parts[1]};
  if (parts.length === 3) return {kind: "items", name: parts[1]};
  return {kind: "item", name: parts[1], job: parts[3], index: parts[4]};
}

// The address in the navigation that a page belongs to.
function section() {
  const kind = route().kind;
  return kind === "budgets" || kind === "workers" ? `/${kind}` : kind.startsWith("audit") ? "/audits" : "/";
}

async function fetched(where, query) {
  const run = where.name === undefined ? "" : `/runs/${encodeURIComponent(where.name)}`;
  switch (where.kind) {
    case "runs": return ask(`/runs?${new URLSearchParams([...query].filter(([name]) => ["q", "state"].includes(name)))}`);
    case "budgets": return ask("/budgets");
    case "workers": return ask("/cluster");
    case "audits": return ask("/audits");
    case "audit": return ask(`/audits/${encodeURIComponent(where.audit)}`);
    case "auditList": return ask(`/audits/${encodeURIComponent(where.audit)}/${where.list}?${query}`);
    case "item": return ask(`${run}/items/${encodeURIComponent(where.job)}/${where.index}`);
    default: return ask(run);
  }
}

function made(where, data, query) {
  switch (where.kind) {
    case "runs": return runsView(data, query);
    case "budgets": return budgetsView(data);
    case "workers": return workersView(data);
    case "audits": return auditsView(data);
    case "audit": return auditView(data);
    case "auditList": return auditListView(where, data, query);
    case "run": return runView(data);
    case "items": return itemsView(data, query);
    default: return itemView(where.name, data);
  }
}

// Shows what was fetched last.
function show() {
  if (!now.page) return;
  const fresh = view.cloneNode(false);
  fresh.append(...made(now.page.where, now.page.data, new URLSearchParams(location.search)));
  patch(view, fresh);
  document.documentElement.dataset.ready = "yes";
  const title = view.querySelector("h1")?.textContent ?? "Bulk";
  const run = now.page.data.run, share = run?.items ? `${percent(doneOf(run.outcomes), run.items)} ` : "";
  document.title = `${run ? `${share}${run.state} · ` : ""}${title} · Bulk`;
  if (now.isNew) {
    now.isNew = false;
    if (now.page.isMoved) view.querySelector("h1")?.focus();
  }
}

function announce(page) {
  const state = page.data.run && `${page.where.name} is ${page.data.run.state}`;
  if (state && now.state && state !== now.state) said(shown(state));
  now.state = state ?? "";
}

async function refresh() {
  const where = route(), query = new URLSearchParams(location.search), turn = ++now.asking;
  try {
    const data = await fetched(where, query);
    if (turn !== now.asking) return;
    now.page = {where, data, isMoved: now.page !== null};
    announce(now.page);
    show();
    if (where.kind === "audit" && (now.drawn !== data || !view.querySelector("#plots figure"))) {
      drawPlots(auditPlots(data));
      now.drawn = data;
    }
    if (where.kind === "run" && now.turn++ % PLOTS_EVERY === 0) drawPlots(plots(await ask(`/runs/${encodeURIComponent(where.name)}/plots`)));
    if (where.kind === "items" && (list.key !== listKey(where.name, query) || (!list.isGrowing && list.rows.length <= 100 && now.turn++ % PLOTS_EVERY === 0))) {
      await fetchItems(where.name, query, false);
      if (turn === now.asking) show();
    }
    byId("link").textContent = "";
    now.problem = null;
  } catch (problem) {
    if (turn === now.asking) fail(problem);
  }
}

function fail(problem) {
  now.problem = problem;
  if (problem.status === 401) return askForKey();
  if (problem instanceof Refused) {
    if (now.isNew || problem.status === 404) view.replaceChildren(h("h1", {tabindex: "-1"}, "Not here"), h("p", {}, text(problem.message)), h("p", {}, h("a", {href: "/"}, "All runs")));
    else byId("link").textContent = problem.message;
  } else byId("link").replaceChildren(h("span", {class: "warn"}, "bulk serve does not answer; what is shown is old"));
  document.documentElement.dataset.ready = "yes";
}

function askForKey() {
  if (byId("key")) return;
  view.replaceChildren(h("h1", {tabindex: "-1"}, "The key is missing"), h("p", {}, "Open the address that ", h("code", {}, "bulk serve"), " has printed, or paste it here. Each start has a new key."),
    h("form", {"data-filter": "key"}, h("label", {}, "Address or key", h("input", {id: "key", type: "password", autocomplete: "off"})), " ", h("button", {type: "submit", class: "main"}, "Open")));
  document.documentElement.dataset.ready = "yes";
}

async function poll() {
  clearTimeout(now.timer);
  await refresh();
  clearTimeout(now.timer);
  now.timer = setTimeout(poll, document.hidden ? HIDDEN_MS : EVERY_MS);
}

function wake() {
  now.turn = 0;
  poll();
}

function go(address) {
  history.pushState(null, "", address);
  arrive();
}

function arrive() {
  clearTimeout(typed);  // what was typed belongs to the page before
  Object.assign(now, {isNew: true, state: ""});
  for (const link of document.querySelectorAll("nav a")) {
    if (link.pathname === section()) link.setAttribute("aria-current", link.pathname === location.pathname ? "page" : "true");
    else link.removeAttribute("aria-current");
  }
  wake();
}

document.addEventListener("click", event => {
  const link = event.target.closest("a[href]");
  if (link && link.origin === location.origin && !link.hash && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
    event.preventDefault();
    go(link.pathname + link.search);
    scrollTo(0, 0);
  }
  const copy = event.target.closest("[data-copy]");
  if (copy) navigator.clipboard.writeText(copy.dataset.copy).then(() => said("Copied."), () => said("It could not be copied."));
  const step = event.target.closest("[data-step]");
  if (step) {
    const {job = "", outcome = "", code = "", items} = step.dataset, page = now.page.data;
    steps[step.dataset.step](page, `/runs/${encodeURIComponent(page.name)}`, {job, outcome, code}, items === undefined ? wrongOf(page.run) : +items);
  }
  if (event.target.id === "more") fetchItems(now.page.where.name, new URLSearchParams(location.search), true).then(show, fail);
});

document.addEventListener("submit", event => {
  const filter = event.target.dataset.filter;
  if (!filter) return;
  event.preventDefault();
  if (filter === "key") {
    sessionStorage.setItem("key", byId("key").value.trim().replace(/^.*#key=/u, ""));
    view.replaceChildren();
    arrive();
  } else filtered(event.target);
});

function filtered(form) {
  const chosen = [...new FormData(form)].filter(([, value]) => value !== "");
  history.replaceState(null, "", `${location.pathname}${chosen.length ? `?${new URLSearchParams(chosen)}` : ""}`);
  list.key = "";
  wake();
}

for (const kind of ["input", "change"]) {
  document.addEventListener(kind, event => {
    const form = event.target.closest("form[data-filter]");
    if (!form || form.dataset.filter === "key") return;
    clearTimeout(typed);
    typed = setTimeout(filtered, kind === "input" ? TYPED_MS : 0, form);
  });
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) wake(); });
addEventListener("popstate", arrive);
addEventListener("hashchange", () => { takeKey(); arrive(); });

takeKey();
arrive();
