// SPDX-License-Identifier: GPL-2.0-or-later
// console.js -- the page: takes states as they come, draws them, and asks for changes.
// Whatever a target or an administrator says is text: it enters the page through textContent alone.

import {bytes, count, figure, NOTHING, one, rows, said, seconds, share, timed} from "./figures.js";
import {chart, slots} from "./charts.js";

const $ = (id) => document.getElementById(id);
const MODES = {
  running: ["●", "good", "running"], paused: ["❙❙", "wait", "paused"], draining: ["▼", "wait", "draining"],
};
const ROLES = {
  manager: ["●", "good", "managing"], standby: ["◌", "wait", "standing by"], lost: ["✕", "bad", "no connection"],
};
const ACTIONS = {
  "pool.pause": ["Pause", "It takes jobs and starts none until it is resumed."],
  "pool.resume": ["Resume", "It takes and starts jobs again."],
  "pool.drain": ["Drain", "It takes no jobs (BUSY), and runs those it has to the end."],
  "pool.scale": ["Scale", "Sets how many slots may work, and keeps it so until it may follow the load again."],
  "pool.recycle": ["Recycle", "Idle sandboxes are replaced now, those at work after their job."],
};

let target = new URLSearchParams(location.search).get("target");
let session = {user: null, csrf: null, login: false};
let state = null, stream = null, span = 3600, pending = null, drawnAt = 0;

// ---- drawing --------------------------------------------------------------------------------------

function element(name, {text, className, title, ...data} = {}, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (title) made.title = title;
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(data)) made.dataset[key] = value;
  made.append(...children);
  return made;
}

// What a cell says: a text, or what figures.js makes, or an element.
function content(what) {
  if (what instanceof Node) return what;
  if (typeof what === "string") return document.createTextNode(what);
  return element("span", what);
}

const drawn = new WeakMap();

// Puts what is new into a cell, and leaves what is as it was: a button under a finger stays.
function put(cell, what, mark = JSON.stringify(what)) {
  if (drawn.get(cell) === mark) return;
  drawn.set(cell, mark);
  cell.replaceChildren(content(what));
}

// rows: [{key, cells: [{what, mark, label, className, head}]}], kept by their key.
function fill(table, wanted, empty) {
  const body = table.tBodies[0], columns = table.tHead.rows[0].cells.length;
  const there = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  if (!wanted.length)
    wanted = [{key: "none", cells: [{what: empty, className: "empty", columns}]}];
  wanted.forEach(({key, cells}, place) => {
    let row = there.get(key);
    there.delete(key);
    if (!row || row.cells.length !== cells.length) {
      row?.remove();
      row = element("tr", {key}, ...cells.map((cell) => {
        const made = element(cell.head ? "th" : "td", {className: cell.className});
        if (cell.head) made.scope = "row";
        if (cell.label) made.dataset.label = cell.label;
        if (cell.columns) made.colSpan = cell.columns;
        return made;
      }));
    }
    cells.forEach((cell, at) => put(row.cells[at], cell.what, cell.mark));
    if (body.rows[place] !== row) body.insertBefore(row, body.rows[place] ?? null);
  });
  for (const row of there.values()) row.remove();
  shorten(table, wanted.length);
}

const SHOWN = 10;

// A table with many rows shows the first ones, and a button for all of them.
function shorten(table, length) {
  let more = table.nextElementSibling;
  if (!more?.classList.contains("more")) {
    more = element("button", {className: "more"});
    more.type = "button";
    more.addEventListener("click", () => { table.classList.toggle("all"); draw(); });
    table.after(more);
  }
  table.classList.toggle("long", length > SHOWN);
  more.hidden = length <= SHOWN;
  const words = table.classList.contains("all") ? "Show fewer" : `Show all ${length}`;
  if (more.textContent !== words) more.textContent = words;
}

function badge([sign, look, word], title) {
  return element("span", {className: `badge ${look}`, sign, text: word, title});
}

