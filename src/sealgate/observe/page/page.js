// The live page: it keeps five minutes of points and shows the newest picture, which `stream.js` brings.
import { clockChart, latencyChart, limitChart } from "./charts.js";
import { chosen, glance, title } from "./exchanges.js";
import { doubts, lastOrders, notice, notices, streams, wrong } from "./lists.js";
import { el, keyHead, keyPools, keySide, say, show, tile } from "./parts.js";
import { inspect } from "./requests.js";
import { listen } from "./stream.js";

const MOST_POINTS = 600;
// A point of an exchange that was not there yet.
const NOTHING = { keys: {}, limited: [], added: null, upstream: null, usual: null, offset: null, error: null };
const IDLE = "Nothing was sent in the last five minutes.";
const byId = (id) => document.getElementById(id);

const view = { points: [], now: null, stream: "connecting", isFrozen: false };
// What a frozen page shows, as `view` was.
let frozen = null;
const cards = new Map();
const latency = latencyChart(byId("latency"));
const clock = clockChart(byId("clock"));

/** The card of a key, made once; a key may have the same name at two exchanges. */
function card({ exchange, alias }) {
  const id = `${exchange} ${alias}`;
  if (cards.has(id)) return cards.get(id);
  const parts = { head: el("h2"), legend: el("div", "legend"), chart: el("div", "chart"), over: el("div", "over"), side: el("div", "side"), pools: el("div", "pools"), evidence: el("p", "dim") };
  const why = el("details", "why", el("summary", "", "What is known of this limit"), parts.evidence);
  const left = el("div", "", parts.legend, parts.chart, why);
  const box = el("section", "card key", parts.head, left, parts.side, parts.pools);
  byId("keys").append(box);
  parts.chart.role = "img";
  cards.set(id, { ...parts, box, why, draw: limitChart(parts.chart, alias) });
  parts.chart.append(parts.over);
  return cards.get(id);
}

/** What the lines are: without a known limit there is nothing to be used of it, but what is sent can be seen. */
const legend = (isLimited, hasPools) => [
  ...(isLimited
    ? [el("span", "item", el("i", "line used"), hasPools ? "used of the fullest pool, in %" : "used"), " ", el("span", "item", el("i", "line limit"), "limit")]
    : [el("span", "item", el("i", "line used"), "sent per second")]),
  ...[" ", el("span", "item", el("i", "box pause"), "paused"), " ", el("span", "item", el("span", "mark", "▼ "), "429")],
];

function draw() {
  const texts = notices(view.now, view.stream);
  show(byId("notices"), texts, () => texts.map(notice));
  announce(texts);
  document.body.classList.toggle("stale", view.stream !== "live");
  chip();
  if (view.now !== null && !view.isFrozen) drawPicture(view);
}

const told = new Set();

/** Tell a screen reader of each new notice once, however its times go on. */
function announce(texts) {
  const news = texts.filter(({ text }) => !told.has(text.replace(/\d+/g, "")));
  told.clear();
  for (const { text } of texts) told.add(text.replace(/\d+/g, ""));
  if (!texts.length) say(byId("news"), "");
  if (news.length) say(byId("news"), news.map(({ text }) => text.replaceAll("`", "")).join(" "));
}

function drawPicture({ now, points }) {
  const { words, exchanges } = now;
  const isOneOfMany = exchanges.length > 1;
  say(byId("where"), words.where);
  drawExchange(now, chosen(now), points);
  byId("streams-card").hidden = now.streams.length === 0;
  show(byId("streams"), [now.streams, words.streams], () => streams(now.streams, words.streams, isOneOfMany));
  show(byId("errors"), [words.wrong, words.policies, words.nothing_wrong], () => wrong(words));
  byId("doubts-card").hidden = now.journal.in_doubt === 0;
  show(byId("doubts"), [words.doubts, words.orders], () => doubts(now.journal, words, isOneOfMany));
  say(byId("foot"), `${words.foot} Charts show the last five minutes.`);
}

