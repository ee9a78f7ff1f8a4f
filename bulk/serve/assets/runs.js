// The list of runs, and the budgets that they spend.

const runPath = name => `/run/${encodeURIComponent(name)}`;

function runsView(data, query) {
  const states = Object.entries(data.states).sort();
  const rows = data.runs.map(run => {
    const wrong = (run.outcomes.failed ?? 0) + (run.outcomes.unknown ?? 0);
    const waits = run.waits_for ? [text(run.waits_for), ...(run.until ? [" until ", clock(run.until)] : [])] : run.why ? [text(run.why)] : "–";
    const ends = run.finish_at ? ["about ", clock(run.finish_at)] : run.ended_at ? ["ended ", clock(run.ended_at)] : "–";
    return [
      [h("a", {href: runPath(run.name)}, text(run.name)), run.title === run.name ? "" : h("div", {class: "soft small"}, text(run.title))],
      [pill(run.state, run.exit_code), run.is_silent ? h("div", {class: "warn small"}, "does not answer") : ""],
      progress(run.outcomes, run.items),
      wrong ? h("span", {class: "failed"}, count(wrong)) : "0",
      waits,
      [...(Array.isArray(ends) ? ends : [ends]), run.started_at ? h("div", {class: "soft small"}, run.ended_at ? ["took ", duration((new Date(run.ended_at) - new Date(run.started_at)) / 1000)] : ["started ", clock(run.started_at)]) : ""],
      run.exit_code === null ? "–" : String(run.exit_code),
    ];
  });
  const shownOf = data.fitting > data.runs.length ? `The newest ${data.runs.length} of ${count(data.fitting)} runs; search for others.` : several(data.fitting, "run") + (data.fitting === data.total ? "" : ` of ${count(data.total)}`);
  return [
    h("h1", {tabindex: "-1"}, "Runs"),
    h("section", {},
      h("form", {class: "tools filters", role: "search", "data-filter": "runs"},
        h("label", {}, "Search", h("input", {type: "search", name: "q", value: query.get("q") ?? "", autocomplete: "off"})),
        h("label", {}, "State", h("select", {name: "state", "data-key": states.join()}, h("option", {value: ""}, "all"), ...states.map(([state, number]) => h("option", {value: state, selected: state === query.get("state")}, `${state} (${number})`))))),
      data.trouble ? h("p", {class: "warn"}, "Not all is shown as it is: ", text(data.trouble)) : null,
      h("p", {class: "soft small", role: "status"}, shownOf),
      rows.length ? grid("Runs", ["Run", "State", "Progress", "Failed", "Waits for", "Ends", "Exit"], rows, {right: [3, 6], className: "runs"}) : h("p", {}, "No run fits.")),
  ];
}

function budgetTable(rows) {
  return grid("Budgets", ["Budget", "Left", "Reserved", "Resets", "Spent by the run", "Now"], rows.map(({name, bucket}) => [
    name,
    bucket.limit === null ? "no limit" : [`${count(bucket.remaining)} of ${count(bucket.limit)}`, bar({succeeded: Math.max(0, bucket.remaining ?? 0)}, bucket.limit)],
    count(bucket.reserve),
    bucket.reset_at ? [clock(bucket.reset_at), h("div", {class: "soft small"}, inWords(bucket.reset_at))] : "–",
    count(bucket.used),
    bucket.closed_because ? [h("span", {class: "unknown"}, text(bucket.closed_because === `bucket ${bucket.category}` ? "used up" : bucket.closed_because)), ...(bucket.opens_at ? [" until ", clock(bucket.opens_at)] : [])]
      : [bucket.pace ? `spread, ${rate(bucket.pace)}` : "open", ...(bucket.waiting ? [`, ${several(bucket.waiting, "item")} wait`] : [])],
  ]), {right: [2, 4]});
}

function budgetsView(data) {
  return [
    h("h1", {tabindex: "-1"}, "Budgets"),
    h("section", {}, h("p", {class: "soft"}, "What the runs that go on say of each credential and category. Runs on one credential share its budgets."),
      data.length ? budgetTable(data.map(each => ({name: [text(`${each.bucket.credential}/${each.bucket.category} `), h("a", {href: runPath(each.run)}, text(each.run))], bucket: each.bucket})))
        : h("p", {}, "No run goes on.")),
  ];
}
