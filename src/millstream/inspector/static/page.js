/* The page of one run.
 *
 * The server gives the topology of a run once, its status and facts as a stream (`/facts`), and its past (`/api/history`). `receive` puts
 * each message into `model` and marks the parts of the page that show it; `draw` redraws these parts, a few times per second at most.
 * Elements of nodes are made once and updated in place, so that focus and selection stay. All texts from data are text nodes or
 * attributes, never HTML. Facts and history may overlap: adding a fact twice changes nothing.
 *
 * Times are seconds since 1970 by the clock of the run; `clock` says how far it is ahead of the browser's. A value that is not counted is
 * `undefined`, never 0.
 */

// ---- elements

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

function element(name, attributes = {}, ...children) {
  return furnish(document.createElement(name), attributes, children);
}

function shape(name, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, name), attributes, children);
}

function furnish(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

const shownKeys = new WeakMap();

/** Replace the children of an element, unless they were made from the same key. */
function show(container, key, make) {
  if (shownKeys.get(container) === key) return;
  shownKeys.set(container, key);
  container.replaceChildren(...make());
}

const MARKS = {
  running: "M6 1a5 5 0 100 10A5 5 0 006 1z",
  paused: "M2 1h3v10H2zM7 1h3v10H7z",
  caution: "M6 .5L12 11.5H0zM5.3 4v4h1.4V4zm0 5v1.4h1.4V9z",
  failed: "M2.4 1L6 4.6 9.6 1 11 2.4 7.4 6 11 9.6 9.6 11 6 7.4 2.4 11 1 9.6 4.6 6 1 2.4z",
  starting: "M6 1a5 5 0 100 10A5 5 0 006 1zm0 1.8a3.2 3.2 0 110 6.4 3.2 3.2 0 010-6.4z",
  restarting: "M6 1a5 5 0 104.8 6.4L9 6.9A3.1 3.1 0 116 2.9c.9 0 1.6.3 2.2.9L6.5 5.5H11V1L9.5 2.5A5 5 0 006 1z",
  ended: "M1.5 1.5h9v9h-9z",
};

function mark(kind) {
  return shape(
    "svg",
    { class: "mark", viewBox: "0 0 12 12", "aria-hidden": "true" },
    shape("path", { d: MARKS[kind], "fill-rule": "evenodd" }),
  );
}

const STATUS_MARKS = {
  degraded: "caution",
  failed: "failed",
  paused: "paused",
  starting: "starting",
  stopping: "ended",
  ended: "ended",
  restarting: "restarting",
  done: "ended",
  stopped: "ended",
};
const STATUS_TONES = { running: "good", flushing: "good", paused: "caution", degraded: "caution", restarting: "bad", failed: "bad" };

// ---- texts

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const NOT_COUNTED = "not counted";

function countText(count) {
  return count === undefined || count === null ? NOT_COUNTED : whole.format(count);
}

function shortCount(count) {
  return count === undefined ? "–" : count >= 1_000 ? compact.format(count) : whole.format(count);
}

function plural(count, word) {
  return `${whole.format(count)} ${word}${count === 1 ? "" : "s"}`;
}

function rateText(rate) {
  if (rate === undefined) return NOT_COUNTED;
  return `${rate >= 100_000 ? compact.format(rate) : rate >= 10 || rate === 0 ? whole.format(rate) : rate.toFixed(1)} rows/s`;
}

function spanText(seconds) {
  const size = Math.abs(seconds),
    sign = seconds < 0 ? "−" : "";
  if (size && size < 0.9995) return `${sign}${Number((size * 1000).toFixed(size < 0.00995 ? 1 : 0))} ms`;
  if (size < 120) return `${sign}${Number(size.toFixed(size < 10 ? 2 : size < 60 ? 1 : 0))} s`;
  for (const [unit, length] of [
    ["days", 86_400],
    ["h", 3_600],
    ["min", 60],
  ]) {
    if (size >= 2 * length) return `${sign}${whole.format(size / length)} ${unit}`;
  }
  return "";
}

function uptimeText(seconds) {
  const [days, hours, minutes] = [seconds / 86_400, (seconds / 3_600) % 24, (seconds / 60) % 60].map(Math.floor);
  const two = (number) => String(number).padStart(2, "0");
  return `${days ? `${plural(days, "day")} ` : ""}${two(hours)}:${two(minutes)}:${two(Math.floor(seconds % 60))}`;
}

function bytesText(bytes) {
  if (bytes === undefined || bytes === null) return NOT_COUNTED;
  for (const [unit, size] of [
    ["GB", 2 ** 30],
    ["MB", 2 ** 20],
    ["KB", 2 ** 10],
  ]) {
    if (bytes >= size) return `${(bytes / size).toFixed(bytes >= 100 * size ? 0 : 1)} ${unit}`;
  }
  return `${bytes} B`;
}

function timeText(at) {
  const date = new Date(at * 1000),
    time = date.toLocaleTimeString("en-GB");
  return date.toDateString() === new Date().toDateString() ? time : `${dateText(date)} ${time}`;
}

function dateText(date) {
  return `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`;
}

const measuring = document.createElement("canvas").getContext("2d");

/** The text, shortened with `…` to a width in pixels. */
function shorten(text, width, font) {
  measuring.font = `${font} system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif`;
  if (measuring.measureText(text).width <= width) return text;
  let low = 0,
    high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measuring.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low)}…`;
}

// ---- counts over time

/** Rows per second over ten seconds, or over the last two epochs if those take longer: counts grow only when an epoch ends. */
class Rates {
  #points = new Map();

  add(name, count, now) {
    const points = this.#points.get(name) ?? [];
    this.#points.set(name, points);
    if (!points.length || count !== points.at(-1).count) points.push({ now, count });
    while (points.length > 3 && now - points[1].now > 10) points.shift();
  }

  of(name, now) {
    const points = this.#points.get(name);
    if (!points || points.length < 2) return points && 0;
    const [last, before, first] = [points.at(-1), points.at(-2), points[0]];
    const isIdle = now - last.now > Math.max(10, 2 * (last.now - before.now));
    return isIdle || now <= first.now ? 0 : (last.count - first.count) / (now - first.now);
  }
}

/** The values of a count during the last seconds, and the value that it had before them. */
class Trail {
  #points = new Map();

  constructor(seconds) {
    this.seconds = seconds;
  }

  add(name, value, now) {
    const points = this.#points.get(name) ?? [];
    this.#points.set(name, points);
    if (!points.length || points.at(-1).value !== value) points.push({ now, value });
    this.#forget(points, now);
  }

  growth(name, now) {
    const points = this.#points.get(name);
    if (!points) return 0;
    this.#forget(points, now);
    return points.at(-1).value - points[0].value;
  }

  /** Whether the later half of the values is clearly larger than the earlier one. */
  climbs(name, now) {
    const points = this.#points.get(name);
    if (!points) return false;
    this.#forget(points, now);
    if (points.length < 6) return false;
    const half = points.length >> 1;
    const mean = (some) => some.reduce((sum, point) => sum + point.value, 0) / some.length;
    return mean(points.slice(half)) > 1.2 * mean(points.slice(0, half)) && points.at(-1).value > points[0].value;
  }

  #forget(points, now) {
    while (points.length > 1 && now - points[1].now > this.seconds) points.shift();
  }
}

// ---- the model

const EPOCHS_SHOWN = 60,
  LOG_KEPT = 2000,
  HOUR = 3600,
  ROWS_KEPT = 200;

const model = {
  token: "",
  link: "connecting", // or live, lost, refused, ended
  linkText: "",
  heardAt: Date.now() / 1000,
  run: undefined,
  topology: undefined,
  status: undefined,
  statusAt: 0,
  rates: new Rates(),
  rejects: new Trail(60),
  waiting: new Trail(120),
  epochs: new Map(), // query → number → record
  measures: new Map(), // time → measure
  log: [],
  logKeys: new Set(),
  logVersion: 0,
  samples: new Map(), // node and filter → rows, newest first
  columns: new Map(), // node → column → its type, of the last sample
  open: "", // the node in the panel
  query: "", // the query whose nodes are shown, others are dimmed
  ordering: new Set(), // orders without an answer
  canWatch: true,
  hasPast: false,
  isStopping: false,
  sampleVersion: 0,
  pressures: new Map(), // node → a hint
};

const clock = {
  ahead: 0,
  now: () => model.run?.ended ?? Date.now() / 1000 + clock.ahead, // for a run that has ended it stands still
  hear: (at) => {
    const ahead = at - Date.now() / 1000;
    clock.ahead = Math.abs(ahead) > 2 ? ahead : 0;
  },
};
const nodeOf = (name) => model.topology.nodes.find((node) => node.name === name);
const factsOf = (name) => model.status?.nodes[name] ?? {};
const rowsOf = (facts) => (facts.kind === "sink" ? facts.rows_in : facts.rows_out);
const hasEnded = () => model.link === "ended";

function receive(name, data) {
  if (name === "fact") addFact(data, true);
  else if (name === "lost") {
    addLog({
      at: clock.now(),
      event: "lost",
      message: `${plural(data.events, "event")} came faster than this page could read them; the history fills the gap`,
      warning: true,
    });
    setTimeout(loadHistory, 3000);
  } else if (name === "status" || name === "end") applyStatus(data);
}

function applyStatus(status) {
  const now = clock.now();
  Object.assign(model, { status, statusAt: now });
  for (const [name, facts] of Object.entries(status.nodes)) follow(name, rowsOf(facts), facts, now);
  changed("header", "graph", "queries", "panel");
}

function follow(name, rows, facts, now) {
  if (rows !== undefined) model.rates.add(name, rows, now);
  if (facts.rejected !== undefined) model.rejects.add(name, facts.rejected, now);
  if (facts.waiting !== undefined) model.waiting.add(name, facts.waiting, now);
}

const LOGGED = new Set(["noted", "restarting", "failed", "run_started", "run_changed"]);

function addFact(fact, live) {
  if (live) clock.hear(fact.at);
  if (fact.event.startsWith("epoch_")) addToEpoch(fact);
  else if (fact.event === "measured") addMeasure(fact);
  else if (fact.event === "rows_sampled") addSample(fact);
  else if (fact.event === "rows_refused") addRefusal(fact);
  else if (LOGGED.has(fact.event)) addLog(fact);
  if (fact.event === "failed") changed("header", "graph");
}

function addToEpoch(fact) {
  const records = model.epochs.get(fact.query) ?? new Map();
  model.epochs.set(fact.query, records);
  let record = records.get(fact.epoch);
  const isNewer = !record || (fact.event === "epoch_planned" && fact.at > record.begunAt);
  if (isNewer) {
    record = {
      query: fact.query,
      number: fact.epoch,
      begunAt: fact.at,
      planned: undefined,
      staged: new Map(),
      committed: new Map(),
      finished: undefined,
    };
    records.set(fact.epoch, record);
    for (const old of inOrder(records).slice(0, -EPOCHS_SHOWN - 10)) records.delete(old.number);
  }
  if (fact.event === "epoch_planned" && !record.planned) Object.assign(record, { planned: fact, begunAt: fact.at });
  if (fact.at < record.begunAt) return; // of an earlier attempt
  if (fact.event === "epoch_staged") record.staged.set(fact.sink, fact);
  else if (fact.event === "epoch_committed") record.committed.set(fact.sinks.join("\n"), fact);
  else if (fact.event === "epoch_finished") record.finished = fact;
  changed("epochs", "queries");
}

function addMeasure(measure) {
  model.measures.set(measure.at, { nodes: {}, queries: {}, ...measure });
  for (const at of model.measures.keys()) if (at < clock.now() - HOUR - 120) model.measures.delete(at);
  changed("charts");
}

function addSample(fact) {
  const found = (fact.rows ?? []).map((text) => ({ text, epoch: fact.epoch, readAgain: fact.read_again, values: parsedRow(text) }));
  const wish = wishOf(fact.node, fact.where);
  model.sampleVersion++;
  model.samples.set(wish, [...found, ...(model.samples.get(wish) ?? [])].slice(0, ROWS_KEPT));
  if (fact.columns) model.columns.set(fact.node, fact.columns);
  if (wish === panel.wish) Object.assign(panel, { message: "", looked: fact.epoch });
  changed("panel");
}

function addRefusal(fact) {
  if (wishOf(fact.node, fact.where) === panel.wish) panel.message = refusalText(fact);
  changed("panel");
}

const wishOf = (node, where) => `${node}\n${where ?? ""}`;

function refusalText(error) {
  return [`${error.code}: ${error.message}`, error.detail, error.help].filter(Boolean).join("\n");
}

/** A row of JSON. Numbers that JavaScript would round stay as they were written. */
function parsedRow(text) {
  const exact = (_, value, context) =>
    typeof value === "number" && context?.source && String(value) !== context.source ? context.source : value;
  try {
    const row = JSON.parse(text, exact);
    return row && typeof row === "object" && !Array.isArray(row) ? row : { value: row };
  } catch {
    return { row: text };
  }
}

function addLog(fact) {
  const key = `${fact.event}\n${fact.at}\n${fact.message ?? fact.state}`;
  if (model.logKeys.has(key)) return;
  model.logKeys.add(key);
  model.log.push(fact);
  if (model.log.length > 1 && model.log.at(-2).at > fact.at) model.log.sort((a, b) => a.at - b.at);
  for (const old of model.log.splice(0, model.log.length - LOG_KEPT))
    model.logKeys.delete(`${old.event}\n${old.at}\n${old.message ?? old.state}`);
  model.logVersion++;
  changed("log", "panel");
}

/** The failures of this run, newest first. */
function failures() {
  return model.log.filter((entry) => entry.event === "failed" && entry.at >= model.run.began - 1).reverse();
}

function rateOf(name) {
  return model.link === "live" ? rateText(model.rates.of(name, clock.now())) : "";
}

function restartOf(query) {
  return model.log.findLast((entry) => entry.event === "restarting" && (!entry.query || entry.query === query));
}

function recordsOf(query) {
  return inOrder(model.epochs.get(query) ?? new Map()).slice(-EPOCHS_SHOWN);
}

/** By time: after a reset a query counts its epochs from 0 again. */
function inOrder(records) {
  return [...records.values()].sort((a, b) => a.begunAt - b.begunAt);
}

/** The epoch that a query works on, how long it has, and how long epochs usually take. */
function runningEpoch(query) {
  const records = recordsOf(query),
    last = records.at(-1);
  if (!last || last.finished || !last.planned || last.planned.at < model.run.began - 1 || !isWorking(query)) return undefined;
  const usual = records
    .filter((record) => record.finished)
    .slice(-20)
    .map((record) => record.finished.seconds)
    .sort((a, b) => a - b);
  const median = usual.length >= 5 ? usual[usual.length >> 1] : undefined;
  const seconds = Math.max(0, clock.now() - last.planned.at);
  return { number: last.number, seconds, median, isLong: median !== undefined && seconds > Math.max(1, 3 * median) };
}

function isWorking(query) {
  return model.link === "live" && ["running", "flushing", "stopping"].includes(model.status?.queries[query]?.state);
}

/** What is wrong with a node, or may be. */
function alertOf(name) {
  const now = clock.now(),
    facts = factsOf(name),
    query = model.status?.queries[name];
  const failure = failures().find((entry) => entry.node === name);
  if (failure) return { tone: "bad", mark: "failed", text: `failed: ${failure.message}` };
  if (query?.state === "failed") return { tone: "bad", mark: "failed", text: "the query has failed" };
  if (query?.state === "restarting")
    return { tone: "bad", mark: "restarting", text: `restarting: ${restartOf(name)?.message ?? "a temporary failure"}` };
  const rejects = model.rejects.growth(name, now);
  if (rejects > 0) return { tone: "bad", mark: "caution", text: `${plural(rejects, "reject")} in the last minute` };
  const epoch = runningEpoch(name);
  if (epoch?.isLong)
    return {
      tone: "caution",
      mark: "caution",
      text: `epoch ${epoch.number} lasts ${spanText(epoch.seconds)}, usually ${spanText(epoch.median)}`,
    };
  const pressure = model.pressures.get(name);
  if (pressure) return { tone: "caution", mark: "caution", ...pressure };
  if (model.waiting.climbs(name, now)) return { tone: "caution", mark: "caution", text: `waiting rows grow: ${shortCount(facts.waiting)}` };
  return undefined;
}

const BUSY = 0.9;

/** Back-pressure: the epochs of a query fill the last minute, and the rows that wait for it grow all the same. The hint is at the node that
 * takes most of the epochs' time: a sink by its staging, which computes its rows, or the root for the rest. */
function pressures() {
  const found = new Map(),
    now = clock.now();
  for (const { name, sources } of model.topology.queries) {
    const records = recordsOf(name).filter((record) => record.finished?.at > now - 60);
    if (records.length < 5 || !isWorking(name) || !sources.some((source) => model.waiting.climbs(source, now))) continue;
    const spent = records.reduce((sum, record) => sum + record.finished.seconds, 0);
    const busy = spent / Math.max(spent, records.at(-1).finished.at - (records[0].finished.at - records[0].finished.seconds));
    if (busy < BUSY) continue;
    const shares = new Map();
    for (const phase of records.flatMap(phasesOf)) {
      const place = phase.kind.startsWith("stage") ? phase.name.slice("stage ".length) : name;
      shares.set(place, (shares.get(place) ?? 0) + phase.seconds / spent);
    }
    const [slow, share] = [...shares].reduce((best, each) => (each[1] > best[1] ? each : best));
    const percent = (part) => `${Math.min(100, Math.round(100 * part))} %`;
    const more = `The epochs of ${name} fill ${percent(busy)} of the time, and more and more rows wait. This node takes ${percent(share)} of an epoch.`;
    found.set(slow, { text: `back-pressure: ${percent(share)} of epochs`, more });
  }
  return found;
}

// ---- the server

const TOKEN = "millstream-token";
const linkNeeded = () => `The link with the token is needed: \`millstream inspect ${model.run?.name ?? "NAME"}\` prints it.`;
const QUIET_SECONDS = 25,
  FINAL = ["done", "stopped", "failed"];