/** Draw what is about one exchange; of several, all of them at a glance before it. */
function drawExchange(now, one, allPoints) {
  const isOneOfMany = now.exchanges.length > 1;
  byId("exchanges").hidden = byId("chosen").hidden = !isOneOfMany;
  if (isOneOfMany) glance(byId("exchanges"), now);
  show(byId("chosen"), [one.name, one.base_url, one.urls], () => title(one));
  const its = now.words.exchanges[now.exchanges.indexOf(one)];
  const { tiles } = isOneOfMany ? its : now.words;
  show(byId("tiles"), tiles, () => tiles.map(tile));
  byId("shared").hidden = !its.shared;
  say(byId("shared"), its.shared);
  const last = now.last_orders.map((order, at) => ({ ...order, words: now.words.last_orders[at] })).filter(({ exchange }) => exchange === one.name);
  byId("last-card").hidden = !last.length;
  lastOrders(byId("last"), last, choose);
  const points = allPoints.map((point) => ({ ...NOTHING, t: point.t, ...point.exchanges[one.name] }));
  for (const { box } of cards.values()) box.hidden = true;
  now.keys.forEach((key, at) => key.exchange === one.name && drawKey(key, now.words.keys[at], points));
  const { open_pools: openPools, open_name: name } = its;
  byId("open").hidden = !openPools.length;
  show(byId("open"), openPools, () => [el("h2", "", name), ...keyPools({ pools: openPools })]);
  latency(points);
  clock(points);
}

function drawKey(key, words, points) {
  const { box, head, legend: lines, chart, over, side, pools, why, evidence, draw: drawChart } = card(key);
  box.hidden = false;
  const isLimited = key.limits.length > 0;
  show(head, words, () => keyHead(key.alias, words));
  show(side, [key.waiting, key.bots], () => keySide(key));
  show(pools, words.pools, () => keyPools(words));
  show(lines, [isLimited, key.has_pools], () => legend(isLimited, key.has_pools));
  why.hidden = !words.evidence;
  say(evidence, words.evidence);
  say(over, isLimited || points.some((point) => point.keys[key.alias]?.[3]) ? "" : IDLE);
  chart.ariaLabel = `${words.name}: ${words.limit}`;
  drawChart(points, isLimited);
}

function chip() {
  const { now, stream, isFrozen } = view;
  const isLive = stream === "live" && now !== null;
  byId("state").className = `chip ${isLive ? now.words.mood : "warn"}`;
  say(byId("state"), isLive ? (isFrozen ? "frozen" : now.state) : stream);
  if (now === null) return;
  const one = chosen(now);
  const icon = !isLive || now.words.mood === "bad" ? "page/icon-bad.svg" : "page/icon.svg";
  if (byId("icon").getAttribute("href") !== icon) byId("icon").href = icon;
  document.title = isLive ? now.words.exchanges[now.exchanges.indexOf(one)].title : `${one.name}: ${stream} · Sealgate`;
}

byId("freeze").addEventListener("click", ({ currentTarget: button }) => {
  view.isFrozen = !view.isFrozen;
  frozen = { ...view };
  button.setAttribute("aria-pressed", String(view.isFrozen));
  button.textContent = view.isFrozen ? "Unfreeze" : "Freeze";
  draw();
});
addEventListener("hashchange", () => (view.isFrozen ? frozen.now && drawPicture(frozen) : draw()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

const choose = inspect(() => view.isFrozen, () => (view.now?.exchanges.length ?? 1) > 1);

listen("events", {
  onHistory: ({ points, now }) => {
    Object.assign(view, { points, now });
    draw();
  },
  onPicture: ({ point, now }) => {
    view.points = [...view.points.slice(1 - MOST_POINTS), point];
    view.now = now;
    draw();
  },
  onState: (stream) => {
    view.stream = stream;
    draw();
  },
});
