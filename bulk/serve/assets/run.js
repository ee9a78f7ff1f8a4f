// One run: where it stands, what it waits for, what fails, its plots.

function command(words) {
  return h("div", {class: "command"}, h("code", {}, shown(words)), h("button", {type: "button", "data-copy": words}, "Copy"));
}

function facts(page) {
  const {run} = page, status = run.status, isLive = status && ["running", "pausing", "paused", "draining"].includes(run.state);
  const found = [`${count(doneOf(run.outcomes))}${run.items === null ? "" : ` of ${count(run.items)}`} items`, ...KINDS.filter(kind => run.outcomes[kind]).map(kind => [h("span", {class: kind}, `${count(run.outcomes[kind])} ${kind}`)])];
  if (run.items !== null && run.items > doneOf(run.outcomes)) found.push(`${count(run.items - doneOf(run.outcomes))} left`);
  if (isLive) {
    found.push(rate(status.per_second), `${count(status.in_flight)} of ${count(status.concurrency)} in flight`);
    if (status.finish_at) found.push(["ends about ", clock(status.finish_at)]);
  }
  if (status) found.push(several(status.requests, "request"), ...(status.retries ? [`${count(status.retries)} repeated`] : []), ...(status.settled ? [`${count(status.settled)} settled`] : []));
  if (page.started_at) found.push(["started ", clock(page.started_at)]);
  if (page.ended_at && !isLive) found.push(["ended ", clock(page.ended_at)]);
  return h("div", {class: "facts"}, ...found.map(each => h("span", {}, ...(Array.isArray(each) ? each : [each]))));
}

function gateSection(page) {
  const gate = page.gate;
  if (!gate) return null;
  const place = shown(page.run.run_dir), done = gate.is_over ? "Look at what fails below, first." : `Wave ${gate.wave - 1} is done: look at what came of it, first.`;
  return h("section", {class: "go", id: "gate"}, h("h2", {}, `Wave ${gate.wave} of ${gate.of} of `, text(gate.job)),
    h("p", {}, gate.is_over ? "It has more errors than its budget allows, so nothing more of it was sent. " : "It waits to be opened. ", done),
    gate.is_over ? null : h("div", {}, command(`bulk approve ${quoted(place)} --wave ${gate.wave} && bulk resume ${quoted(place)}`)));
}

const quoted = words => /^[\w@%+=:,./-]+$/u.test(words) ? words : `'${words.replaceAll("'", "'\"'\"'")}'`;

function waitsSection(page) {
  const {run} = page, waits = run.status?.waits ?? [];
  if (!["running", "pausing", "paused", "draining", "checking"].includes(run.state)) return null;
  const lines = waits.map(wait => h("li", {}, h("span", {}, text(wait.what), ...(wait.until ? [" until ", clock(wait.until), h("span", {class: "soft"}, ` (${inWords(wait.until)})`)] : []),
    ...(wait.error ? [h("div", {class: "warn small"}, wait.errors > 1 ? `${count(wait.errors)} times: ` : "", text(wait.error))] : [])), h("span", {class: "num"}, several(wait.count, "item"))));
  return h("section", {id: "waits"}, h("h2", {}, "Waits for"), lines.length ? h("ul", {class: "waits"}, ...lines) : h("p", {class: "soft"}, "Nothing: it works at full speed."));
}

function jobsSection(page) {
  const live = Object.fromEntries((page.run.status?.jobs ?? []).map(job => [job.name, job]));
  const path = `${runPath(page.name)}/items?job=`;
  const rows = page.run.jobs.map(job => {
    const waits = live[job.name]?.state === "waiting" && live[job.name].waits_for.length ? `waits for ${live[job.name].waits_for.join(", ")}` : "";
    return [[h("a", {href: path + encodeURIComponent(job.name)}, text(job.name)), h("div", {class: "soft small"}, text(job.operation))],
      [...progress(job.outcomes, job.items), waits ? h("div", {class: "soft small"}, text(waits)) : ""],
      ...["failed", "skipped", "unknown"].map(kind => job.outcomes[kind] ? h("span", {class: kind}, count(job.outcomes[kind])) : "0")];
  });
  return h("section", {}, h("h2", {}, "Jobs"), grid("Jobs", ["Job", "Progress", "Failed", "Skipped", "Unknown"], rows, {right: [2, 3, 4]}));
}