/** The token of the link, which is removed from the address bar. */
function takeToken() {
  const given = location.hash.slice(1);
  try {
    if (given) sessionStorage.setItem(TOKEN, decoded(given));
    model.token = sessionStorage.getItem(TOKEN) ?? "";
  } catch {
    // storage is forbidden
    model.token = decoded(given) || model.token;
  }
  if (given) history.replaceState(null, "", location.pathname);
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function request(path, options = {}) {
  const headers = { ...options.headers, ...(model.token ? { Authorization: `Bearer ${model.token}` } : {}) };
  return fetch(path, { cache: "no-store", ...options, headers });
}

async function read(path, options) {
  const answer = await request(path, options);
  if (!answer.ok) throw Object.assign(new Error(await refusalOf(answer)), { status: answer.status });
  return answer.json();
}

function send(path, values) {
  return read(path, { method: "POST", body: JSON.stringify(values), headers: { "Content-Type": "application/json" } });
}

async function refusalOf(answer) {
  if (answer.status === 401) return model.token ? `The token is not the one of this run. ${linkNeeded()}` : linkNeeded();
  const body = await answer.json().catch(() => ({}));
  if (body.errors) return body.errors.map(refusalText).join("\n");
  return body.error ?? `the run answered with status ${answer.status}`;
}

/** Connect, and connect again when the connection breaks, for as long as the page is open. */
async function stayConnected() {
  for (let wait = 1; ; wait = Math.min(2 * wait, 15)) {
    try {
      await describeRun();
      await readFacts(() => {
        wait = 1;
      });
      loseLink();
    } catch (error) {
      if (error.status) setLink("refused", error.message);
      else loseLink();
    }
    await new Promise((go) => setTimeout(go, 1000 * (hasEnded() ? Math.max(wait, 5) : wait)));
  }
}

function loseLink() {
  if (!FINAL.includes(model.status?.state)) setLink("lost");
  else if (!hasEnded()) {
    setLink("ended");
    for (const seconds of [0.2, 1, 3]) setTimeout(loadHistory, 1000 * seconds); // its failure may be written now
  }
}

async function describeRun() {
  const run = await read("/api/run");
  if (model.run && model.run.run !== run.run) location.reload(); // another run at the same address
  if (model.run) return;
  model.topology = withRoots(await read("/api/topology"));
  model.run = run;
  setText(byId("name"), run.name);
  buildTopology();
  applyStatus(await read("/api/status"));
  loadHistory();
  const isRemote = /^(?!file:)\w+:/.test(run.checkpoint);
  setTimeout(loadHistory, isRemote ? 35_000 : 5_000); // what happened just before the stream began has been written then
}

/** A node that several queries read belongs to the one that it is the root of. */
function withRoots(topology) {
  const names = new Set(topology.queries.map((query) => query.name));
  for (const node of topology.nodes) if (names.has(node.name)) node.query = node.name;
  return topology;
}

async function loadHistory() {
  try {
    const { events = [], measures = [] } = await read("/api/history");
    for (const event of events) addFact(event, false);
    const now = clock.now();
    for (const measure of measures) if (measure.at > now - HOUR) addMeasure(measure);
    if (!model.hasPast)
      addPast(measures.filter((measure) => measure.at > now - 60 && measure.at >= model.run.began && measure.at < model.statusAt));
    model.hasPast = true;
    changed("header", "graph", "epochs", "charts", "log");
  } catch {
    // the page works without the past
  }
}

/** Rates and changes of the last minute, from before the page was opened. */
function addPast(measures) {
  Object.assign(model, { rates: new Rates(), rejects: new Trail(60), waiting: new Trail(120) });
  for (const { at, nodes = {} } of measures) {
    for (const [name, facts] of Object.entries(nodes)) follow(name, rowsOf({ ...facts, kind: nodeOf(name)?.kind }), facts, at);
  }
  applyStatus(model.status);
}

/** Read the stream of facts to its end: that of the run, or of the connection. */
async function readFacts(begun) {
  const leaving = new AbortController();
  let timer = setTimeout(() => leaving.abort(), 1000 * QUIET_SECONDS);
  try {
    const answer = await request("/facts", { signal: leaving.signal });
    if (!answer.ok) throw Object.assign(new Error(await refusalOf(answer)), { status: answer.status });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => leaving.abort(), 1000 * QUIET_SECONDS);
      model.heardAt = Date.now() / 1000;
      if (model.link !== "live" && !hasEnded()) setLink("live");
      begun();
      const messages = (text + value).split("\n\n");
      text = messages.pop();
      messages.forEach(receiveMessage);
    }
  } finally {
    clearTimeout(timer);
    leaving.abort();
  }
}