const text = (what, more = {}) => ({what, ...more});
const right = (what, label) => ({what, label, className: "n"});

function tile(name, what, note, alarm) {
  return {name, what, note: note ?? "", alarm: Boolean(alarm)};
}

function drawTiles() {
  const {workers, pressure, shedding, pools = []} = state.target;
  const sum = (metric, labels = {}) => {
    const found = rows(state, metric).filter((row) =>
      Object.entries(labels).every(([label, value]) => row.labels[label] === value));
    if (!found.length) return figure(null);
    const raw = found.reduce((all, row) => all + row.value, 0);
    return {text: count(raw), sum: metric, labels: JSON.stringify(labels), raw};
  };
  const ages = rows(state, "iosd_queue_oldest_age_seconds");
  const oldest = ages.reduce((most, row) => (!most || row.value > most.value ? row : most), null);
  const active = pools.reduce((all, pool) => all + pool.active, 0);
  const tiles = [
    tile("Jobs at work", sum("iosd_jobs", {state: "RUNNING"}),
      `${count(active)} slot${active === 1 ? "" : "s"} active`),
    tile("Jobs waiting", sum("iosd_queue_depth"), shedding ? "new jobs are refused (shedding)" : "", shedding),
    tile("Oldest waits", figure(oldest, seconds), oldest?.value ? `in pool ${oldest.labels.pool}` : "", oldest?.value > 60),
    tile("Workers", figure(one(state, "iosd_workers")),
      workers ? `${count(workers.busy)} busy, ${count(workers.queued)} command${workers.queued === 1 ? " waits" : "s wait"}` : ""),
    tile("Sandboxes ready", sum("iosd_sandboxes", {state: "ready"})),
    ...[["cpu", "CPU"], ["memory", "Memory"], ["io", "Disk"]].map(([name, word]) => tile(
      `${word} pressure`, said(`pressure.${name}`, pressure?.[name], share), "last 10 s", pressure?.[name] > .5)),
  ];
  const list = $("tiles");
  while (list.children.length > tiles.length) list.lastChild.remove();
  tiles.forEach(({name, what, note, alarm}, at) => {
    const box = list.children[at] ?? list.appendChild(
      element("div", {}, element("dt"), element("dd"), element("dd", {className: "note"})));
    box.className = alarm ? "alarm" : "";
    put(box.children[0], name);
    put(box.children[1], what);
    put(box.children[2], (alarm ? "⚠ " : "") + note);
  });
}

function poolCells(pool, at) {
  const by = {pool: pool.name};
  const mode = pool.serving ? MODES[pool.mode] ?? ["?", "wait", pool.mode] : ["✕", "bad", "does not serve"];
  const fig = (metric, show) => figure(one(state, metric, by), show);
  const path = (name) => said(`pools.${at}.${name}`, pool[name]);
  const busy = figure(one(state, "iosd_jobs", {...by, state: "RUNNING"}));
  const warm = element("span", {}, content(path("warm_spare")), " (", content(path("ready")), " ready)");
  const cells = [
    text(pool.name, {head: true}),
    text(badge(mode), {mark: mode.join(), label: "Mode"}),
    text(slots(pool.busy, pool.active, pool.max), {mark: `${pool.busy}/${pool.active}/${pool.max}`, label: "Slots"}),
    right(busy, "Busy"), right(fig("iosd_pool_target_size"), "Active"),
    right(path("min"), "Min"), right(path("max"), "Max"),
    {...right(warm, "Warm spare"), mark: `${pool.warm_spare}/${pool.ready}`},
    right(fig("iosd_queue_depth"), "Queue"), right(fig("iosd_queue_oldest_age_seconds", seconds), "Oldest"),
    text(`${pool.auto === false ? "set by hand. " : ""}${pool.why ?? ""}` || NOTHING, {className: "why wide", label: "Why"}),
  ];
  if (session.user) {
    const methods = [pool.mode === "running" ? "pool.pause" : "pool.resume",
      ...(pool.mode === "draining" ? [] : ["pool.drain"]), "pool.scale", "pool.recycle"];
    const buttons = methods.map((method) => {
      const button = element("button", {text: ACTIONS[method][0], method, pool: pool.name});
      button.type = "button";
      button.addEventListener("click", () => askChange(method, pool.name));
      return button;
    });
    cells.push({what: element("span", {}, ...buttons), mark: methods.join(), className: "act wide"});
  }
  return cells;
}

