// Audits: the list of them, one over time, and its lists of what is violated and what has changed.

const auditPath = (name, list = "") => `/audit/${encodeURIComponent(name)}${list && `/${list}`}`;
const TONES = {error: "c3", warning: "c1", note: "c0"};
const NEWEST = 14;
const openOf = night => night.new + night.known;

function verdict(night) {
  if (!night) return h("span", {class: "pill same"}, "no night yet");
  if (!night.is_good) return h("span", {class: "pill doubt"}, "not compared");
  if (night.is_blind) return h("span", {class: "pill bad"}, "nothing could be read");
  const words = night.verdict.join(" and "), tone = night.verdict.includes("violation") ? "bad" : words ? "doubt" : "good";
  return h("span", {class: `pill ${tone}`}, words || "as it should be");
}

// A row of columns, the newest at the right; what is null leaves a gap.
function spark(values, says) {
  const most = Math.max(1, ...values.map(value => value ?? 0)), wide = 6;
  const svg = shape("svg", {class: "spark", viewBox: `0 0 ${wide * Math.max(values.length, 12)} 24`, role: "img", "aria-label": says});
  const from = Math.max(0, 12 - values.length);
  values.forEach((value, place) => {
    if (value === null) return;
    const high = value ? Math.max(2, 22 * value / most) : 1;
    svg.append(shape("rect", {class: value ? "c3" : "none", x: (from + place) * wide, y: (24 - high).toFixed(1), width: wide - 1, height: high.toFixed(1)}, count(value)));
  });
  return svg;
}

function auditsView(data) {
  const rows = data.map(audit => {
    const last = audit.last, known = audit.trend.filter(value => value !== null);
    if (audit.why) return [audit.name, h("span", {class: "pill bad"}, "damaged"), text(audit.why), null, null, null, null];
    return [
      [h("a", {href: auditPath(audit.name)}, text(audit.name)), h("div", {class: "soft small"}, several(audit.nights, "night"))],
      [verdict(last), audit.going ? h("div", {class: "small"}, h("a", {href: runPath(audit.going.name)}, `a run is ${audit.going.state}`)) : ""],
      last ? [clock(last.at), h("div", {class: "soft small"}, ago(last.at))] : null,
      last ? [count(openOf(last)), last.new ? h("div", {class: "failed small"}, `${count(last.new)} new`) : "", last.waived ? h("div", {class: "soft small"}, `${count(last.waived)} waived`) : ""] : null,
      last ? count(last.drift) : null,
      known.length ? spark(audit.trend, `Violations of the last nights: ${known.map(count).join(", ")}`) : null,
      last ? String(last.exit_code) : null,
    ];
  });
  return [
    h("h1", {tabindex: "-1"}, "Audits"),
    h("section", {}, rows.length ? grid("Audits", ["Audit", "Last night", "When", "Violations", "Changed", "Violations over time", "Exit"], rows, {right: [3, 4, 6], className: "runs"})
      : [h("p", {}, "There is no audit yet."), h("p", {class: "soft"}, h("code", {}, "bulk audit MANIFEST"), " makes its first night; ", h("code", {}, "bulk serve --audits DIR"), " looks elsewhere than in ", h("code", {}, "audits"), ".")]),
  ];
}

function ago(at) {
  const seconds = Math.max(0, (Date.now() - new Date(at)) / 1000);
  return `${duration(Math.max(1, Math.round(seconds)))} ago`;
}

function auditTiles(page, night) {
  const tile = (head, value, more, href = null) => h("div", {}, h("dt", {}, head), h("dd", {}, href && value ? h("a", {href}, count(value)) : count(value), h("small", {}, more)));
  return h("dl", {class: "tiles"},
    tile("Violations", openOf(night), `${count(night.new)} new, ${count(night.fixed)} fixed${night.unknown ? `, ${count(night.unknown)} unknown` : ""}`, auditPath(page.name, "violations")),
    tile("Waived", night.waived, `${percent(night.waived, night.waived + openOf(night)) || "0%"} of what is found`, `${auditPath(page.name, "violations")}?status=waived`),
    tile("Items changed", night.drift, several(night.changes, "field"), `${auditPath(page.name, "changes")}?night=${encodeURIComponent(night.run)}`),
    tile("Lost sight of", night.lost_sight, "could be read before"),
    tile("Items read", night.items - night.failed, `of ${count(night.items)}, for ${several(night.units, "unit")}`));
}