function receiveMessage(message) {
  let name = "",
    data = "";
  for (const line of message.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (data) receive(name, JSON.parse(data));
}

function setLink(link, text = "") {
  Object.assign(model, { link, linkText: text });
  changed("header", "graph", "queries", "epochs");
}

// ---- drawing

const dirty = new Set();
let drawing = 0;

function changed(...parts) {
  for (const part of parts) dirty.add(part);
  drawing ||= setTimeout(draw, 150);
}

function draw() {
  drawing = 0;
  const parts = [...dirty];
  dirty.clear();
  for (const part of parts) if (model.status || part === "header") PARTS[part]();
}

const PARTS = {
  header: drawHeader,
  graph: drawNodes,
  queries: drawQueries,
  panel: drawPanel,
  epochs: drawEpochs,
  charts: drawCharts,
  log: drawLog,
};

function everySecond() {
  if (model.link === "live") changed("header", "graph", "queries", "epochs", ...(model.open ? ["panel"] : []));
}

// ---- the header

const LINK_TEXTS = {
  connecting: () => "",
  live: () => "",
  lost: () =>
    `no answer since ${timeText(model.heardAt)}; ${model.isStopping ? "the run was told to stop and may have ended" : "the process may have died"}. The page tries again.`,
  refused: () => model.linkText,
  ended: () => `the run has ended (${model.status?.state}); this is its last state`,
};

function drawHeader() {
  showMessage(
    byId("link-message"),
    LINK_TEXTS[model.link](),
    model.link !== "ended" ? "caution" : model.status.state === "failed" ? "bad" : "",
  );
  for (const id of ["pause", "stop", "savepoint"]) byId(id).disabled = hasEnded() || !model.status || model.link !== "live" || model.ordering.has(id);
  if (!model.status) return;
  const { health, paused, seconds } = model.status;
  const isOld = model.link !== "live" && !hasEnded();
  show(byId("health"), `${health.status} ${isOld}`, () => [
    mark(STATUS_MARKS[health.status] ?? "running"),
    `${isOld ? "last known: " : ""}${health.status}`,
  ]);
  byId("health").className = `health ${isOld ? "muted" : (STATUS_TONES[health.status] ?? "muted")}`;
  show(byId("reasons"), health.reasons.join("\n"), () => health.reasons.map((reason) => element("li", {}, reason)));
  const since = model.link === "live" ? clock.now() - model.statusAt : 0;
  setText(byId("uptime"), `${hasEnded() ? "ran for" : "up"} ${uptimeText(seconds + Math.max(0, since))}${paused ? " · paused" : ""}`);
  setText(byId("pause"), paused ? "Resume" : "Pause");
  document.title = `${model.run.name}: ${health.status}`;
  const failure = failures()[0];
  showMessage(
    byId("failure"),
    failure ? [`${failure.code}: ${failure.message}`, failure.node && `node ${failure.node}`, failure.help].filter(Boolean).join("\n") : "",
    "bad",
  );
}

function showMessage(place, text, tone) {
  place.hidden = !text;
  place.className = `message ${tone}`;
  setText(place, text);
}

async function order(button, name, values, begun, done) {
  const place = byId("order-message");
  if (!model.token) return showMessage(place, linkNeeded(), "bad");
  model.ordering.add(button);
  showMessage(place, begun, "");
  changed("header");
  try {
    const answer = await send(`/api/orders/${name}`, values);
    if (answer.health) applyStatus(answer);
    const text = done(answer);
    showMessage(place, text, "");
    setTimeout(() => place.textContent === text && showMessage(place, "", ""), 10_000);
  } catch (error) {
    showMessage(place, error.status ? error.message : "the run does not answer", "bad");
  }
  model.ordering.delete(button);
  changed("header");
}

function listenToOrders() {
  byId("pause").addEventListener("click", () => {
    const name = model.status.paused ? "resume" : "pause";
    order("pause", name, {}, "", () => (name === "pause" ? "Paused: no epoch begins. A running one comes to its end." : "Resumed."));
  });
  askFirst("stop", () =>
    order("stop", "stop", {}, "", () => {
      model.isStopping = true;
      return "The run stops after the running epochs.";
    }),
  );
  askFirst("savepoint", () =>
    order(
      "savepoint",
      "savepoint",
      { folder: byId("folder").value.trim() },
      "Waiting for the end of the running epochs, then copying…",
      (copied) => `The savepoint is in ${copied.url}.`,
    ),
  );
}

function askFirst(name, go) {
  const dialog = byId(`${name}-dialog`);
  byId(name).addEventListener("click", () => {
    if (!model.token) return showMessage(byId("order-message"), linkNeeded(), "bad");
    dialog.returnValue = "";
    dialog.showModal();
  });
  dialog.addEventListener("close", () => dialog.returnValue === "yes" && go());
}

// ---- layout

const NODE = { width: 224, height: 62 },
  GAP = { across: 64, down: 28 };

/** Place the nodes in layers from left to right: each as far left as its inputs allow, then in an order with few crossings. */
function layOut(nodes, edges) {
  const forward = edgesWithoutCircles(nodes, edges);
  const depths = depthsOf(nodes, forward);
  const layers = Array.from({ length: Math.max(0, ...depths.values()) + 1 }, () => []);
  const places = new Map(
    nodes.map((node) => [node.name, { name: node.name, layer: depths.get(node.name), height: NODE.height, above: [], below: [] }]),
  );
  for (const place of places.values()) layers[place.layer].push(place);
  const routes = new Map(forward.map((edge) => [edge, route(places.get(edge.from), places.get(edge.to), layers)]));
  orderLayers(layers);
  placeDown(layers);
  const height = Math.max(NODE.height, ...layers.flat().map((place) => place.y + place.height));
  return { places, routes, width: layers.length * (NODE.width + GAP.across) - GAP.across, height };
}

/** Rows go first, so that a lookup that leads back is the edge that is left out. */
function edgesWithoutCircles(nodes, edges) {
  const below = new Map(nodes.map((node) => [node.name, []]));
  const kept = [];
  for (const edge of [...edges.filter((each) => each.kind === "rows"), ...edges.filter((each) => each.kind !== "rows")]) {
    if (!below.has(edge.from) || !below.has(edge.to) || reaches(below, edge.to, edge.from)) continue;
    below.get(edge.from).push(edge.to);
    kept.push(edge);
  }
  return kept;
}

function reaches(below, from, to) {
  const seen = new Set(),
    waiting = [from];
  while (waiting.length) {
    const name = waiting.pop();
    if (name === to) return true;
    if (!seen.has(name)) waiting.push(...below.get(name));
    seen.add(name);
  }
  return false;
}

function depthsOf(nodes, edges) {
  const above = new Map(nodes.map((node) => [node.name, []]));
  for (const edge of edges) above.get(edge.to).push(edge.from);
  const depths = new Map();
  const depth = (name) => {
    if (!depths.has(name)) depths.set(name, Math.max(0, ...above.get(name).map((each) => depth(each) + 1)));
    return depths.get(name);
  };
  for (const node of nodes) depth(node.name);
  return depths;
}

/** The places that an edge passes; in each layer between its ends it has one of its own. */
function route(from, to, layers) {
  const passed = [from];
  for (let layer = from.layer + 1; layer < to.layer; layer++) {
    const bend = { layer, height: 6, above: [], below: [] };
    layers[layer].push(bend);
    passed.push(bend);
  }
  passed.push(to);
  passed.slice(1).forEach((place, index) => {
    place.above.push(passed[index]);
    passed[index].below.push(place);
  });
  return passed;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Order each layer by the mean place of its neighbours, back and forth; the order with the fewest crossings stays. */
function orderLayers(layers) {
  const number = () =>
    layers.forEach((layer) =>
      layer.forEach((place, index) => {
        place.index = index;
      }),
    );
  number();
  let best = layers.map((layer) => [...layer]),
    fewest = crossings(layers);
  for (let round = 0; round < 12 && fewest; round++) {
    const [side, order] = round % 2 ? ["below", [...layers].reverse()] : ["above", layers];
    for (const layer of order) {
      for (const place of layer) place.wish = place[side].length ? mean(place[side].map((other) => other.index)) : place.index;
      layer.sort((a, b) => a.wish - b.wish || a.index - b.index);
      layer.forEach((place, index) => {
        place.index = index;
      });
    }
    const found = crossings(layers);
    if (found < fewest) [best, fewest] = [layers.map((layer) => [...layer]), found];
  }
  layers.forEach((layer, index) => layer.splice(0, layer.length, ...best[index]));
  number();
}

function crossings(layers) {
  let found = 0;
  for (const layer of layers) {
    const lines = layer.flatMap((place) => place.below.map((other) => [place.index, other.index]));
    for (let first = 0; first < lines.length; first++) {
      for (let second = first + 1; second < lines.length; second++) {
        if ((lines[first][0] - lines[second][0]) * (lines[first][1] - lines[second][1]) < 0) found++;
      }
    }
  }
  return found;
}

/** Move each place towards the middle of its neighbours, without changing the order in its layer. */
function placeDown(layers) {
  for (const layer of layers)
    spread(
      layer,
      layer.map(() => 0),
    );
  for (let round = 0; round < 12; round++) {
    const sides = round >= 10 ? ["above", "below"] : round % 2 ? ["below"] : ["above"];
    for (const layer of round % 2 ? [...layers].reverse() : layers) {
      spread(
        layer,
        layer.map((place) => {
          const near = sides.flatMap((side) => place[side]);
          return near.length ? mean(near.map((other) => other.y + other.height / 2)) - place.height / 2 : place.y;
        }),
      );
    }
  }
  const top = Math.min(...layers.flat().map((place) => place.y));
  for (const place of layers.flat()) place.y -= top;
}

/** Heights as near to the wishes as the distances allow, by least squares: neighbours that push each other form a block. */
function spread(layer, wishes) {
  const blocks = [];
  let offset = 0;
  const offsets = layer.map((place) => [offset, (offset += place.height + (place.name ? GAP.down : GAP.down / 2))][0]);
  wishes.forEach((wish, index) => {
    let block = { sum: wish - offsets[index], count: 1 };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).count > block.sum / block.count) {
      const before = blocks.pop();
      block = { sum: before.sum + block.sum, count: before.count + block.count };
    }
    blocks.push(block);
  });
  let index = 0;
  for (const block of blocks) {
    for (let left = block.count; left; left--, index++) layer[index].y = block.sum / block.count + offsets[index];
  }
}

const leftOf = (place) => place.layer * (NODE.width + GAP.across);