function failuresSection(page) {
  if (!page.failures.length) return null;
  const canRetry = !page.is_read_only && page.run.state === "complete";
  const rows = page.failures.map(({job, code, items, message}) => {
    const where = new URLSearchParams({job, code});
    return [text(code), text(job), count(items), text(message || "–"), [h("a", {href: `${runPath(page.name)}/items?${where}`, "aria-label": `Show the ${several(items, "item")} with ${code} in ${shown(job)}`}, "Show"), ...(canRetry ? [" ", h("button", {type: "button", "data-step": "retry", "data-job": job, "data-code": code, "data-items": items}, "Retry these")] : [])]];
  });
  return h("section", {id: "failures"}, h("h2", {}, "What fails"), grid("What fails", ["Code", "Job", "Items", "First message", "Items of it"], rows, {right: [2]}));
}

function actionsSection(page) {
  if (!page.actions.length) return null;
  const rows = [...page.actions].reverse().map(done => [[clock(done.at)], done.who, done.verb, Object.entries(done.args).map(([name, value]) => `${name}=${value}`).join(" ") || "–", done.result]);
  return h("section", {id: "actions"}, h("h2", {}, "Actions"), grid("Actions", ["When", "Who", "What", "With", "Then"], rows));
}

function runView(page) {
  const {run} = page, buckets = run.status?.buckets ?? [], several = new Set(buckets.map(bucket => bucket.credential)).size > 1;
  const notes = [];
  if (page.is_silent) notes.push("Its process does not answer: it may be stuck, or its machine is asleep.");
  else if (run.is_stale && run.state !== "lost") notes.push("Its last word is old.");
  return [
    h("div", {class: "head"}, h("div", {}, h("h1", {tabindex: "-1"}, text(run.name)), h("div", {class: "facts"}, h("span", {}, text(run.run_dir)), h("span", {}, text(run.base_url)))), pill(run.state, run.exit_code)),
    h("section", {id: "standing"}, bar(run.outcomes, run.items), facts(page), run.why && !(page.gate && !page.gate.is_over) ? h("p", {class: "warn"}, text(run.why)) : null, ...notes.map(words => h("p", {class: "warn"}, words)), buttons(page)),
    gateSection(page),
    run.next_command && !page.gate && run.state !== "running" ? h("section", {class: "go"}, h("h2", {}, "Next command"), command(run.next_command)) : null,
    waitsSection(page), failuresSection(page), jobsSection(page), sharesSection(page),
    buckets.length ? h("section", {id: "budgets"}, h("h2", {}, "Budgets"), budgetTable(buckets.map(bucket => ({name: several ? `${bucket.credential}/${bucket.category}` : bucket.category, bucket})))) : null,
    h("section", {id: "plots", "data-keep": true}, h("h2", {}, "Plots"), h("div", {class: "plots"})),
    actionsSection(page),
    h("p", {}, h("a", {href: `${runPath(page.name)}/items`}, "All items that have ended")),
  ].filter(Boolean);
}

// Draws the plots into their place; what is there already is drawn anew, so that an open table stays open.
function drawPlots(all) {
  const place = byId("plots")?.querySelector(".plots");
  if (!place) return;
  const before = new Map([...place.children].map(each => [each.querySelector("figcaption")?.textContent, each]));
  const made = all.map(plot => {
    const there = before.get(plot.title);
    before.delete(plot.title);
    if (!there) return figure(plot);
    there.redraw(plot);
    return there;
  });
  for (const gone of before.values()) gone.remove();
  made.forEach((each, at) => { if (place.children[at] !== each) place.insertBefore(each, place.children[at] ?? null); });
  if (!made.length) place.replaceChildren(h("p", {class: "soft"}, "There are no figures yet."));
}
