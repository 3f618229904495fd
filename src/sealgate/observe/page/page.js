// The live page: it keeps five minutes of points and shows the newest picture, which `stream.js` brings.
import { clockChart, latencyChart, limitChart } from "./charts.js";
import { chosen, glance, title } from "./exchanges.js";
import { doubts, notices, streams, wrong } from "./lists.js";
import { el, keyHead, keyPools, keySide, tile } from "./parts.js";
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
  const parts = { head: el("h2"), legend: el("div", "legend"), chart: el("div", "chart"), over: el("div", "over"), side: el("div", "side"), pools: el("div", "pools") };
  const left = el("div", "", parts.legend, parts.chart);
  const box = el("section", "card key", parts.head, left, parts.side, parts.pools);
  byId("keys").append(box);
  cards.set(id, { ...parts, box, show: limitChart(parts.chart, alias) });
  parts.chart.append(parts.over);
  return cards.get(id);
}

/** What the lines are: without a known limit there is nothing to be used of it, but what is sent can be seen. */
const legend = (isLimited, hasPools) => [
  ...(isLimited ? [el("i", "line used"), hasPools ? "used of the fullest pool, in % " : "used ", el("i", "line limit"), "limit "] : [el("i", "line used"), "sent per second "]),
  ...[el("i", "box pause"), "paused ", el("span", "mark", "▼ "), "429"],
];

function draw() {
  byId("notices").replaceChildren(...notices(view.now, view.stream));
  document.body.classList.toggle("stale", view.stream !== "live");
  chip();
  if (view.now !== null && !view.isFrozen) drawPicture(view);
}

function drawPicture({ now, points }) {
  byId("where").textContent = now.words.where;
  drawExchange(now, chosen(now), points);
  byId("streams-card").hidden = now.streams.length === 0;
  byId("streams").replaceChildren(...streams(now.streams, now.words.streams, now.exchanges.length > 1));
  byId("errors").replaceChildren(...wrong(now.words));
  byId("doubts-card").hidden = now.journal.in_doubt === 0;
  byId("doubts").replaceChildren(...doubts(now.journal, now.words, now.exchanges.length > 1));
  byId("foot").textContent = `${now.words.foot} Charts show the last five minutes.`;
}

/** Draw what is about one exchange; of several, all of them at a glance before it. */
function drawExchange(now, one, allPoints) {
  const isOneOfMany = now.exchanges.length > 1;
  byId("exchanges").hidden = byId("chosen").hidden = !isOneOfMany;
  if (isOneOfMany) glance(byId("exchanges"), now);
  byId("chosen").replaceChildren(...title(one));
  const words = isOneOfMany ? now.words.exchanges[now.exchanges.indexOf(one)] : now.words;
  byId("tiles").replaceChildren(...words.tiles.map(tile));
  const points = allPoints.map((point) => ({ ...NOTHING, t: point.t, ...point.exchanges[one.name] }));
  for (const { box } of cards.values()) box.hidden = true;
  now.keys.forEach((key, at) => key.exchange === one.name && drawKey(key, now.words.keys[at], points));
  const { open_pools: openPools, open_name: name } = now.words.exchanges[now.exchanges.indexOf(one)];
  byId("open").hidden = !openPools.length;
  byId("open").replaceChildren(el("h2", "", name), ...keyPools({ pools: openPools }));
  latency(points);
  clock(points);
}

function drawKey(key, words, points) {
  const { box, head, legend: lines, over, side, pools, show } = card(key);
  box.hidden = false;
  const isLimited = key.limits.length > 0;
  head.replaceChildren(...keyHead(key.alias, words));
  side.replaceChildren(...keySide(key));
  pools.replaceChildren(...keyPools(words));
  lines.replaceChildren(...legend(isLimited, key.has_pools));
  over.textContent = isLimited || points.some((point) => point.keys[key.alias]?.[3]) ? "" : IDLE;
  show(points, isLimited);
}

function chip() {
  const { now, stream, isFrozen } = view;
  const isLive = stream === "live" && now !== null;
  byId("state").className = `chip ${isLive ? now.words.mood : "warn"}`;
  byId("state").textContent = isLive ? (isFrozen ? "frozen" : now.state) : stream;
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

inspect(() => view.isFrozen, () => (view.now?.exchanges.length ?? 1) > 1);

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