function auditView(page) {
  const last = page.nights[0] ?? null, good = page.judged.at(-1) ?? null, waived = page.waivers.reduce((sum, each) => sum + each.violations, 0);
  const notes = page.notes.map(words => h("li", {}, text(words)));
  if (last && !last.is_good) notes.unshift(h("li", {}, "The last night was not compared: ", text(last.why || "its run did not end")));
  if (page.going) notes.unshift(h("li", {}, "The run of a new night is ", h("a", {href: runPath(page.going.name)}, page.going.state), "."));
  if (page.is_cut) notes.unshift(h("li", {}, "The last night found too much to be read here: ", h("code", {}, shown(`bulk sql ${page.path}`)), " shows it."));
  const policies = page.policies.map(({now, trend}) => [
    [h("a", {href: `${auditPath(page.name, "violations")}?policy=${encodeURIComponent(now.name)}`}, text(now.name)), now.description ? h("div", {class: "soft small"}, text(now.description)) : ""],
    h("span", {class: `severity ${now.severity}`}, now.severity), now.is_failed ? h("span", {class: "failed"}, "no") : now.unknown || now.unread ? "unknown" : "yes",
    ...["new", "known", "fixed", "unknown", "waived"].map(kind => count(now[kind])),
    spark(trend, `Violations night by night: ${trend.map(value => value === null ? "none yet" : count(value)).join(", ")}`),
  ]);
  const fields = page.drift.by_field.map(([field, items]) => [h("code", {}, shown(field)), count(items)]);
  return [
    h("div", {class: "head"}, h("div", {}, h("h1", {tabindex: "-1"}, text(page.name)), h("div", {class: "facts"}, h("span", {}, text(page.path)), last ? h("span", {}, "last night ", clock(last.at), ` (${ago(last.at)})`) : null)), verdict(last)),
    notes.length ? h("section", {class: "notes", id: "notes"}, h("ul", {}, ...notes)) : null,
    good ? h("section", {id: "standing"}, last === good || last.run === good.run ? null : h("p", {class: "soft"}, "Of the last night that was compared, ", clock(good.at), ":"), auditTiles(page, good)) : null,
    policies.length ? h("section", {id: "policies"}, h("h2", {}, "Policies"), grid("Policies", ["Policy", "Severity", "Holds", "New", "Known", "Fixed", "Unknown", "Waived", "Night by night"], policies, {right: [3, 4, 5, 6, 7]})) : null,
    h("section", {id: "plots", "data-keep": true}, h("h2", {}, "Night by night"), h("div", {class: "plots"})),
    page.waivers.length ? h("section", {id: "waivers"}, h("h2", {}, "Waivers"),
      h("p", {class: "soft"}, `${several(page.waivers.length, "waiver")} ${page.waivers.length === 1 ? "covers" : "cover"} ${several(waived, "violation")}, ${percent(waived, waived + openOf(good))} of what is found.`),
      grid("Waivers", ["Policy", "Why, who and until when", "Violations"], page.waivers.map(each => [each.policy, each.words, count(each.violations)]), {right: [2]})) : null,
    fields.length ? h("section", {id: "fields"}, h("h2", {}, "What changed in the last night, by field"), grid("Fields", ["Field", "Items"], fields, {right: [1]}),
      h("p", {class: "foot"}, h("a", {href: auditPath(page.name, "changes")}, "All changes, with when each value was seen first and last"))) : null,
    nightsSection(page),
  ].filter(Boolean);
}

const nightTable = (name, rows) => grid(name, ["Night", "Verdict", "Items", "Failed", "Units", "Changed", "Violations", "New", "Fixed", "Waived", "Exit", "Run"], rows, {right: [2, 3, 4, 5, 6, 7, 8, 9, 10]});

function nightsSection(page) {
  const judged = new Set(page.judged.map(night => night.run));
  const link = (list, night, words) => judged.has(night.run) ? h("a", {href: `${auditPath(page.name, list)}?night=${encodeURIComponent(night.run)}`}, words) : words;
  const rows = page.nights.map(night => [
    [clock(night.at), night.is_good ? "" : h("div", {class: "soft small"}, text(night.why))],
    verdict(night), count(night.items), night.failed ? h("span", {class: "failed"}, count(night.failed)) : "0", count(night.units),
    night.is_good ? link("changes", night, count(night.drift)) : null, night.is_good ? link("violations", night, count(openOf(night))) : null,
    night.is_good ? night.new ? h("span", {class: "failed"}, count(night.new)) : "0" : null, night.is_good ? count(night.fixed) : null, night.is_good ? count(night.waived) : null,
    String(night.exit_code), page.runs[night.run] ? h("a", {href: runPath(page.runs[night.run]), "aria-label": `The run of ${night.at.slice(0, 10)}`}, "Run") : h("span", {class: "soft"}, "gone"),
  ]);
  return h("section", {id: "nights"}, h("h2", {}, "Nights"),
    rows.length ? nightTable("Nights", rows.slice(0, NEWEST)) : h("p", {}, "No night counts yet."),
    rows.length > NEWEST ? h("details", {}, h("summary", {}, `Earlier nights (${count(page.total - NEWEST)})`), page.total > rows.length ? h("p", {class: "soft small"}, `The newest ${count(rows.length)} of ${count(page.total)}.`) : null, nightTable("Earlier nights", rows.slice(NEWEST))) : null);
}