/** The path of an edge through its places. Rejects leave lower than rows, lookups arrive higher. */
function pathOf(passed, kind) {
  const leave = { rejects: 16, late: 22 }[kind] ?? 0,
    arrive = { lookup: -16 }[kind] ?? leave / 2;
  const heights = passed.map((place, index) => place.y + place.height / 2 + (place.name ? (index ? arrive : leave) : 0));
  let path = `M${leftOf(passed[0]) + NODE.width} ${heights[0]}`;
  passed.slice(1).forEach((place, index) => {
    const [start, end] = [leftOf(passed[index]) + NODE.width, leftOf(place)],
      bend = (end - start) / 2;
    const isLast = index === passed.length - 2;
    path += `C${start + bend} ${heights[index]} ${end - bend} ${heights[index + 1]} ${end - (isLast ? 7 : 0)} ${heights[index + 1]}`;
    if (!isLast) path += `H${end + NODE.width}`;
  });
  const last = passed.length - 1,
    tip = leftOf(passed[last]);
  return {
    path,
    arrow: `M${tip} ${heights[last]}l-9-4.5v9z`,
    middle: [(leftOf(passed[0]) + NODE.width + leftOf(passed[1])) / 2, (heights[0] + heights[1]) / 2],
  };
}

/** The path of an edge that leads back: below both nodes. */
function pathBack(from, to) {
  const [start, end] = [leftOf(from) + NODE.width / 2, leftOf(to) + NODE.width / 2];
  const low = Math.max(from.y, to.y) + NODE.height + 26,
    tip = to.y + NODE.height;
  return {
    path: `M${start} ${from.y + NODE.height}C${start} ${low} ${end} ${low} ${end} ${tip + 7}`,
    arrow: `M${end} ${tip}l-4.5 9h9z`,
    middle: [(start + end) / 2, low - 8],
  };
}

// ---- topology

const MARGIN = 26;
const view = { zoom: 0, isFitted: false, width: 0, height: 0, picture: undefined, nodes: new Map(), rows: new Map(), edges: [] };

function buildTopology() {
  const { nodes, edges } = model.topology,
    layout = layOut(nodes, edges);
  view.edges = edges.map((edge) => ({ edge, shapes: drawEdge(edge, layout) }));
  const lines = view.edges.flatMap((each) => each.shapes);
  for (const node of [...nodes].sort((a, b) => compare(layout.places.get(a.name), layout.places.get(b.name))))
    view.nodes.set(node.name, drawNode(node, layout.places.get(node.name)));
  for (const node of nodes) view.rows.set(node.name, listRow(node));
  Object.assign(view, { width: layout.width + 2 * MARGIN, height: layout.height + 2 * MARGIN });
  view.picture = shape(
    "svg",
    {
      role: "group",
      "aria-label": `The topology: ${plural(nodes.length, "node")}`,
      viewBox: `${-MARGIN} ${-MARGIN} ${view.width} ${view.height}`,
    },
    ...lines,
    ...[...view.nodes.values()].map((each) => each.group),
  );
  byId("graph").replaceChildren(view.picture);
  byId("list").replaceChildren(...[...view.rows.values()].map((each) => each.row));
  buildQueries();
  showView(matchMedia("(max-width: 640px)").matches ? "list" : "graph");
}

const compare = (a, b) => a.layer - b.layer || a.y - b.y;

function drawEdge(edge, layout) {
  const passed = layout.routes.get(edge),
    [from, to] = [layout.places.get(edge.from), layout.places.get(edge.to)];
  if (!from || !to) return [];
  const { path, arrow, middle } = passed ? pathOf(passed, edge.kind) : pathBack(from, to);
  const isNamed = edge.kind === "rejects" || edge.kind === "late";
  return [
    shape("path", { class: `edge ${edge.kind}`, d: path }),
    shape("path", { class: `arrow ${edge.kind}`, d: arrow }),
    ...(isNamed ? [shape("text", { class: "edge-label", x: middle[0], y: middle[1] + 4 }, edge.kind)] : []),
  ];
}

const KIND_CORNERS = { source: 22, transform: 7, sink: 0 };

/** What a node is, in words; also the parts of what is drawn that change. */
function drawNode(node, place) {
  const text = (attributes, content = "") => shape("text", attributes, content);
  const number = queryNumber(node.query);
  const parts = {
    rate: text({ class: "rate", x: NODE.width - 12, y: 37 }),
    counts: text({ class: "small counts", x: 14, y: 54 }),
    title: shape("title"),
    alertText: text({ x: 18, y: 75 }),
    alertMark: shape("path", { transform: "translate(2 65) scale(0.95)", "fill-rule": "evenodd" }),
  };
  const inner = [
    parts.title,
    shape("rect", { class: "box", width: NODE.width, height: NODE.height, rx: KIND_CORNERS[node.kind] }),
    text({ class: "label", x: 14, y: 20 }, shorten(node.name, NODE.width - (number ? 58 : 28), "650 13.5px")),
    text({ class: "small", x: 14, y: 37 }, shorten(kindText(node), 128, "12px")),
    parts.rate,
    parts.counts,
    shape("g", { class: "alert" }, parts.alertMark, parts.alertText),
  ];
  if (number)
    inner.push(
      shape(
        "g",
        { class: seriesClass(number - 1) },
        shape("rect", { class: "tag-box", x: NODE.width - 36, y: 8, width: 24, height: 16, rx: 4 }),
        text({ class: "tag-text", x: NODE.width - 24, y: 20 }, number),
      ),
    );
  const group = shape(
    "g",
    {
      class: "node",
      role: "button",
      tabindex: "0",
      "aria-expanded": "false",
      transform: `translate(${leftOf(place)} ${place.y})`,
      "data-node": node.name,
      click: () => openPanel(node.name),
      keydown: (event) => pressed(event, () => openPanel(node.name)),
    },
    ...inner,
  );
  return { group, ...parts };
}

function kindText(node) {
  return node.kind === "transform" ? node.type : `${node.type} ${node.kind}`;
}

function pressed(event, act) {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  act();
}

function listRow(node) {
  const number = queryNumber(node.query);
  const parts = {
    rate: element("span", { class: "number" }),
    counts: element("span", { class: "counts muted number" }),
    alert: element("span", { class: "alert" }),
  };
  const label = element(
    "span",
    {},
    element("b", {}, node.name),
    ` ${kindText(node)} `,
    number ? element("span", { class: `tag ${seriesClass(number - 1)}` }, String(number)) : undefined,
  );
  const button = element(
    "button",
    { type: "button", "aria-expanded": "false", click: () => openPanel(node.name) },
    label,
    parts.rate,
    parts.counts,
    parts.alert,
  );
  return { row: element("li", { "data-node": node.name }, button), button, ...parts };
}

/** Queries have numbers when there are several. */
function queryNumber(query) {
  const { queries } = model.topology;
  return queries.length > 1 ? queries.findIndex((each) => each.name === query) + 1 : 0;
}

const seriesClass = (index) => `series-${index % 6}`;

function drawNodes() {
  if (!view.picture) return;
  model.pressures = pressures();
  for (const { edge, shapes } of view.edges)
    for (const each of shapes) each.classList.toggle("pressed", edge.kind === "rows" && model.pressures.has(edge.to));
  const wanted = byId("find").value.trim().toLowerCase();
  for (const node of model.topology.nodes) {
    const facts = factsOf(node.name),
      alert = alertOf(node.name);
    const isDim =
      (wanted && !`${node.name} ${node.type} ${node.kind}`.toLowerCase().includes(wanted)) ||
      (model.query && !isOfQuery(node, model.query));
    updateNode(node, facts, alert, rateOf(node.name), isDim);
  }
}

function isOfQuery(node, query) {
  const plan = model.topology.queries.find((each) => each.name === query);
  return node.query === query || plan?.sources.includes(node.name) || plan?.sinks.includes(node.name);
}

function updateNode(node, facts, alert, rate, isDim) {
  const drawn = view.nodes.get(node.name),
    row = view.rows.get(node.name),
    isOpen = String(model.open === node.name);
  const counts = [
    `rejects ${shortCount(facts.rejected)}`,
    `late ${shortCount(facts.late)}`,
    ...(facts.waiting === undefined ? [] : [`waiting ${shortCount(facts.waiting)}`]),
  ].join(" · ");
  const tone = `${alert ? `has-${alert.tone}` : ""} ${isDim ? "dim" : ""}`.trim();
  const words = [node.name, kindText(node), rate === NOT_COUNTED ? "rows/s not counted" : rate, counts, alert?.text]
    .filter(Boolean)
    .join(", ");
  setAttribute(drawn.group, "class", `node ${tone}`);
  setAttribute(drawn.group, "aria-label", words);
  setAttribute(drawn.group, "aria-expanded", isOpen);
  setText(drawn.title, words);
  setText(drawn.rate, rate === NOT_COUNTED ? "" : rate.replace(" rows/s", "/s"));
  setText(drawn.counts, shorten(counts, NODE.width - 20, "11.5px"));
  setText(drawn.alertText, alert ? shorten(alert.text, NODE.width - 20, "12px") : "");
  setAttribute(drawn.alertMark, "d", alert ? MARKS[alert.mark] : "");
  setAttribute(row.row, "class", tone);
  setAttribute(row.button, "aria-expanded", isOpen);
  setText(row.rate, rate);
  setText(row.counts, counts);
  setAttribute(row.alert, "class", `alert ${alert?.tone ?? ""}`);
  show(row.alert, alert ? alert.mark + alert.text : "", () => (alert ? [mark(alert.mark), ` ${alert.text}`] : []));
}

function showView(name) {
  for (const [id, isShown] of [
    ["graph", name === "graph"],
    ["sizes", name === "graph"],
    ["graph-legend", name === "graph"],
    ["list", name === "list"],
  ])
    byId(id).hidden = !isShown;
  byId("as-graph").setAttribute("aria-pressed", String(name === "graph"));
  byId("as-list").setAttribute("aria-pressed", String(name === "list"));
  if (name === "graph" && !view.zoom) fit();
}

/** Show the whole graph if its texts stay readable; again whenever its place changes, until the user chooses a size. */
function fit() {
  setZoom(Math.max(fittingZoom(), 0.6));
  view.isFitted = true;
}

function fitAgain() {
  if (view.isFitted && !byId("graph").hidden) fit();
}

function resize(zoom, event) {
  view.isFitted = false;
  setZoom(zoom, event);
}

function fittingZoom() {
  return Math.min(1, (byId("graph").clientWidth - 2) / view.width, (0.64 * innerHeight - 4) / view.height);
}

/** Change the size of the graph; the point below the pointer, or in the middle, stays where it is. */
function setZoom(zoom, event) {
  const frame = byId("graph"),
    box = frame.getBoundingClientRect(),
    before = view.zoom || 1;
  const [x, y] = event ? [event.clientX - box.left, event.clientY - box.top] : [box.width / 2, box.height / 2];
  const [left, top] = [(frame.scrollLeft + x) / before, (frame.scrollTop + y) / before];
  view.zoom = Math.min(2, Math.max(0.04, zoom));
  view.picture.setAttribute("width", Math.floor(view.width * view.zoom));
  view.picture.setAttribute("height", Math.floor(view.height * view.zoom));
  frame.scrollTo(left * view.zoom - x, top * view.zoom - y);
}

