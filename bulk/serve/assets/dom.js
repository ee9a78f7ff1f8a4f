// Elements, words and talking to the server. Every text becomes a text node; what would be hidden is written out.

function h(name, attributes = {}, ...children) {
  const found = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) found.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) found.setAttribute(key, value);
  }
  found.append(...children.flat().filter(child => child !== null && child !== undefined && child !== ""));
  return found;
}

const byId = id => document.getElementById(id);
const text = words => h("bdi", {}, shown(String(words)));

// Makes `old` the same as `made`, so that focus, open details and what was typed stay. `data-keep`: children are left alone.
function patch(old, made) {
  for (const {name} of [...old.attributes]) {
    if (!made.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
  for (const {name, value} of [...made.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (made.hasAttribute("data-keep")) return;
  const fresh = [...made.childNodes];
  while (old.childNodes.length > fresh.length) old.lastChild.remove();
  fresh.forEach((child, place) => {
    const now = old.childNodes[place];
    if (!now) old.append(child);
    else if (now.nodeType !== child.nodeType || now.nodeName !== child.nodeName || now.id !== child.id || now.dataset?.key !== child.dataset?.key) now.replaceWith(child);
    else if (now.nodeType === Node.TEXT_NODE) { if (now.data !== child.data) now.data = child.data; }
    else patch(now, child);
  });
}

const count = value => value === null || value === undefined ? "?" : value.toLocaleString("en");
const several = (value, one) => `${count(value)} ${value === 1 ? one : `${one}s`}`;
const percent = (part, whole) => whole ? `${Math.floor(100 * part / whole)}%` : "";
const rate = value => value >= 10 ? `${count(Math.round(value))}/s` : value >= 1 ? `${value.toFixed(1)}/s` : value > 0 ? `${(value * 60).toFixed(0)}/min` : "0/s";

function clock(at) {
  if (!at) return "–";
  const then = new Date(at), isToday = Math.abs(then - Date.now()) < 64800000;
  const words = then.toLocaleString(undefined, isToday ? {timeStyle: "medium"} : {dateStyle: "medium", timeStyle: "short"});
  return h("time", {datetime: at, title: at}, words);
}

function inWords(at) {
  const seconds = (new Date(at) - Date.now()) / 1000;
  return seconds > 0 ? `in ${duration(Math.max(1, Math.round(seconds)))}` : "now";
}

function pill(state, code = null) {
  const tones = {complete: {0: "good", 1: "bad"}[code] ?? "doubt", lost: "bad", damaged: "bad", checking: "same", running: "same"};
  return h("span", {class: `pill ${tones[state] ?? "doubt"}`}, state);
}

const KINDS = ["succeeded", "unchanged", "failed", "skipped", "unknown"];

// things: what is counted, where it is not items.
function bar(outcomes, items, things = "") {
  const done = KINDS.reduce((sum, kind) => sum + (outcomes[kind] ?? 0), 0), whole = Math.max(1, items ?? done);
  const says = things ? `${count(outcomes.succeeded)} of ${count(items)} ${things}` : KINDS.filter(kind => outcomes[kind]).map(kind => `${count(outcomes[kind])} ${kind}`).join(", ") || "none has ended";
  const svg = shape("svg", {class: "bar", viewBox: "0 0 1000 8", preserveAspectRatio: "none", role: "img", "aria-label": says});
  let x = 0;
  for (const kind of KINDS) {
    if (!outcomes[kind]) continue;
    const width = Math.max(4, 1000 * outcomes[kind] / whole);
    svg.append(shape("rect", {class: `f-${kind}`, x: Math.min(x, 1000 - width).toFixed(1), y: 0, width: width.toFixed(1), height: 8}));
    x += width;
  }
  return svg;
}

const doneOf = outcomes => Object.values(outcomes).reduce((sum, each) => sum + each, 0);

function progress(outcomes, items) {
  const done = doneOf(outcomes);
  return [`${count(done)}${items === null ? "" : ` of ${count(items)}`} `, h("span", {class: "soft"}, percent(done, items)), bar(outcomes, items)];
}

// rows: arrays of cells; a cell is words, a node or an array of them. The first cell of a row is its head.
function grid(caption, heads, rows, {right = [], className = ""} = {}) {
  const cells = (row, isHead) => row.map((cell, place) => {
    const parts = (Array.isArray(cell) ? cell : [cell]).map(each => each instanceof Node ? each : each === null ? "–" : text(each));
    const attributes = {class: right.includes(place) ? "r" : null, scope: isHead ? "col" : place ? null : "row", "data-head": isHead || !place ? null : heads[place]};
    return h(isHead || !place ? "th" : "td", attributes, ...parts);
  });
  return h("div", {class: "scroll cards", tabindex: "0", role: "region", "aria-label": caption},
    h("table", {class: className}, h("thead", {}, h("tr", {}, ...cells(heads, true))), h("tbody", {}, ...rows.map(row => h("tr", {}, ...cells(row, false))))));
}

class Refused extends Error {
  constructor(status, answer) {
    super(answer.error ?? `status ${status}`);
    this.status = status;
    this.command = answer.command ?? "";
  }
}

const tags = new Map();

// Returns the answer; the same one as before (`===`) where nothing has changed.
async function ask(path) {
  const before = tags.get(path), headers = {Authorization: `Bearer ${sessionStorage.getItem("key") ?? ""}`};
  if (before) headers["If-None-Match"] = before.tag;
  const answer = await fetch(`/api${path}`, {headers, cache: "no-store", credentials: "omit", redirect: "error"});
  if (answer.status === 304) return before.data;
  const data = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, data);
  if (tags.size > 50) tags.clear();
  tags.set(path, {tag: answer.headers.get("ETag"), data});
  return data;
}

async function tell(path, args) {
  const headers = {Authorization: `Bearer ${sessionStorage.getItem("key") ?? ""}`, "Content-Type": "application/json"};
  const answer = await fetch(`/api${path}`, {method: "POST", headers, body: JSON.stringify(args), credentials: "omit", redirect: "error"});
  const data = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, data);
  return data;
}

const said = words => { byId("said").textContent = words; };