// Columns for nights: each is one step of the plot, and its words are the day.
function auditPlots(page) {
  const found = [], day = at => at.slice(0, 10);
  const add = (title, nights, series) => {
    if (nights.length < 2 || !series.length) return;
    const most = Math.max(1, ...nights.map((_, place) => series.reduce((sum, each) => sum + each.values[place], 0)));
    found.push({...linear(most, ""), title, total: nights.length, breaks: [], edges: Array.from({length: nights.length + 1}, (_, place) => place), series, unit: "", draw: stacked,
      says: place => new Date(nights[place].at).toLocaleDateString(undefined, {month: "short", day: "numeric"}), legend: series.map(each => [each.name, each.className]), heads: ["Night", ...series.map(each => each.name)],
      figures: () => nights.map((night, place) => [day(night.at), ...series.map(each => count(each.values[place]))])});
  };
  const good = [...page.nights].reverse().filter(night => night.is_good).slice(-120);
  const of = (name, className, value) => ({name, className, values: good.map(value)});
  add("Violations by severity", page.judged, Object.entries(page.severities).map(([name, values]) => ({name, className: TONES[name], values})));
  add("Violations: new, known, waived", good, [of("new", "c3", night => night.new), of("known", "c1", night => night.known), of("waived", "c7", night => night.waived)].filter(each => each.values.some(Boolean)));
  add("Items that changed, and were lost sight of", good, [of("changed", "c0", night => night.drift), of("lost sight of", "c4", night => night.lost_sight)].filter(each => each.values.some(Boolean)));
  add("Units spent", good, [of("units", "c5", night => night.units)]);
  return found;
}

// A list of an audit. where.list: violations or changes.
function auditListView(where, page, query) {
  const heads = {policy: "Policy", severity: "Severity", status: "Status", job: "Job", kind: "Kind"};
  const chosen = (name, values, words = value => value.replaceAll("_", " ")) => {
    const now = query.get(name) ?? "", all = values.includes(now) || !now ? values : [...values, now];
    return h("label", {}, heads[name] ?? "Night", h("select", {name, "data-key": all.join()}, h("option", {value: ""}, name === "night" && where.list === "violations" ? "the last" : "all"), ...all.map(value => h("option", {value, selected: value === now}, shown(words(value))))));
  };
  const days = new Map(page.nights.map(night => [night.run, `${night.at.slice(0, 10)} ${night.at.slice(11, 16)}`]));
  const to = first => { const next = new URLSearchParams(query); if (first) next.set("first", first); else next.delete("first"); return `${auditPath(where.audit, where.list)}?${next}`; };
  const behind = page.first + page.rows.length, made = where.list === "violations" ? violationRows(page) : changeRows(page);
  return [
    h("div", {class: "head"}, h("h1", {tabindex: "-1"}, where.list === "violations" ? "Violations of " : "Changes of ", h("a", {href: auditPath(where.audit)}, text(where.audit)))),
    h("section", {},
      h("form", {class: "tools filters", role: "search", "data-filter": "audit"}, h("label", {}, "Search", h("input", {type: "search", name: "q", value: query.get("q") ?? "", autocomplete: "off", maxlength: "200"})),
        chosen("night", [...days.keys()], run => days.get(run) ?? run), ...Object.entries(page.values).map(([name, values]) => chosen(name, values))),
      h("p", {class: "soft small", id: "found", role: "status"}, page.fitting > page.rows.length ? `${count(page.first + 1)} to ${count(behind)} of ${count(page.fitting)}` : several(page.fitting, "row"), page.fitting < page.total ? ` of ${count(page.total)}` : "", page.is_cut ? ". Not all is here: bulk sql has the whole." : ""),
      page.rows.length ? made : h("p", {}, page.total ? "Nothing fits." : where.list === "violations" ? "Nothing is violated." : "Nothing has changed in the nights that are kept."),
      h("div", {class: "foot pages"}, page.first ? h("a", {href: to(Math.max(0, page.first - 100)), rel: "prev"}, "Previous 100") : null, behind < page.fitting ? h("a", {href: to(behind), rel: "next"}, `Next ${Math.min(100, page.fitting - behind)}`) : null)),
  ];
}

function violationRows(page) {
  const tone = {new: "failed", known: "unknown"};
  return grid("Violations", ["What", "Policy", "Severity", "Status", "First seen", "Last seen"], page.rows.map(row => [
    [text(row.message), row.waiver ? h("div", {class: "soft small"}, "waived: ", text(row.waiver)) : ""], row.policy, h("span", {class: `severity ${row.severity}`}, row.severity),
    h("span", {class: tone[row.status] ?? "soft"}, row.status), [clock(row.first_seen)], [clock(row.last_seen)]]), {className: "found"});
}

function changeRows(page) {
  return grid("Changes", ["Item and field", "Job", "Before", "Now", "First seen", "Last seen"], page.rows.map(row => [
    [text(row.label), row.id ? h("span", {class: "tag"}, text(row.id)) : "", row.field ? h("div", {class: "small"}, h("code", {}, shown(row.field))) : "", row.kind === "changed" ? "" : h("div", {class: "soft small"}, row.kind.replaceAll("_", " "))],
    row.job, row.old, row.new, row.first_seen ? [clock(row.first_seen)] : null, row.last_seen ? [clock(row.last_seen)] : row.kind === "changed" ? h("span", {class: "soft"}, "still so") : null]));
}