function drawPools() {
  const table = $("pools");
  table.querySelector("th.act").hidden = !session.user;
  fill(table, (state.target.pools ?? []).map((pool, at) => ({key: `=${pool.name}`, cells: poolCells(pool, at)})),
    "The target has not said anything yet.");
}

function drawEnded() {
  const found = rows(state, "iosd_jobs_finished_total").sort((a, b) => b.value - a.value);
  fill($("ended"), found.map((row) => {
    const {pool, state: ended, reason} = row.labels;
    return {key: `=${pool} ${ended} ${reason}`, cells: [
      text(pool), text(badge(ended === "COMPLETED" ? ["✓", "good", ended] : ["✕", ended === "CANCELLED" ? "wait" : "bad", ended]), {mark: ended}),
      right(reason === "0" ? NOTHING : reason), right(figure(row))]};
  }), "No job has ended yet.");
  const refused = [["refused", "iosd_jobs_refused_total"], ["retried", "iosd_jobs_retried_total"]].flatMap(
    ([word, metric]) => rows(state, metric).filter((row) => row.value > 0).map((row) => ({
      key: `=${word} ${row.labels.reason}`,
      cells: [text(word), text(row.labels.reason), right(figure(row))]})));
  fill($("refused"), refused, "None.");
}

function drawLatencies() {
  const jobs = [["waiting", "queue"], ["starting", "start"], ["at work", "run"], ["ending by kill", "cancel"]]
    .flatMap(([word, part]) => rows(state, `iosd_job_${part}_seconds`).map((row) => [`Jobs ${word}, ${row.labels.pool}`, row]));
  const commands = rows(state, "iosd_osd_command_seconds").map((row) => [`OSD commands: ${row.labels.command}`, row]);
  const calls = rows(state, "iosd_proxy_call_seconds").map((row) => [`Scripts' calls: ${row.labels.command}`, row]);
  const database = rows(state, "iosd_attr_txn_seconds").map((row) => ["Attribute transactions", row]);
  const found = [...jobs, ...commands, ...calls, ...database]
    .filter(([, row]) => row.value.counts[row.value.counts.length - 1] > 0);
  fill($("latencies"), found.map(([name, row]) => ({key: `=${name}`, cells: [
    text(name),
    right({...figure({...row, metric: `${row.metric}_count`, value: row.value.counts[row.value.counts.length - 1]})}),
    right(timed(row, .5)), right(timed(row, .99))]})), "Nothing has been timed yet.");
}

function drawRest() {
  const device = (tier) => {
    const space = (kind) => right(figure(one(state, "iosd_store_bytes", {tier, kind}), bytes));
    const calls = (part) => right(figure(one(state, `iosd_head_${part}_total`, {tier})));
    return {key: `=device ${tier}`, cells: [text(tier, {head: true}), space("total"), space("used"), space("free"),
      space("data"), right(NOTHING), calls("reads"), calls("writes"), calls("errors")]};
  };
  const none = [right(NOTHING), right(NOTHING), right(NOTHING)];
  const capacity = (kind) => right(figure(one(state, "iosd_capacity_bytes", {kind}), bytes));
  const store = {key: "=store", cells: [text("store", {head: true}), capacity("total"), capacity("used"),
    capacity("free"), capacity("data"), right(figure(one(state, "iosd_objects"))), ...none]};
  const partition = (name) => {
    const space = (kind) => right(figure(one(state, "iosd_partition_bytes", {partition: name, kind}), bytes));
    return {key: `=partition ${name}`, cells: [text(name, {head: true}), space("quota"), space("used"), right(NOTHING),
      space("data"), right(figure(one(state, "iosd_partition_objects", {partition: name}))), ...none]};
  };
  const named = (metric, label) => [...new Set(rows(state, metric).map((row) => row.labels[label]))];
  const tiers = [...new Set([...named("iosd_store_bytes", "tier"), ...named("iosd_head_reads_total", "tier")])];
  fill($("tiers"), [...tiers.map(device), ...(one(state, "iosd_capacity_bytes") ? [store] : []),
    ...named("iosd_partition_objects", "partition").map(partition)], "The target does not say.");
  fill($("sandboxes"), rows(state, "iosd_sandboxes").filter((row) => row.value > 0).map((row) => ({
    key: `=${row.labels.pool} ${row.labels.state}`,
    cells: [text(row.labels.pool), text(row.labels.state), right(figure(row))]})), "There are none.");
}

