// What a person does to a run: each is asked once, in a dialog, and then sent.

const LIMITS = {
  concurrency: ["Most requests in flight", "a count, up to what the run was started with"],
  reserve: ["Left of each budget for others", "a count or a share, such as 500 or 10%"],
  failures: ["Failed items after which the run stops", "a count, a share, or none"],
  max_duration: ["How long the run may take", "such as 90s or 2h, or none"],
};

// Asks, and sends what was agreed to. fields: nodes of the form; args: what is sent, from the form; null: nothing is.
function confirm({title, says, fields = [], yes, isDanger = false, path, args}) {
  const dialog = byId("ask"), error = h("p", {class: "error", role: "alert"});
  const send = h("button", {type: "submit", class: isDanger ? "danger" : "main"}, yes);
  const cancel = h("button", {type: "button"}, "Cancel");
  const form = h("form", {method: "dialog"}, h("h2", {id: "ask-title"}, title), ...says.map(words => h("p", {}, words)), ...fields, error, h("div", {class: "buttons"}, cancel, send));
  cancel.addEventListener("click", () => dialog.close());
  form.addEventListener("submit", async event => {
    event.preventDefault();
    const wanted = args(form);
    if (wanted === null) return dialog.close();
    send.disabled = true;
    try {
      const done = await tell(path, wanted);
      dialog.close();
      said(`Done: the run is ${done.state}.`);
      wake();
    } catch (refused) {
      error.replaceChildren(text(refused.message), ...(refused.command ? [h("br"), "In a terminal: ", h("code", {}, shown(refused.command))] : []));
      send.disabled = false;
    }
  });
  dialog.replaceChildren(form);
  dialog.showModal();
  (fields.length ? form.querySelector("input") : cancel).focus();
}

const steps = {
  pause: (page, path) => confirm({
    title: `Pause ${shown(page.run.name)}?`, yes: "Pause", path: `${path}/pause`, args: () => ({}),
    says: [page.shares ? "No worker sends anything new until it is resumed; what is in flight ends first." : "Nothing new is sent until it is resumed. What is in flight ends first. The process stays, and its time limit goes on."],
  }),
  resume: (page, path) => confirm({
    title: `Resume ${shown(page.run.name)}?`, yes: "Resume", path: `${path}/resume`, args: () => ({}),
    says: [page.shares ? "Workers go on with it. Nothing is done twice." : page.run.state === "paused" || page.run.state === "pausing" ? "It goes on where it was paused." : `A new process goes on with it: ${several(page.run.left, "item")} are left. Nothing is done twice.`],
  }),
  gate: (page, path) => confirm({
    title: page.gate.is_over ? `Go on with wave ${page.gate.wave} all the same?` : `Open wave ${page.gate.wave}?`, yes: page.gate.is_over ? `Accept wave ${page.gate.wave}` : `Open wave ${page.gate.wave}`, path: `${path}/gate`, args: () => ({wave: page.gate.wave}),
    says: [page.gate.is_over ? `It has more errors than its budget allows: ${shown(page.run.why)}. From now on its errors are not counted against it.` : `The waves of ${shown(page.run.name)} up to number ${page.gate.wave} may begin.`, "A new process goes on with the run."],
  }),
  stop: (page, path) => confirm({
    title: `Stop ${shown(page.run.name)}?`, yes: "Stop", isDanger: true, path: `${path}/stop`,
    args: form => form.elements.now?.checked ? {now: true} : {},
    fields: page.shares ? [] : [h("label", {class: "check"}, h("input", {type: "checkbox", name: "now"}), "Don't wait for what is in flight; the next process settles it")],
    says: [page.shares ? "What is in flight ends first, then its workers leave it. It can be resumed." : "What is in flight ends first, then its process ends with exit code 3. It can be resumed."],
  }),
  set: (page, path) => {
    const names = Object.keys(LIMITS).filter(name => name !== "reserve" || !page.shares);
    const before = Object.fromEntries(names.map(name => [name, String(page.limits[name] ?? "none")]));
    confirm({
      title: `Limits of ${shown(page.run.name)}`, yes: "Set", path: `${path}/set`,
      args: form => {
        const changed = names.filter(name => form.elements[name].value.trim() !== before[name]);
        return changed.length ? Object.fromEntries(changed.map(name => [name, form.elements[name].value.trim()])) : null;
      },
      fields: names.map(name => [name, ...LIMITS[name]]).map(([name, label, hint]) => h("label", {}, `${label} `, h("span", {class: "soft"}, `(${hint})`), h("input", {name, value: before[name], autocomplete: "off"}))),
      says: [page.shares ? "Workers take them up at once, and keep to them after a resume too." : "They are in force at once. When the run is resumed, it begins with the old ones again."],
    });
  },
  retry: (page, path, chosen, items) => {
    const words = Object.values(chosen).filter(Boolean).map(shown).join(", ");
    confirm({
      title: "Run them again?", yes: `Retry ${count(items)}`, path: `${path}/retry`, args: () => chosen,
      says: [`${several(items, "item")}${words ? ` (${words})` : " that did not succeed"} of ${shown(page.run.name)} are run again by ${page.shares ? "workers" : "a new process"}. What is unknown is looked at first; new lines replace the old ones.`],
    });
  },
};

function buttons(page) {
  if (page.is_read_only) return null;
  const {state} = page.run, isLive = ["checking", "running", "pausing", "paused", "draining"].includes(state);
  const button = (step, words, className = "") => h("button", {type: "button", class: className, "data-step": step, "data-key": step}, words);
  const made = [];
  if (state === "running" || state === "checking") made.push(button("pause", "Pause"));
  if (page.gate) made.push(button("gate", page.gate.is_over ? `Accept wave ${page.gate.wave}` : `Open wave ${page.gate.wave}`, "main"));
  else if (["paused", "pausing", "stopped", "lost"].includes(state)) made.push(button("resume", "Resume", "main"));
  if (isLive && state !== "draining" && (!page.shares || Object.keys(page.limits).length)) made.push(button("set", "Limits"));
  if (isLive) made.push(button("stop", "Stop", "danger"));
  const wrong = wrongOf(page.run);
  if (state === "complete" && wrong) made.push(button("retry", `Retry ${count(wrong)}`, "main"));
  return h("div", {class: "buttons", role: "group", "aria-label": "Steer the run"}, ...made);
}

const wrongOf = run => (run.outcomes.failed ?? 0) + (run.outcomes.skipped ?? 0) + (run.outcomes.unknown ?? 0) - run.superseded;
