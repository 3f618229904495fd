// The three charts: use of a limit, latency, clock. Each is made once and gets new columns with every picture.
/* global uPlot */
import { bands } from "./bands.js";
import { el, say } from "./parts.js";
import { clock, ms, number, timeOf } from "./words.js";

const SPAN_S = 300;
const LEAST_S = 60;
const FONT = "12px system-ui, sans-serif";

const colours = new Map();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => colours.clear());

/** A colour of page.css by its name; to ask for styles is dear, so each is remembered. */
export function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return colours.get(name);
}

const whole = (value) => (Number.isInteger(value) ? number(value) : "");

const column = (points, pick) => points.map((point) => pick(point) ?? null);

export function limitChart(box, alias) {
  let newest = [];
  const top = (plot, low, high) => [0, Math.max(1, (high ?? 0) * 1.15)];
  const lines = [
    { stroke: () => colour("--used"), fill: () => colour("--used-fill"), width: 2, points: { show: false } },
    { stroke: () => colour("--limit"), width: 1.5, dash: [7, 5], points: { show: false } },
  ];
  const tell = (value) => number(value, 1);
  const chart = make(box, lines, { range: top, label: whole, tell, hooks: bands(() => newest, alias, colour), names: ["used", "limit"] });
  const show = (points, isLimited) => {
    newest = points;
    const line = (index, absent) => column(points, (p) => p.keys[alias]?.[index] ?? absent);
    chart(isLimited ? [line(0), line(1)] : [line(3, 0), line(1)], points);
  };
  return show;
}

export function latencyChart(box) {
  const line = (name, alpha = 1) => ({ stroke: () => colour(name), width: 2, alpha, points: { show: false } });
  const lines = [line("--third"), line("--third", 0.5), line("--second")];
  const range = (plot, low, high) => (low > 0 ? decades(low, high) : [0.1, 1000]);
  const chart = make(box, lines, { range, label: ms, isLog: true, names: ["upstream p99", "p50", "gateway p99"] });
  return (points) =>
    chart(["upstream", "usual", "added"].map((name) => column(points, (p) => p[name] || null)), points);
}

/** Whole powers of ten around what there is, at least two of them. */
const decades = (low, high) => {
  const from = Math.floor(Math.log10(low));
  return [10 ** from, 10 ** Math.max(from + 2, Math.ceil(Math.log10(high)))];
};

const tens = (plot, axis, low, high) => {
  const found = [];
  for (let at = low; at <= high * 1.001; at *= 10) found.push(at);
  return found;
};

export function clockChart(box) {
  const edge = { stroke: "transparent", points: { show: false } };
  const lines = [edge, edge, { stroke: () => colour("--second"), width: 2, points: { show: false } }];
  const range = (plot, low, high) => (low === null ? [-5, 5] : widened(low, high));
  const shaded = [{ series: [1, 2], fill: () => colour("--used-fill") }];
  const chart = make(box, lines, { range, label: ms, shaded, names: ["at most", "at least", "offset"] });
  const side = (p, sign) => (p.offset === null ? null : p.offset + sign * p.error);
  return (points) =>
    chart([column(points, (p) => side(p, 1)), column(points, (p) => side(p, -1)), column(points, (p) => p.offset)], points);
}

const widened = (low, high) => {
  const margin = Math.max(0.5, (high - low) * 0.25);
  return [low - margin, high + margin];
};

/** Make a chart in a box that it fills; return what gives it new columns. */
function make(box, lines, { range, label, names, tell = label, hooks = {}, isLog = false, shaded = [] }) {
  const readout = el("div", "readout");
  // What the lines are at the moment under the pointer.
  const setCursor = ({ cursor: { idx: at }, data: [times, ...columns] }) => {
    const values = columns.map((column, line) => (column[at] == null ? "" : `${names[line]} ${tell(column[at])}`));
    say(readout, at == null ? "" : [timeOf(times[at] * 1000), ...values.filter(Boolean)].join(" · "));
  };
  const axis = { stroke: () => colour("--dim"), font: FONT, grid: { stroke: () => colour("--grid"), width: 1 }, ticks: { show: false } };
  let last = Date.now() / 1000;
  let first = last;
  const options = {
    ...size(box),
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    padding: [8, 28, 0, 0],
    scales: {
      x: { time: true, range: () => [Math.max(last - SPAN_S, Math.min(first, last - LEAST_S)), last] },
      y: isLog ? { distr: 3, range } : { range },
    },
    axes: [
      { ...axis, values: (_, all) => all.map(clock), incrs: [30, 60, 120], space: 60, size: 26 },
      { ...axis, values: (_, all) => all.map((value) => (value === null ? "" : label(value))), size: 62, space: 34, ...(isLog && { splits: tens }) },
    ],
    series: [{}, ...lines],
    bands: shaded,
    hooks: Object.fromEntries(Object.entries({ ...hooks, setCursor }).map(([name, hook]) => [name, [hook]])),
  };
  const plot = new uPlot(options, [[], ...lines.map(() => [])], box);
  box.append(readout);
  new ResizeObserver(() => plot.setSize(size(box))).observe(box);
  return (columns, points) => {
    last = points.at(-1)?.t ?? last;
    first = points[0]?.t ?? last;
    plot.setData([column(points, (p) => p.t), ...columns]);
  };
}

const size = (box) => ({ width: Math.max(200, box.clientWidth), height: box.clientHeight });