function when(milliseconds) {
  const at = new Date(milliseconds), two = (number) => String(number).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const made = element("time", {text: `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`});
  made.dateTime = at.toISOString();
  return made;
}

function drawPushed() {
  fill($("pushed"), (jobs?.pushed ?? []).map((job, at) => ({key: `=${job.at_ms} ${at}`, cells: [
    text(when(job.at_ms), {mark: String(job.at_ms)}), text(job.name || NOTHING), text(job.principal || NOTHING),
    text(job.pool || NOTHING), text(job.stage), text(job.reason), right(seconds(job.near)), right(seconds(job.wait)), right(seconds(job.client))]})), "None.");
}

function drawChanges() {
  const words = (values) => Object.entries(values ?? {}).map(([key, value]) => [key, value === null ? NOTHING : String(value)]);
  const makers = $("makers").value;
  const wanted = state.changes.filter((change) => makers === "all" || change.policy === (makers === "policy"));
  fill($("changes"), wanted.map((change) => {
    const was = new Map(words(change.was));
    const now = words(change.is).map(([key, value]) => `${key} ${was.has(key) ? `${was.get(key)} → ` : ""}${value}`);
    return {key: `=${change.id}`, cells: [
      text(when(change.at), {mark: String(change.at), label: "When", className: "wide"}), text(change.by || NOTHING, {label: "Who"}),
      text(change.what + (change.pool ? ` ${change.pool}` : ""), {label: "What", className: "wide"}),
      text(now.join(", ") || NOTHING, {label: "Change", className: "wide"}), text(change.why || NOTHING, {label: "Why", className: "why wide"})]};
  }), makers === "people" ? "Nobody has changed anything yet." : "Nothing has been changed yet.");
}

// ---- jobs, for those who have logged in -------------------------------------------------------------

const STATES = {
  QUEUED: ["◌", "wait"], HELD: ["❙❙", "wait"], STARTING: ["●", "good"], RUNNING: ["●", "good"], COMPLETING: ["●", "good"],
  COMPLETED: ["✓", "good"], CANCELLED: ["✕", "wait"],
};
let jobs = null;

function drawJobs() {
  if (!session.user) jobs = null;
  fill($("jobs"), (jobs?.jobs ?? []).map((job) => {
    const [sign, look] = STATES[job.state] ?? ["✕", "bad"];
    const ran = job.started_ms ? seconds(Math.max(0, (job.ended_ms || jobs.now) - job.started_ms) / 1000) : NOTHING;
    const members = job.members ? ` (array of ${count(job.members)})` : "";
    return {key: `=${job.id}`, cells: [
      text(job.id, {head: true}), text(badge([sign, look, job.state], job.why), {mark: job.state + job.why, label: "State"}),
      text((job.name || NOTHING) + members, {label: "Name"}), text(job.principal || NOTHING, {label: "User"}),
      text(job.pool, {label: "Pool"}), text(when(job.submitted_ms), {mark: String(job.submitted_ms), label: "Submitted", className: "wide"}),
      right(ran, "Ran")]};
  }), session.user ? "There are none." : "Log in to see jobs. Their names and users are not shown to everybody.");
  drawPushed();
}

