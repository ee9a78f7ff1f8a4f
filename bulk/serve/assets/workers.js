// A store: its workers and what they do, the shards of its runs, and the budgets that all of them share.

const STATES = {working: "good", silent: "bad", idle: "same", gone: "doubt"};
const storedPath = name => runPath(`store:${name}`);

function workerRows(workers, isOfRun) {
  return workers.map(worker => {
    const work = worker.work.map(each => h("div", {}, isOfRun ? "" : h("a", {href: storedPath(each.run)}, text(each.run)), isOfRun ? "" : " ",
      each.exit_code !== null ? h("span", {class: "soft"}, each.why ? text(each.why) : `ended with exit code ${each.exit_code}`) : each.shards ? `${several(each.shards, "shard")}, ${rate(each.per_second)}, ${count(each.in_flight)} in flight` : h("span", {class: "soft"}, "holds nothing of it")));
    return [text(worker.name), h("span", {class: `pill ${STATES[worker.state]}`}, worker.state), work.length ? work : h("span", {class: "soft"}, "nothing yet"), [`${duration(Math.max(1, Math.round(worker.silent_s)))} ago`], worker.engine];
  });
}

const workerTable = (workers, isOfRun = false) => grid("Workers", ["Worker", "State", "Does", "Heard of", "Engine"], workerRows(workers, isOfRun));

function shardTable(runs) {
  return grid("Shards", ["Run", "Done", "Held", "Lapsed", "Waiting", "Taken again", "State"], runs.map(run => {
    const waiting = Math.max(0, run.shards - run.done - run.leased - run.lapsed);
    return [h("a", {href: storedPath(run.run)}, text(run.run)), [`${count(run.done)} of ${count(run.shards)} `, bar({succeeded: run.done, unchanged: run.leased, failed: run.lapsed}, run.shards, "shards")],
      count(run.leased), run.lapsed ? h("span", {class: "failed"}, count(run.lapsed)) : "0", count(waiting), count(run.taken_again), pill(run.state)];
  }), {right: [2, 3, 4, 5]});
}

const budgetGrid = (name, rows) => grid(name, ["Budget", "Free to lend", "Reserved", "Resets", "Sent", "Lent to"], rows, {right: [2, 4]});

function workersView(data) {
  const at = Date.parse(data.at), working = data.workers.filter(each => each.state === "working").length, silent = data.workers.filter(each => each.state === "silent").length, idle = data.workers.filter(each => each.state === "idle").length;
  const budgets = data.budgets.map(each => {
    const lent = each.held.reduce((sum, one) => sum + one.tokens, 0), resets = Date.parse(each.reset_at);
    return [[text(`${each.credential}/${each.category}`), h("div", {class: "soft small"}, text(each.platform))], [`${count(each.free)} of ${count(each.limit)} `, bar({succeeded: each.free, unchanged: lent}, each.limit, "requests")],
      count(each.reserve), resets > at ? [clock(each.reset_at), h("div", {class: "soft small"}, inWords(each.reset_at))] : "over", count(each.sent),
      each.held.length ? each.held.map(one => h("div", {}, text(`${one.worker}: ${count(one.tokens)}`))) : "nobody"];
  });
  const isUsed = data.budgets.map(each => each.sent > 0 || each.held.length > 0), used = budgets.filter((_, place) => isUsed[place]), unused = budgets.filter((_, place) => !isUsed[place]);
  const accounts = data.accounts.map(each => [[text(each.credential), h("div", {class: "soft small"}, text(each.platform))], each.trust, each.paused_at && Date.parse(each.paused_at) > at ? ["until ", clock(each.paused_at)] : "no", each.why || "–"]);
  const again = data.takeovers.map(each => [[h("a", {href: storedPath(each.run)}, text(each.run)), ` shard ${each.shard}`], count(each.items), `${count(each.holders)} times`, each.is_done ? "nobody: it is done" : each.worker ? text(each.worker) : "nobody", each.is_done || !each.until ? "–" : [clock(each.until)]]);
  return [
    h("h1", {tabindex: "-1"}, "Workers"),
    h("section", {id: "workers"}, h("p", {role: "status"}, `${several(working, "worker")} at work`, idle ? `, ${count(idle)} idle` : "", silent ? [", ", h("span", {class: "failed"}, `${count(silent)} silent`)] : "", "."),
      data.workers.length ? workerTable(data.workers) : h("p", {}, "No worker has come yet."),
      h("p", {class: "soft small"}, "An idle worker looks for work. One that is gone holds nothing: it has ended, or can't reach the store. Of a silent one others take over what it holds when its lease has lapsed.")),
    h("section", {id: "shards"}, h("h2", {}, "Shards"), data.runs.length ? shardTable(data.runs) : h("p", {}, "No run goes on, and none ended within a day.")),
    again.length ? h("section", {id: "takeovers"}, h("h2", {}, "Shards with more than one holder"), h("p", {class: "soft"}, "Taken over from a worker that was silent, given back by one that was stopped, or opened again for a retry."), grid("Shards with more than one holder", ["Shard", "Items", "Taken", "Held by", "Until"], again, {right: [1]})) : null,
    budgets.length ? h("section", {id: "shared"}, h("h2", {}, "Shared budgets"), used.length ? budgetGrid("Shared budgets", used) : null,
      unused.length ? h("details", {}, h("summary", {}, `${several(unused.length, "budget")} that nobody has used`), budgetGrid("Unused budgets", unused)) : null) : null,
    accounts.length ? h("section", {id: "accounts"}, h("h2", {}, "Credentials"), grid("Credentials", ["Credential", "Trust", "Paused", "Why"], accounts)) : null,
  ].filter(Boolean);
}

// On the page of one run: how it is shared.
function sharesSection(page) {
  const shares = page.shares;
  if (!shares) return null;
  const part = shares.shards;
  return h("section", {id: "shares"}, h("h2", {}, "Workers of this run"),
    part ? h("p", {}, `${count(part.done)} of ${several(part.shards, "shard")} done, ${count(part.leased)} held`, part.lapsed ? [", ", h("span", {class: "failed"}, `${count(part.lapsed)} lapsed`)] : "", part.taken_again ? `; ${count(part.taken_again)} times a shard was taken again` : "", ". ", h("a", {href: "/workers"}, "All workers")) : null,
    shares.workers.length ? workerTable(shares.workers, true) : h("p", {class: "soft"}, "No worker has worked on it yet."));
}
