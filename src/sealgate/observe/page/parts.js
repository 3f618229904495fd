// The parts of the page that are texts and tables. Text is set as text: nothing that a bot or the exchange
// said can become markup.
import { number, percent } from "./words.js";

// Columns.
export const NUMBERS = ["sent/s", "waits", "status", "wait", "attempts", "messages", "429s today", "waiting", "streams", "in doubt"];

/** Make an element: `el("td", "number", "3")`, `el("tr", "", cell, cell)`. */
export function el(tag, className = "", ...content) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...content);
  return made;
}

export function table(columns, rows) {
  const head = columns.map((name) => el("th", NUMBERS.includes(name) ? "number" : "", name));
  for (const cell of head) cell.scope = "col";
  return el("table", "", el("thead", "", el("tr", "", ...head)), el("tbody", "", ...rows));
}

const shown = new WeakMap();
// Where somebody has selected a text. To ask for the selection each time would lay the page out each time.
let selectedIn = null;
document.addEventListener("selectionchange", () => {
  const selection = getSelection();
  selectedIn = selection.isCollapsed ? null : selection.anchorNode;
});

/** Show what `make` makes of some texts, unless nothing changed, or somebody has selected a part or focused a link. */
export function show(box, texts, make) {
  const key = JSON.stringify(texts);
  if (shown.get(box) === key) return;
  if (box.contains(document.activeElement) || (selectedIn !== null && box.contains(selectedIn))) return;
  shown.set(box, key);
  box.replaceChildren(...make());
}

/** Set a text only where it changed: a screen reader may say it again otherwise. */
export function say(box, text) {
  if (box.textContent !== text) box.textContent = text;
}

/** What stands in backquotes becomes code. */
export const marked = (text) => text.split("`").map((part, at) => (at % 2 ? el("code", "", part) : part));

/** A cell that says what it is where the table has no head: on a phone. */
export function labelled(label, text, className = "") {
  const cell = el("td", className, text);
  cell.dataset.label = label;
  return cell;
}

export function tile({ name, value, unit, more, mood }) {
  const figure = el("b", "", value, ...(unit ? [el("small", "", ` ${unit}`)] : []));
  return el("div", `tile ${mood}`, el("span", "name", name), figure, el("span", "more", more));
}

export function keyHead(alias, { state, limit, about }) {
  return [el("span", "", `Key ${alias}`), el("span", "limit-words", limit), state ? el("span", "chip warn", state) : "", el("span", "dim", about)];
}

/** Each pool of a key: name and state, how full its fullest limit is, what is known of it; and what is not shown. */
export function keyPools({ pools, more }) {
  if (!pools.length) return [];
  return [el("ul", "", ...pools.map(pool)), ...(more ? [el("p", "empty", more)] : [])];
}

function pool({ name, state, mood, ratio, text, about }) {
  const head = el("span", "name", el("b", "", name), state ? el("span", `chip ${mood}`, state) : "");
  return el("li", "", head, used(ratio, text, mood), el("span", "dim", about));
}

export function keySide(key) {
  const lanes = ["cancel", "order", "read"].map((lane) => el("li", "", el("b", "", number(key.waiting[lane])), `${lane}s wait`));
  return [el("ul", "lanes", ...lanes), key.bots.length ? bots(key.bots) : el("p", "empty", "No bot has used this key in the last ten seconds.")];
}

function bots(all) {
  const rows = all.map((bot) =>
    el("tr", "", el("td", "", bot.name), el("td", "number", number(bot.per_s, 1)), share(bot), el("td", "number", number(bot.waiting))),
  );
  return table(["bot", "sent/s", "traffic (mark: fair share)", "waits"], rows);
}

/** How full the fullest limit of an exchange is, as a bar and in words; null where no limit is known. */
export function used(ratio, words, mood) {
  const text = el("span", "", words);
  return ratio === null ? text : el("div", `used ${mood}`, bar(Math.min(ratio, 1)), text);
}

/** A bar of a part of one. */
function bar(part) {
  const made = svg("svg", { viewBox: "0 0 100 14", preserveAspectRatio: "none", "aria-hidden": "true" });
  made.append(
    svg("rect", { class: "ground", y: 3, width: 100, height: 8 }),
    svg("rect", { class: "part", y: 3, width: part * 100, height: 8 }),
  );
  return made;
}

/** A bar for what a bot spends, and a stroke where its weight would have it. */
function share(bot) {
  const cell = el("td", "share");
  const made = bar(bot.share);
  made.append(svg("line", { class: "due", x1: bot.due * 100, x2: bot.due * 100, y1: 0, y2: 14 }));
  cell.ariaLabel = cell.title = `${percent(bot.share)} of what was sent; its weight gives it ${percent(bot.due)}`;
  cell.append(made);
  return cell;
}

function svg(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