function listenToTopology() {
  const frame = byId("graph");
  byId("larger").addEventListener("click", () => resize(view.zoom * 1.25));
  byId("smaller").addEventListener("click", () => resize(view.zoom / 1.25));
  byId("fit").addEventListener("click", () => {
    setZoom(fittingZoom());
    view.isFitted = true;
  });
  byId("as-graph").addEventListener("click", () => showView("graph"));
  byId("as-list").addEventListener("click", () => showView("list"));
  byId("find").addEventListener("input", () => {
    drawNodes();
    scrollToFound();
  });
  byId("find").addEventListener("keydown", (event) => {
    if (event.key === "Enter") openFound();
  });
  frame.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      resize(view.zoom * Math.exp(-event.deltaY / 300), event);
    },
    { passive: false },
  );
  frame.addEventListener("pointerdown", (event) => dragGraph(frame, event));
}

function dragGraph(frame, begin) {
  if (begin.pointerType !== "mouse" || begin.button || begin.target.closest(".node")) return;
  const [left, top] = [frame.scrollLeft + begin.clientX, frame.scrollTop + begin.clientY];
  const move = (event) => frame.scrollTo(left - event.clientX, top - event.clientY);
  const end = () => {
    frame.classList.remove("dragged");
    removeEventListener("pointermove", move);
  };
  frame.classList.add("dragged");
  addEventListener("pointermove", move);
  addEventListener("pointerup", end, { once: true });
}

const foundNode = () =>
  byId("find").value.trim() && model.topology.nodes.find((node) => !view.rows.get(node.name).row.classList.contains("dim"));

function scrollToFound() {
  const found = foundNode();
  if (!found) return;
  const frame = byId("graph"),
    box = view.nodes.get(found.name).group.getBoundingClientRect(),
    around = frame.getBoundingClientRect();
  frame.scrollBy(box.left - around.left - 30, box.top - around.top - 60);
  byId("list").scrollTo(0, view.rows.get(found.name).row.offsetTop - byId("list").offsetTop);
}

function openFound() {
  const found = foundNode();
  if (found) openPanel(found.name);
}

// ---- queries

const queryParts = new Map();

function buildQueries() {
  for (const [index, { name }] of model.topology.queries.entries()) {
    const number = queryNumber(name),
      parts = { state: element("span"), text: element("span", { class: "number" }) };
    const tag = number ? element("span", { class: `tag ${seriesClass(index)}` }, String(number)) : undefined;
    parts.button = element(
      "button",
      { type: "button", "aria-pressed": "false", title: "Show the nodes of this query", click: () => chooseQuery(name) },
      tag,
      element("b", {}, name),
      parts.state,
      parts.text,
    );
    queryParts.set(name, parts);
  }
  byId("queries").replaceChildren(...[...queryParts.values()].map((parts) => parts.button));
}

function chooseQuery(name) {
  model.query = model.query === name ? "" : name;
  for (const [each, { button }] of queryParts) button.setAttribute("aria-pressed", String(each === model.query));
  drawNodes();
}

function drawQueries() {
  for (const [name, parts] of queryParts) {
    const facts = model.status.queries[name],
      isOld = model.link !== "live" && !hasEnded(),
      isPaused = model.status.paused && facts?.state === "running",
      state = isPaused ? "paused" : (facts?.state ?? "not started"),
      epoch = runningEpoch(name);
    const tone = isOld ? "muted" : epoch?.isLong ? "caution" : (STATUS_TONES[state] ?? "muted");
    parts.state.className = tone;
    show(parts.state, `${state} ${tone}`, () => [mark(epoch?.isLong ? "caution" : (STATUS_MARKS[state] ?? "running")), ` ${state}`]);
    setText(parts.text, queryText(facts, epoch, state === "restarting" ? restartOf(name) : undefined));
  }
}

function queryText(facts, epoch, restart) {
  if (!facts) return "";
  const parts = [];
  if (restart) parts.push(`restart ${restart.attempt}: ${restart.message}`);
  if (facts.last_epoch !== undefined) parts.push(`epoch ${facts.last_epoch} in ${spanText(facts.last_seconds)}`);
  if (epoch && (epoch.seconds >= 2 || epoch.isLong))
    parts.push(`epoch ${epoch.number} for ${spanText(epoch.seconds)}${epoch.isLong ? `, usually ${spanText(epoch.median)}` : ""}`);
  if (facts.watermark) parts.push(`watermark ${spanText(facts.watermark.lag_seconds)} behind`);
  if (facts.restarts) parts.push(plural(facts.restarts, "restart"));
  return parts.join(" · ");
}

// ---- the panel

const panel = {
  parts: undefined,
  opener: undefined,
  isPaused: false,
  filter: "",
  where: "",
  isRefused: false,
  sampled: "",
  wish: "", // what is sampled for it: a node and a filter
  looked: undefined, // the last epoch that was sampled
  message: "",
  frozen: undefined,
};

function openPanel(name) {
  panel.opener = document.activeElement;
  Object.assign(panel, { isPaused: false, filter: "", where: "", frozen: undefined });
  wishFor(name);
  model.open = name;
  buildPanel(nodeOf(name));
  byId("panel").hidden = false;
  coverPage();
  drawNodes();
  drawPanel();
  byId("panel").scrollTo(0, 0);
  fitAgain();
  view.nodes.get(name).group.scrollIntoView({ block: "nearest", inline: "nearest" });
  byId("panel-title").focus();
  watch();
}

/** From now on rows of a node are wanted, with the filter of the panel. */
function wishFor(name) {
  Object.assign(panel, { isRefused: false, sampled: name, wish: wishOf(name, panel.where), message: "", looked: undefined });
}

function closePanel() {
  const name = model.open;
  model.open = "";
  byId("panel").hidden = true;
  coverPage();
  fitAgain();
  drawNodes();
  const drawn = byId("graph").hidden ? view.rows.get(name).button : view.nodes.get(name).group;
  (panel.opener.isConnected && panel.opener !== document.body ? panel.opener : drawn).focus();
}

/** On a narrow screen the panel covers the page, which must not get the focus then. */
function coverPage() {
  const isCovered = Boolean(model.open) && matchMedia("(max-width: 900px)").matches;
  byId("main").inert = byId("header").inert = isCovered;
}

function buildPanel(node) {
  const { edges } = model.topology;
  const near = (label, found, name) =>
    found.length
      ? [
          element(
            "p",
            {},
            `${label} `,
            ...found.flatMap((edge, index) => [index ? ", " : "", linkTo(name(edge)), edge.kind === "rows" ? "" : ` (${edge.kind})`]),
          ),
        ]
      : [];
  const parts = {
    alert: element("p", { class: "message", hidden: true }),
    facts: element("dl"),
    state: element("div"),
    query: element("dl"),
    failures: element("div"),
    columns: element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Columns" }),
    letters: element("div"),
    rows: element("div", { role: "region", "aria-labelledby": "rows-title" }),
  };
  panel.parts = parts;
  const sections = [
    element(
      "div",
      { class: "heading" },
      element("h2", { id: "panel-title", tabindex: "-1" }, node.name),
      element("button", { type: "button", click: closePanel, "aria-label": "Close the panel" }, "Close"),
    ),
    element("p", { class: "muted" }, `${node.type} ${node.kind}${node.query ? `, query ${node.query}` : ""}`),
    ...(node.description ? [element("p", { class: "description" }, node.description)] : []),
    ...near(
      "from",
      edges.filter((edge) => edge.to === node.name),
      (edge) => edge.from,
    ),
    ...near(
      "to",
      edges.filter((edge) => edge.from === node.name),
      (edge) => edge.to,
    ),
    parts.alert,
    parts.rows,
    element("h3", {}, "Facts"),
    parts.facts,
    parts.state,
    ...(node.query ? [element("h3", {}, "Query"), parts.query] : []),
    element("h3", {}, "Last errors"),
    parts.failures,
    ...(hasLetters(node) ? [element("h3", {}, "Dead letters"), parts.letters] : []),
    ...(node.sql
      ? [element("h3", {}, "SQL"), element("pre", { tabindex: "0", role: "region", "aria-label": "SQL" }, ...highlighted(node.sql))]
      : []),
    element("h3", {}, "Options"),
    optionsOf(node),
    element("h3", {}, "Columns"),
    parts.columns,
  ];
  byId("panel").replaceChildren(...sections);
  buildRows(parts);
}

function linkTo(name) {
  return element("button", { type: "button", class: "plain", click: () => openPanel(name) }, name);
}

function optionsOf(node) {
  const entries = Object.entries(node.options);
  if (!entries.length) return element("p", { class: "muted" }, "none");
  return element(
    "dl",
    {},
    ...entries.flatMap(([name, value]) => [
      element("dt", {}, name),
      element("dd", {}, typeof value === "string" ? value : JSON.stringify(value, null, 2)),
    ]),
  );
}

/** The columns of a node: those of its rows, else what is known without Spark. */
function columnsOf(node) {
  const sampled = model.columns.get(panel.sampled);
  return sampled ? Object.entries(sampled) : (node.columns ?? []).map((column) => [column.name, column.type]);
}

function columnTable(columns) {
  if (!columns.length) return element("p", { class: "muted" }, "not known before rows have been sampled");
  const head = ["column", "type"].map((text) => element("th", { scope: "col" }, text));
  const body = columns.map((column) => element("tr", {}, ...column.map((text) => element("td", {}, text))));
  return element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
}

const lettersFrom = (node) => model.topology.edges.filter((edge) => edge.from === node.name && edge.kind !== "rows" && edge.kind !== "lookup");
const lettersTo = (node) => model.topology.edges.filter((edge) => edge.to === node.name && edge.kind !== "rows" && edge.kind !== "lookup");
const hasLetters = (node) => lettersFrom(node).length + lettersTo(node).length > 0;

/** Where the dead letters of a node are, or from where a sink gets them, with their counts. */
function lettersOf(node) {
  const line = (edge, count, other, words) => element("p", {}, `${countText(count)} ${edge.kind} ${words} `, linkTo(other));
  const target = (name) => (nodeOf(name)?.target ? element("p", { class: "muted" }, nodeOf(name).target) : undefined);
  const count = (edge) => factsOf(edge.from)[edge.kind === "late" ? "late" : "rejected"];
  return [
    ...lettersFrom(node).flatMap((edge) => [line(edge, count(edge), edge.to, "in this run, written to"), target(edge.to)]),
    ...lettersTo(node).map((edge) => line(edge, count(edge), edge.from, "in this run, of")),
    ...(lettersTo(node).length ? [target(node.name)] : []),
  ].filter(Boolean);
}