async function askJobs() {
  const open = $("jobs").closest("details").open;
  if (session.user && state && open && !document.hidden) {
    const answer = await fetch(`/api/jobs?${new URLSearchParams({target: state.target.name})}`).catch(() => null);
    if (answer?.ok) jobs = await answer.json();
    else if (answer?.status === 401) await knowSession();
  }
  if (state) drawJobs();
}

function drawFrame() {
  const {name, role, trouble} = state.target;
  $("name").textContent = name;
  document.title = `${name} – iosd`;
  put($("role"), badge(ROLES[role] ?? ["?", "wait", role]), role);
  const pick = $("targets"), names = state.targets.map((each) => each.name);
  $("pick").hidden = names.length < 2;
  if ([...pick.options].map((option) => option.value).join("\n") !== names.join("\n"))
    pick.replaceChildren(...names.map((each) => new Option(each, each)));
  pick.value = name;
  $("serial").textContent = state.serial;
  $("moment").textContent = state.at ? `of ${new Date(state.at).toLocaleTimeString("en-GB")}` : "";
  $("version").textContent = `manager ${state.manager.version}, process ${state.manager.pid}`;
  notice(role === "lost" ? `The manager has no connection to the target: ${trouble || "unknown"}. Figures are the last ones.`
    : state.stale ? "The target has not told its figures for a while." : "");
}

function notice(words) {
  $("notice").hidden = !words;
  $("notice").textContent = words;
}

function draw() {
  for (const part of [drawFrame, drawTiles, drawPools, drawEnded, drawLatencies, drawRest, drawChanges, drawJobs]) part();
  document.documentElement.dataset.serial = state.serial;
}

// ---- history --------------------------------------------------------------------------------------

// The present as a row of history has it: where the curves end.
function present() {
  const {workers, pressure, pools = []} = state.target;
  return {at: state.at, workers, pressure, pools: Object.fromEntries(pools.map((pool) => [pool.name, pool]))};
}

async function drawHistory() {
  const name = state?.target.name;
  if (!name) return;
  drawnAt = Date.now();
  const answer = await fetch(`/api/history?${new URLSearchParams({target: name, span})}`);
  if (!answer.ok) return;
  const {loads, step} = await answer.json();
  const to = Date.now(), range = {from: to - span * 1000, to, step, span};
  if (state.at && !state.stale) loads.push(present());
  const line = (name, look, value) => ({name, look, points: loads.map((load) => [load.at, value(load)])});
  const pools = [...new Set(loads.flatMap((load) => Object.keys(load.pools ?? {})))].slice(0, 8);
  const charts = pools.flatMap((pool) => {
    const of = (key) => (load) => load.pools?.[pool]?.[`${key}_mean`] ?? load.pools?.[pool]?.[key] ?? null;
    return [
      chart(`${pool}: slots`, [line("busy", "first", of("busy")), line("active", "second", of("active"))], range),
      chart(`${pool}: jobs waiting`, [line("waiting", "first", of("queued"))], range)];
  });
  const workers = (key) => (load) => load.workers?.[key] ?? null;
  charts.push(chart("Workers", [line("busy", "first", workers("busy")), line("there", "second", workers("count"))], range));
  const pressure = (key) => (load) => load.pressure?.[key] == null ? null : load.pressure[key] * 100;
  charts.push(chart("Pressure, % of time", [line("processor", "first", pressure("cpu")), line("disk", "second", pressure("io"))], range));
  $("charts").replaceChildren(...charts);
}

$("spans").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  span = Number(button.dataset.span);
  for (const each of $("spans").children) each.setAttribute("aria-pressed", String(each === button));
  drawHistory();
});

// ---- who, and changes -----------------------------------------------------------------------------

