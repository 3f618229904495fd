// The live page: it keeps five minutes of points and shows the newest picture, which `stream.js` brings.
import { clockChart, latencyChart, limitChart } from "./charts.js";
import { doubts, notices, wrong } from "./lists.js";
import { el, keyHead, keySide, tile } from "./parts.js";
import { inspect } from "./requests.js";
import { listen } from "./stream.js";

const MOST_POINTS = 600;
const IDLE = "Nothing was sent in the last five minutes.";
const byId = (id) => document.getElementById(id);

const view = { points: [], now: null, stream: "connecting", isFrozen: false };
const cards = new Map();
const latency = latencyChart(byId("latency"));
const clock = clockChart(byId("clock"));

function card(alias) {
  if (cards.has(alias)) return cards.get(alias);
  const parts = { head: el("h2"), legend: el("div", "legend"), chart: el("div", "chart"), over: el("div", "over"), side: el("div", "side") };
  const left = el("div", "", parts.legend, parts.chart);
  byId("keys").append(el("section", "card key", parts.head, left, parts.side));
  cards.set(alias, { ...parts, show: limitChart(parts.chart, alias) });
  parts.chart.append(parts.over);
  return cards.get(alias);
}

/** What the lines are: without a known limit there is nothing to be used of it, but what is sent can be seen. */
const legend = (isLimited) => [
  ...(isLimited ? [el("i", "line used"), "used ", el("i", "line limit"), "limit "] : [el("i", "line used"), "sent per second "]),
  ...[el("i", "box pause"), "paused ", el("span", "mark", "▼ "), "429"],
];

function draw() {
  byId("notices").replaceChildren(...notices(view.now, view.stream));
  document.body.classList.toggle("stale", view.stream !== "live");
  chip();
  if (view.now === null || view.isFrozen) return;
  const { now, points } = view;
  byId("where").textContent = now.base_url;
  byId("tiles").replaceChildren(...now.words.tiles.map(tile));
  now.keys.forEach((key, at) => drawKey(key, now.words.keys[at], points));
  latency(points);
  clock(points);
  byId("errors").replaceChildren(...wrong(now.words));
  byId("doubts-card").hidden = now.journal.in_doubt === 0;
  byId("doubts").replaceChildren(...doubts(now.journal, now.words));
  byId("foot").textContent = `${now.words.foot} Charts show the last five minutes.`;
}

function drawKey(key, words, points) {
  const { head, legend: lines, over, side, show } = card(key.alias);
  const isLimited = key.limits.length > 0;
  head.replaceChildren(...keyHead(key.alias, words));
  side.replaceChildren(...keySide(key));
  lines.replaceChildren(...legend(isLimited));
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
  button.setAttribute("aria-pressed", String(view.isFrozen));
  button.textContent = view.isFrozen ? "Unfreeze" : "Freeze";
  draw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

inspect(() => view.isFrozen);

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