function drawPanel() {
  if (!model.open) return;
  const { parts } = panel,
    name = model.open,
    node = nodeOf(name),
    facts = factsOf(name),
    alert = alertOf(name);
  parts.alert.hidden = !alert;
  parts.alert.className = `message ${alert?.tone}`;
  const alertText = [alert?.text, alert?.more].filter(Boolean).join("\n");
  show(parts.alert, alert ? alert.mark + alertText : "", () => (alert ? [mark(alert.mark), ` ${alertText}`] : []));
  fillFacts(parts.facts, countsOf(node, facts));
  const operators = facts.state?.operators ?? [];
  show(parts.state, JSON.stringify(operators), () => (operators.length ? operatorTable(operators) : []));
  fillFacts(parts.query, factsOfQuery(model.status.queries[node.query]));
  const found = errorsOf(node);
  show(parts.failures, found.map((entry) => entry.at).join(), () =>
    found.length ? found.map(failureShown) : [element("p", { class: "muted" }, "none in this run")],
  );
  const columns = columnsOf(node);
  show(parts.columns, JSON.stringify(columns), () => [columnTable(columns)]);
  if (hasLetters(node)) show(parts.letters, JSON.stringify(lettersFrom(node).concat(lettersTo(node)).map((edge) => factsOf(edge.from))), () => lettersOf(node));
  drawRows(parts, name);
}

function countsOf(node, facts) {
  const state = facts.state;
  return [
    ["rows/s", rateOf(node.name).replace(" rows/s", "") || "–"],
    ["rows in", countText(facts.rows_in)],
    ["rows out", countText(facts.rows_out)],
    ["rejects", countText(facts.rejected)],
    ["late rows", countText(facts.late)],
    ...known("waiting rows", facts.waiting),
    ...known("lost rows", facts.lost),
    ...known("epochs", facts.epochs),
    ...known("lookups with a match", facts.hits),
    ...known("without a match", facts.misses),
    ...(state
      ? [["state", `${plural(state.rows, "row")}, ${bytesText(state.memory_bytes)}${(state.disk_bytes ?? null) === null ? "" : `, ${bytesText(state.disk_bytes)} on disk`}`]]
      : []),
    ...(facts.guarantee ? [["guarantee", facts.guarantee]] : []),
  ];
}

/** A count that only some nodes have. */
const known = (name, count) => ((count ?? null) === null ? [] : [[name, countText(count)]]);

function factsOfQuery(facts) {
  if (!facts) return [["state", "not started"]];
  const { watermark } = facts;
  return [
    ["state", facts.state],
    ["epochs", countText(facts.epochs)],
    [
      "last epoch",
      facts.last_epoch === undefined ? "none" : `${facts.last_epoch}, ${spanText(facts.last_seconds)}, at ${timeText(facts.last_at)}`,
    ],
    ["restarts", countText(facts.restarts)],
    ...(watermark
      ? [
          ["watermark", `${new Date(watermark.at_ms).toISOString().replace("T", " ").slice(0, 19)} UTC`],
          ["watermark lag", spanText(watermark.lag_seconds)],
          ["slowest input", watermark.slowest],
        ]
      : [["watermark", "none"]]),
  ];
}

/** Set the values of a list of facts in place. */
function fillFacts(list, entries) {
  show(list, entries.map(([label]) => label).join("\n"), () => entries.flatMap(([label]) => [element("dt", {}, label), element("dd")]));
  entries.forEach(([, value], index) => {
    const cell = list.children[2 * index + 1];
    setText(cell, value);
    cell.classList.toggle("unknown", value === NOT_COUNTED);
  });
}

function operatorTable(operators) {
  const head = ["operator", "key", "rows", "size", "changed"].map((text) => element("th", { scope: "col" }, text));
  const body = operators.map((each) =>
    element(
      "tr",
      {},
      element("td", {}, each.kind),
      element("td", {}, each.key),
      ...[whole.format(each.rows), bytesText(each.bytes), whole.format(each.changed)].map((text) =>
        element("td", { class: "right" }, text),
      ),
    ),
  );
  return [
    element("h3", {}, "State by operator"),
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "State by operator" },
      element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body)),
    ),
  ];
}

function errorsOf(node) {
  const since = model.run.began - 1;
  const concerns = (entry) =>
    (entry.event === "failed" && entry.node === node.name) || (entry.event === "restarting" && entry.query === node.query && node.query);
  return model.log
    .filter((entry) => entry.at >= since && concerns(entry))
    .slice(-5)
    .reverse();
}

function failureShown(entry) {
  const isFailure = entry.event === "failed";
  return element(
    "div",
    { class: "failure" },
    element("b", {}, isFailure ? entry.code : `restart ${entry.attempt} of the query`),
    ` ${timeText(entry.at)}\n${entry.message}`,
    entry.detail ? `\n${entry.detail}` : undefined,
    entry.help ? element("p", { class: "muted" }, entry.help) : undefined,
    entry.code ? explanationOf(entry.code) : undefined,
  );
}

/** What `millstream explain` says of a code, once it is asked for. */
function explanationOf(code) {
  const text = element("div", { class: "muted" }, "…");
  const fill = async () => {
    try {
      const { title, why, fix } = await read(`/api/codes/${encodeURIComponent(code)}`);
      text.replaceChildren(element("p", {}, title), element("p", {}, why), element("p", {}, `What to do: ${fix}`));
    } catch {
      setText(text, "the run does not answer");
    }
  };
  return element("details", { toggle: (event) => event.target.open && fill() }, element("summary", {}, `Explain ${code}`), text);
}

// ---- SQL

const WORDS = new Set(
  `all and anti any array as asc between by case cast cluster create cross cube current date day desc distinct distribute
else end escape except exists extract false filter first following for from full group grouping having hour ilike in inner intersect interval
into is join last lateral left like limit map minute month not null nulls on or order outer over partition pivot preceding qualify range
recursive right rlike rollup row rows select semi sets some struct table then timestamp true tumble unbounded union unpivot using values view
watermark when where window with within year`.split(/\s+/),
);
const TOKENS =
  /(?<comment>--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(?<string>'(?:[^'\\]|\\[\s\S]|'')*'?|"(?:[^"\\]|\\[\s\S]|"")*"?)|(?<name>`[^`]*`?)|(?<numeral>\b\d[\w.]*)|(?<word>[\p{L}_][\p{L}\p{N}_]*)|(?<other>\s+|[\s\S])/gu;

function highlighted(sql) {
  return [...sql.matchAll(TOKENS)].map(({ 0: text, groups }) => {
    const kind = groups.word
      ? WORDS.has(text.toLowerCase())
        ? "keyword"
        : ""
      : ["comment", "string", "name", "numeral"].find((each) => groups[each]);
    return kind ? element("span", { class: kind }, text) : text;
  });
}

// ---- rows of a node

function buildRows(parts) {
  const pause = element(
    "button",
    {
      type: "button",
      "aria-pressed": "false",
      click: () => {
        panel.isPaused = !panel.isPaused;
        panel.frozen = panel.isPaused ? model.samples.get(panel.wish) : undefined;
        pause.setAttribute("aria-pressed", String(panel.isPaused));
        setText(pause, panel.isPaused ? "Go on" : "Hold rows");
        drawPanel();
      },
    },
    "Hold rows",
  );
  const filter = element("input", {
    type: "search",
    size: "12",
    autocomplete: "off",
    input: () => {
      panel.filter = filter.value;
      drawPanel();
    },
  });
  const where = element("input", {
    size: "24",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "a condition",
    "aria-describedby": "where-note",
    change: () => {
      panel.where = where.value.trim();
      wishFor(panel.sampled);
      drawPanel();
      watch();
    },
  });
  Object.assign(parts, {
    rowsText: element("p", { class: "muted message-text", role: "status" }),
    table: element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Sampled rows" }),
    copied: element("span", { role: "status" }),
  });
  parts.tools = element(
    "div",
    { class: "tools" },
    pause,
    element("label", {}, "Search ", filter),
    element("button", { type: "button", click: () => copyRows(parts.copied) }, "Copy as JSON"),
    parts.copied,
  );
  parts.where = element(
    "div",
    { class: "tools" },
    element("label", {}, "Filter ", where),
    element("span", { id: "where-note", class: "muted" }, "Spark SQL, applied before rows are taken; Enter"),
  );
  parts.where.hidden = !model.token || hasEnded();
  parts.again = element("p", { class: "again", hidden: true }, "Read again: Spark computes this node in one piece with those below it, so the offsets of the epoch are read once more.");
  parts.rows.append(element("h3", { id: "rows-title" }, "Rows"), parts.where, parts.tools, parts.rowsText, parts.again, parts.table);
}

function shownRows() {
  const wanted = panel.filter.trim().toLowerCase();
  const rows = (panel.isPaused ? panel.frozen : model.samples.get(panel.wish)) ?? [];
  return wanted ? rows.filter((row) => row.text.toLowerCase().includes(wanted)) : rows;
}

function drawRows(parts, name) {
  const all = model.samples.get(panel.wish) ?? [],
    rows = shownRows();
  parts.rows.hidden = !model.canWatch && !all.length;
  parts.tools.hidden = parts.table.hidden = !all.length;
  parts.again.hidden = !rows.some((row) => row.readAgain);
  const others = panel.sampled === name ? "" : ` They are those of ${panel.sampled}.`;
  setText(parts.rowsText, panel.message || (all.length ? `${plural(rows.length, "row")}, those of the newest epoch first.${others}` : withoutRows()));
  parts.rowsText.classList.toggle("bad", Boolean(panel.message));
  show(parts.table, `${rows.length} ${panel.isPaused || model.sampleVersion} ${panel.wish} ${panel.filter}`, () =>
    rows.length ? [rowTable(rows)] : [],
  );
}

function withoutRows() {
  if (hasEnded()) return "the run has ended; rows are not kept";
  if (!model.token) return "no rows have been sampled. Rows are sampled for those who have the link with the token";
  if (panel.looked !== undefined && panel.where) return `no row of epoch ${panel.looked} passes the filter`;
  return "waiting: some rows of the next epoch that has any are shown";
}

function rowTable(rows) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row.values)))];
  const types = model.columns.get(panel.sampled) ?? {};
  const cell = (row, column) => (Object.hasOwn(row.values, column) ? valueCell(row.values[column], types[column]) : element("td"));
  return element(
    "table",
    {},
    element("thead", {}, element("tr", {}, ...["epoch", ...columns].map((column) => element("th", { scope: "col" }, column)))),
    element(
      "tbody",
      {},
      ...rows.map((row) =>
        element("tr", {}, element("td", { class: "right muted" }, String(row.epoch)), ...columns.map((column) => cell(row, column))),
      ),
    ),
  );
}

const NUMERIC = /^(tinyint|smallint|int|bigint|float|double|decimal)/;

function valueCell(value, type = "") {
  if (value === null) return element("td", { class: "unknown" }, "null");
  return element("td", typeof value === "number" || NUMERIC.test(type) ? { class: "right" } : {}, typeof value === "string" ? value : JSON.stringify(value));
}

async function copyRows(place) {
  const rows = shownRows(),
    text = `[\n${rows.map((row) => row.text).join(",\n")}\n]\n`;
  try {
    await navigator.clipboard.writeText(text);
    setText(place, `${plural(rows.length, "row")} copied`);
  } catch {
    // not allowed: the page is neither on this machine nor encrypted
    setText(place, copySelected(text) ? `${plural(rows.length, "row")} copied` : "the browser does not allow copying");
  }
}