async function knowSession() {
  session = await (await fetch("/api/session")).json();
  $("who").textContent = session.user ?? "";
  $("enter").hidden = Boolean(session.user) || !session.login;
  $("leave").hidden = !session.user;
  if (state) draw();
  if (session.user && !jobs) await askJobs();
}

async function complaint(answer) {
  const found = await answer.json().catch(() => ({}));
  const {message, remedy} = found.error ?? {};
  return [message ?? `the manager answered ${answer.status}`, remedy].filter(Boolean).join("; ");
}

function wrong(dialog, words) {
  const line = dialog.querySelector(".wrong");
  line.hidden = !words;
  line.textContent = words;
}

function open(dialog) {
  dialog.querySelector("form").reset();
  wrong(dialog, "");
  dialog.showModal();
}

function askChange(method, pool) {
  const [word, what] = ACTIONS[method], now = state.target.pools.find((each) => each.name === pool);
  pending = {method, pool};
  open($("change"));
  $("change-title").textContent = `${word} ${pool}`;
  $("change-what").textContent = what;
  $("change-do").textContent = word;
  for (const each of $("change").querySelectorAll(".size")) each.hidden = method !== "pool.scale";
  $("size").max = now?.max ?? 64;
  $("size").value = now?.active ?? 1;
}

$("change-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const params = {target: state.target.name, pool: pending.pool};
  if (pending.method === "pool.scale")
    Object.assign(params, $("auto").checked ? {auto: true} : {active: Number($("size").value)});
  const answer = await fetch("/api/change", {
    method: "POST", headers: {"Content-Type": "application/json", "X-CSRF-Token": session.csrf ?? ""},
    body: JSON.stringify({method: pending.method, params, why: $("why").value}),
  });
  if (answer.ok) return $("change").close();
  if (answer.status === 401) await knowSession();
  wrong($("change"), await complaint(answer));
});

$("login-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = await fetch("/login", {method: "POST", body: new URLSearchParams({token: $("token").value})});
  if (!answer.ok) return wrong($("login"), await complaint(answer));
  $("login").close();
  await knowSession();
});

$("enter").addEventListener("click", () => open($("login")));
$("leave").addEventListener("click", async () => {
  await fetch("/logout", {method: "POST", headers: {"X-CSRF-Token": session.csrf ?? ""}});
  await knowSession();
});
for (const button of document.querySelectorAll("dialog .cancel"))
  button.addEventListener("click", () => button.closest("dialog").close());
$("auto").addEventListener("change", () => { $("size").disabled = $("auto").checked; });

// ---- states as they come --------------------------------------------------------------------------

function listen() {
  stream?.close();
  stream = new EventSource(`/api/events?${new URLSearchParams(target ? {target} : {})}`);
  stream.addEventListener("message", (event) => {
    const before = state;
    state = JSON.parse(event.data);
    draw();
    if (before?.target.name !== state.target.name || before.stale !== state.stale) drawHistory();
  });
  stream.addEventListener("error", () => notice("The manager does not answer; trying again. Figures are the last ones."));
}

$("targets").addEventListener("change", (event) => {
  target = event.target.value;
  history.replaceState(null, "", `?${new URLSearchParams({target})}`);
  listen();
});

$("makers").addEventListener("change", drawChanges);

// ---- what is folded away: on a phone most of it, and as the reader left it ---------------------------

const NARROW = matchMedia("(max-width: 46rem)").matches;
const FIRST = new Set(["pools", "jobs", "space"]);
for (const each of document.querySelectorAll("details[data-fold]")) {
  const key = `fold-${each.dataset.fold}`, kept = localStorage.getItem(key);
  each.open = kept ? kept === "open" : !NARROW || FIRST.has(each.dataset.fold);
  each.firstElementChild.addEventListener("click", () => localStorage.setItem(key, each.open ? "shut" : "open"));
}

await knowSession();
listen();
setInterval(askJobs, 2000);
setInterval(() => { if (Date.now() - drawnAt >= span * 1000 / 360) drawHistory(); }, 10000);