function copySelected(text) {
  const area = element("textarea", { "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  return isCopied;
}

/** Ask for rows of the open node; the server forgets it after some seconds. */
async function watch() {
  const name = model.open,
    { where } = panel;
  if (!name || !model.token || !model.canWatch || panel.isRefused || model.link !== "live") return;
  try {
    const { node = name } = await send("/api/watch", { node: name, where, begins: panel.looked === undefined });
    if (model.open === name && panel.where === where) Object.assign(panel, { sampled: node, wish: wishOf(node, where) });
  } catch (error) {
    if (error.status === 404) model.canWatch = false;
    else if (model.open === name && panel.where === where && error.status) Object.assign(panel, { isRefused: true, message: error.message });
  }
  changed("panel");
}

// ---- pictures with places

/** Let a pointer or the arrow keys choose one of the places of a picture; `pick` gets -1 when none is chosen. The readout is spoken only
 * while the picture has the focus, as it also changes with time. */
function choosable(picture, readout, countPlaces, pick) {
  let chosen = -1;
  const choose = (place) => {
    chosen = Math.max(-1, Math.min(countPlaces() - 1, place));
    pick(chosen);
  };
  const keys = {
    ArrowLeft: () => (chosen < 0 ? countPlaces() : chosen) - 1,
    ArrowRight: () => chosen + 1,
    Home: () => 0,
    End: () => countPlaces() - 1,
  };
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    choose(Math.floor(((event.clientX - box.left) / box.width) * countPlaces()));
  });
  picture.addEventListener("pointerleave", () => choose(-1));
  picture.addEventListener("focus", () => {
    readout.setAttribute("aria-live", "polite");
    if (chosen < 0) choose(countPlaces() - 1);
  });
  picture.addEventListener("blur", () => {
    readout.removeAttribute("aria-live");
    choose(-1);
  });
  picture.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    choose(Math.max(0, keys[event.key]()));
  });
}

const PLOT = { width: 600, height: 100 };

function plot(label, extra = "") {
  return shape("svg", {
    class: `plot ${extra}`,
    viewBox: `0 0 ${PLOT.width} ${PLOT.height}`,
    preserveAspectRatio: "none",
    role: "img",
    tabindex: "0",
    "aria-label": label,
  });
}

// ---- epochs

const QUERIES_SHOWN = 12;
const timelines = new Map();
let areAllShown = false;

/** The parts of an epoch's time. Work that is in no report is the rest. */
function phasesOf(record) {
  const { planned, finished } = record,
    staged = [...record.staged.values()].sort((a, b) => a.at - b.at),
    phases = [];
  if (planned && staged.length)
    phases.push({ kind: "before", name: "before staging", seconds: Math.max(0, staged[0].at - staged[0].seconds - planned.at) });
  staged.forEach((fact, index) =>
    phases.push({ kind: index % 2 ? "stage-2" : "stage", name: `stage ${fact.sink}`, seconds: fact.seconds }),
  );
  const committed = [...record.committed.values()];
  if (committed.length) phases.push({ kind: "commit", name: "commit", seconds: committed.reduce((sum, fact) => sum + fact.seconds, 0) });
  const known = phases.reduce((sum, phase) => sum + phase.seconds, 0);
  phases.push({ kind: "rest", name: phases.length ? "rest" : "phases not known", seconds: Math.max(0, finished.seconds - known) });
  return phases;
}

function drawEpochs() {
  if (!model.topology) return;
  const names = model.topology.queries.map((query) => query.name).filter((name) => model.epochs.has(name));
  const shown = areAllShown ? names : names.slice(0, QUERIES_SHOWN);
  if (shown.length) show(byId("epochs"), shown.join("\n"), () => shown.map((name) => timelineOf(name).figure));
  byId("all-epochs").hidden = names.length === shown.length;
  setText(byId("all-epochs"), `Show all ${plural(names.length, "query").replace("querys", "queries")}`);
  for (const name of shown) drawTimeline(timelineOf(name));
}

function timelineOf(name) {
  if (!timelines.has(name)) {
    const picture = plot(`Durations of the epochs of query ${name}; the arrow keys choose one`);
    const made = {
      name,
      picture,
      highest: element("span", { class: "muted number" }),
      readout: element("p", { class: "readout number" }),
      chosen: -1,
    };
    made.figure = element("figure", {}, element("figcaption", {}, element("h3", {}, name), made.highest), picture, made.readout);
    choosable(
      picture,
      made.readout,
      () => EPOCHS_SHOWN,
      (place) => {
        made.chosen = place;
        drawTimeline(made);
      },
    );
    timelines.set(name, made);
  }
  return timelines.get(name);
}

function drawTimeline(made) {
  const records = recordsOf(made.name).filter((record) => record.finished),
    running = runningEpoch(made.name);
  const bars = [...records.map((record) => ({ record, phases: phasesOf(record) })), ...(running ? [{ running }] : [])].slice(-EPOCHS_SHOWN);
  for (const bar of bars) bar.seconds = bar.running?.seconds ?? bar.phases.reduce((sum, phase) => sum + phase.seconds, 0);
  const lengths = bars.map((bar) => bar.seconds).sort((a, b) => a - b),
    highest = Math.max(0.001, ...lengths);
  const limit = lengths.length < 5 ? highest : Math.min(highest, 5 * lengths[lengths.length >> 1]); // a long epoch is cut, or the others were flat
  const first = EPOCHS_SHOWN - bars.length,
    step = PLOT.width / EPOCHS_SHOWN,
    chosen = bars[made.chosen - first];
  const children = bars.flatMap((bar, index) => drawBar(bar, (first + index) * step, step, limit));
  if (chosen) children.push(shape("rect", { class: "chosen", x: made.chosen * step, y: 1, width: step, height: PLOT.height - 2 }));
  made.picture.replaceChildren(...children);
  setText(made.highest, `highest ${spanText(highest)}${limit < highest ? `, drawn up to ${spanText(limit)}` : ""}`);
  const last = records.at(-1);
  setText(made.readout, chosen ? barText(chosen) : last ? barText({ record: last, phases: phasesOf(last) }) : "");
}

function drawBar(bar, left, step, limit) {
  const box = { x: left + step * 0.08, width: step * 0.84 },
    scale = (0.94 * PLOT.height) / Math.max(limit, bar.seconds);
  if (bar.running) return [shape("rect", { class: "running", ...box, y: PLOT.height - bar.seconds * scale, height: bar.seconds * scale })];
  let top = PLOT.height;
  const parts = bar.phases.map((phase) => {
    const height = phase.seconds * scale;
    top -= height;
    return shape("rect", { class: `phase ${phase.kind}`, ...box, y: top, height: Math.max(0, height - (height > 4 ? 0.8 : 0)) });
  });
  return bar.seconds > limit ? [...parts, shape("path", { class: "cut", d: `M${left} 5L${left + step / 2} 0L${left + step} 5z` })] : parts;
}

function phaseTexts(phases) {
  const stages = phases.filter((phase) => phase.kind.startsWith("stage")),
    text = (phase) => `${phase.name} ${spanText(phase.seconds)}`;
  if (stages.length <= 4) return phases.map(text).join(", ");
  const longest = stages.reduce((best, phase) => (phase.seconds > best.seconds ? phase : best));
  const all = `stage ${stages.length} sinks ${spanText(stages.reduce((sum, phase) => sum + phase.seconds, 0))}, the longest of them ${text(longest)}`;
  return phases.flatMap((phase) => (phase === stages[0] ? [all] : stages.includes(phase) ? [] : [text(phase)])).join(", ");
}

function barText(bar) {
  if (bar.running) return `epoch ${bar.running.number}: running for ${spanText(bar.running.seconds)}`;
  const { finished, number } = bar.record,
    total = (counts) => Object.values(counts ?? {}).reduce((sum, count) => sum + count, 0);
  const counts = [
    Object.keys(finished.rows_out ?? {}).length ? `${plural(total(finished.rows_out), "row")} written` : "",
    ...[
      ["rejected", "reject"],
      ["late", "late row"],
      ["lost", "lost row"],
    ].map(([key, word]) => (total(finished[key]) ? plural(total(finished[key]), word) : "")),
    finished.skipped?.length ? `held already by ${finished.skipped.join(", ")}` : "",
  ].filter(Boolean);
  return `epoch ${number} at ${timeText(finished.at)}: ${spanText(finished.seconds)} (${phaseTexts(bar.phases)})${counts.length ? `; ${counts.join(", ")}` : ""}`;
}

// ---- charts

const SERIES_SHOWN = 6;
const charts = new Map();
const CHARTS = [
  { name: "Rows per second", text: rateText, series: rowSeries },
  { name: "Epoch duration", text: spanText, series: durationSeries },
  { name: "Watermark lag", text: spanText, series: (found) => gaugeSeries(found, "queries", "watermark_lag") },
  { name: "State", text: bytesText, series: (found) => gaugeSeries(found, "nodes", "state_bytes") },
];

/**
 * The measures of the last hour in order, in pieces: one ends where a run ends, or where measures are missing. The first piece of a run
 * begins with the run, as all its counts do.
 */
function pieces() {
  const now = clock.now(),
    found = [];
  let last;
  for (const measure of [...model.measures.values()].filter((each) => each.at > now - HOUR).sort((a, b) => a.at - b.at)) {
    const isNewRun = !last || measure.seconds < last.seconds;
    const begun = measure.at - measure.seconds;
    if (isNewRun || measure.at - last.at > 90)
      found.push(isNewRun && begun > now - HOUR ? [{ at: begun, seconds: 0, nodes: {}, queries: {}, isBegin: true }] : []);
    found.at(-1).push(measure);
    last = measure;
  }
  return found;
}

/** Points of a line from each piece; `pointsOf` gets the measures of a piece, thinned. */
function lineOf(found, step, pointsOf) {
  return found.map((measures) => pointsOf(thinned(measures, step))).filter((points) => points.length);
}

/** Measures at some distance from each other, and the newest one. */
function thinned(measures, step) {
  let last = -Infinity;
  return measures.filter((measure) => {
    const isKept = measure.at - last >= step * 0.9 || measure === measures.at(-1);
    if (isKept) last = measure.at;
    return isKept;
  });
}

/** The change of one count per unit of another between two measures. A count that a run has not begun yet is 0. */
function changes(measures, above, below) {
  const countsOf = (count) => {
    let hasBegun = !measures[0]?.isBegin;
    return measures.map((measure) => {
      const found = count(measure);
      hasBegun ||= !Number.isNaN(found);
      return hasBegun ? found : 0;
    });
  };
  const [counts, spans] = [countsOf(above), countsOf(below)];
  return measures.slice(1).flatMap((measure, index) => {
    const [more, span] = [counts[index + 1] - counts[index], spans[index + 1] - spans[index]];
    return span > 0 && more >= 0 ? [{ at: measure.at, value: more / span }] : [];
  });
}

function rowSeries({ found, step }) {
  const kinds = new Map(model.topology.nodes.map((node) => [node.name, node.kind]));
  const sum = (kind, field) => (measure) => {
    const counts = Object.entries(measure.nodes)
      .filter(([name, facts]) => kinds.get(name) === kind && facts[field] !== undefined)
      .map(([, facts]) => facts[field]);
    return counts.length ? counts.reduce((total, count) => total + count, 0) : NaN;
  };
  return [
    ["read by sources", sum("source", "rows_out")],
    ["written by sinks", sum("sink", "rows_in")],
  ].map(([name, value]) => ({
    name,
    lines: lineOf(found, Math.max(step, 10), (measures) => changes(measures, value, (measure) => measure.at)),
  }));
}

function durationSeries({ found, step }) {
  return namesIn(found, "queries").map((name) => ({
    name,
    lines: lineOf(found, step, (measures) =>
      changes(
        measures.filter((measure) => measure.isBegin || measure.queries[name]),
        (measure) => measure.queries[name]?.seconds ?? NaN,
        (measure) => measure.queries[name]?.epochs ?? NaN,
      ),
    ),
  }));
}

function gaugeSeries({ found, step }, group, field) {
  return namesIn(found, group).map((name) => ({
    name,
    lines: lineOf(found, step, (measures) =>
      measures.flatMap((measure) => {
        const value = measure[group][name]?.[field];
        return value === undefined ? [] : [{ at: measure.at, value }];
      }),
    ),
  }));
}

function namesIn(found, group) {
  return [...new Set(found.flat().flatMap((measure) => Object.keys(measure[group])))];
}

function drawCharts() {
  if (!model.topology) return;
  const found = pieces(),
    now = clock.now();
  const start = Math.max(now - HOUR, Math.min(now - 120, found[0]?.[0].at ?? now));
  const hour = { found, step: Math.max(5, (now - start) / 120) };
  const shown = CHARTS.map((chart) => ({ chart, series: chart.series(hour).filter((series) => series.lines.length) })).filter(
    ({ series }) => series.length,
  );
  if (shown.length)
    show(byId("charts"), shown.map(({ chart }) => chart.name).join(), () => shown.map(({ chart }) => chartOf(chart).figure));
  for (const { chart, series } of shown) drawChart(chartOf(chart), series, start, now);
}

function chartOf(chart) {
  if (!charts.has(chart.name)) {
    const picture = plot(chart.name, "high"),
      made = {
        chart,
        picture,
        chosen: -1,
        axis: element("div", { class: "axis number" }),
        highest: element("span", { class: "muted number" }),
        readout: element("p", { class: "readout number" }),
      };
    made.figure = element(
      "figure",
      {},
      element("figcaption", {}, element("h3", {}, chart.name), made.highest),
      picture,
      made.axis,
      made.readout,
    );
    choosable(
      picture,
      made.readout,
      () => 120,
      (place) => {
        made.chosen = place;
        if (made.last) drawChart(made, ...made.last);
      },
    );
    charts.set(chart.name, made);
  }
  return charts.get(chart.name);
}

function drawChart(made, all, start, end) {
  made.last = [all, start, end];
  const latest = (series) => series.lines.at(-1).at(-1).value;
  const series = all.length > SERIES_SHOWN ? [...all].sort((a, b) => latest(b) - latest(a)).slice(0, SERIES_SHOWN) : all;
  const values = series.flatMap((each) => each.lines.flat().map((point) => point.value));
  const [low, high] = [Math.min(0, ...values), Math.max(...values)],
    range = high - low || 1;
  const x = (at) => ((at - start) / (end - start)) * PLOT.width,
    y = (value) => PLOT.height - 3 - ((value - low) / range) * (PLOT.height - 8);
  const children = [
    shape("path", {
      class: "grid",
      d: `M0 ${y(high)}H${PLOT.width}M0 ${y((high + low) / 2)}H${PLOT.width}${low < 0 ? `M0 ${y(0)}H${PLOT.width}` : ""}`,
    }),
  ];
  series.forEach((each, index) =>
    children.push(
      shape("path", {
        class: `series ${seriesClass(index)} dash-${index}`,
        d: each.lines.map((points) => linePath(points, x, y)).join(""),
      }),
    ),
  );
  const at = made.chosen < 0 ? undefined : start + ((made.chosen + 0.5) / 120) * (end - start);
  if (at !== undefined) children.push(shape("path", { class: "chosen", d: `M${x(at)} 0V${PLOT.height}` }));
  made.picture.replaceChildren(...children);
  made.picture.setAttribute(
    "aria-label",
    `${made.chart.name}: ${series.map((each) => `${each.name} ${made.chart.text(latest(each))}`).join(", ")}; the arrow keys choose a time`,
  );
  setText(made.highest, `highest ${made.chart.text(high)}`);
  show(made.axis, `${timeText(start)} ${timeText(end)}`, () => [element("span", {}, timeText(start)), element("span", {}, timeText(end))]);
  drawReadout(made, series, at, end, all.length - series.length);
}

function linePath(points, x, y) {
  const path = points.map((point, index) => `${index ? "L" : "M"}${x(point.at).toFixed(1)} ${y(point.value).toFixed(1)}`).join("");
  return points.length === 1 ? `${path}h0.1` : path;
}

/** The values at a time; without one, the newest. */
function drawReadout(made, series, at, now, left) {
  const wanted = at ?? now;
  const texts = series.map((each) => {
    const near = each.lines.flat().reduce((best, point) => (Math.abs(point.at - wanted) < Math.abs(best.at - wanted) ? point : best));
    return `${each.name}: ${Math.abs(near.at - wanted) > 90 ? "no value" : made.chart.text(near.value)}`;
  });
  const label = (text, index) =>
    element(
      "span",
      { class: "value" },
      element("span", { class: `swatch ${seriesClass(index)} dash-${index}`, "aria-hidden": "true" }),
      text,
    );
  const parts = [at === undefined ? "" : `${timeText(at)} `, ...texts.map(label), left ? `and ${left} more that are smaller` : ""];
  show(made.readout, `${parts[0]}${texts.join("\n")}${left}`, () => parts);
}

// ---- log

const LOG_STEP = 100;
const FINAL_STATES = new Set(["done", "stopped", "failed"]);
let logLimit = LOG_STEP;
const LEVELS = {
  failed: ["failed", "bad", "failed"],
  restarting: ["restart", "bad", "restarting"],
  run_started: ["run", "muted"],
  run_changed: ["run", "muted"],
  lost: ["warning", "caution", "caution"],
};

function levelOf(entry) {
  return LEVELS[entry.event] ?? (entry.warning ? ["warning", "caution", "caution"] : ["note", "muted"]);
}

function textOf(entry) {
  if (entry.event === "run_started") return `run ${entry.run} begins, process ${entry.process}${hadDied(entry) ? "; the run before it had died" : ""}`;
  if (entry.event === "run_changed") return entry.state === "failed" ? "the run has failed" : `the run is ${entry.state}`;
  if (entry.event === "restarting")
    return `${entry.query ? `query ${entry.query}: ` : ""}${entry.message}; restart ${entry.attempt} in ${spanText(entry.pause)}`;
  if (entry.event === "failed")
    return [`${entry.code}${entry.node ? ` (${entry.node})` : ""}: ${entry.message}`, entry.detail, entry.help].filter(Boolean).join("\n");
  return entry.message;
}

/** Whether the run before a new one has ended without saying so. */
function hadDied(start) {
  const before = model.log.findLast((entry) => entry.at < start.at && (entry.event === "run_changed" || entry.event === "run_started"));
  return before !== undefined && !FINAL_STATES.has(before.state);
}

function drawLog() {
  const wanted = byId("log-filter").value.trim().toLowerCase();
  const found = model.log.filter((entry) => !wanted || `${levelOf(entry)[0]} ${textOf(entry)}`.toLowerCase().includes(wanted)).reverse();
  show(byId("log"), `${model.logVersion} ${wanted} ${logLimit}`, () => {
    const entries = found.slice(0, logLimit).map(logEntry);
    return entries.length ? entries : [element("li", { class: "muted" }, wanted ? "nothing contains this" : "nothing yet")];
  });
  byId("more-log").hidden = found.length <= logLimit;
}

function logEntry(entry) {
  const [word, tone, kind] = levelOf(entry);
  return element(
    "li",
    {},
    element("time", { class: "muted number", datetime: new Date(entry.at * 1000).toISOString() }, timeText(entry.at)),
    element("span", { class: `level ${tone}` }, kind ? mark(kind) : undefined, word),
    element("span", { class: "text" }, textOf(entry)),
  );
}

// ---- the checkpoint, and the log of Spark: read while somebody looks

async function drawKept() {
  if (!byId("kept").open) return;
  try {
    const kept = await read("/api/checkpoint");
    show(byId("kept-shown"), JSON.stringify(kept), () => keptTables(kept));
  } catch (error) {
    if (error.status) setText(byId("kept-shown"), error.message);
  }
}

function keptTables({ url, queries }) {
  const table = (label, head, rows) =>
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      element(
        "table",
        {},
        element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, text)))),
        element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((text) => element("td", {}, String(text)))))),
      ),
    );
  const epoch = (number) => (number < 0 ? "none" : number);
  const progress = queries.map((query) => [query.name, epoch(query.planned), epoch(query.committed), query.finished ? query.finished.slice(0, 19) : "–"]);
  const ledgers = queries.flatMap((query) =>
    query.sinks.map((sink) => [sink.name, nodeOf(sink.name)?.target || "–", sink.first ?? "–", sink.epoch ?? "none", sink.digest.slice(0, 12) || "–"]),
  );
  return [
    element("p", {}, element("code", {}, url)),
    table("Queries", ["query", "last planned epoch", "last committed epoch", "read to the end"], progress),
    element("h3", {}, "Ledgers"),
    element("p", { class: "muted" }, "The epochs that each target must hold: its own ledger has the last one with this digest, or a later one."),
    table("Ledgers", ["sink", "target", "first epoch", "last epoch", "digest"], ledgers),
  ];
}

async function drawSparkLog() {
  if (!byId("spark-log").open) return;
  const place = byId("spark-lines");
  try {
    const { path, lines } = await read("/api/log");
    show(place, `${path}\n${lines.join("\n")}`, () => [
      element("p", { class: "muted" }, path || "not in the folder of this checkpoint: pipelines that share one Spark have their log with the first of them"),
      lines.length
        ? element("pre", { tabindex: "0", role: "region", "aria-label": "Log of Spark and Java" }, lines.join("\n"))
        : element("p", { class: "muted" }, "no line"),
    ]);
  } catch (error) {
    if (error.status) setText(place, error.message);
  }
}

// ---- start

function listen() {
  listenToOrders();
  listenToTopology();
  byId("skip").addEventListener("click", () => byId("epochs-title").focus());
  byId("all-epochs").addEventListener("click", () => {
    areAllShown = true;
    drawEpochs();
  });
  byId("log-filter").addEventListener("input", drawLog);
  byId("kept").addEventListener("toggle", drawKept);
  byId("spark-log").addEventListener("toggle", drawSparkLog);
  byId("more-log").addEventListener("click", () => {
    logLimit += LOG_STEP;
    drawLog();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && model.open && !document.querySelector("dialog[open]")) closePanel();
  });
  addEventListener("resize", coverPage);
  addEventListener("hashchange", takeToken);
}

takeToken();
listen();
changed("header");
setInterval(everySecond, 1000);
setInterval(watch, 5000);
setInterval(() => hasEnded() || (drawKept(), drawSparkLog()), 5000);
stayConnected();
