// Every exchange at a glance: a row each, which chooses the one that the page shows in full.
import { NUMBERS, el, labelled, say, show, table, used } from "./parts.js";

const COLUMNS = ["exchange", "state", "limit used", "waiting", "sent/s", "429s today", "clock", "streams", "in doubt"];
const TEXTS = ["waiting", "sent", "limited", "clock", "streams", "in_doubt"];
const rows = new Map();
const list = table(COLUMNS, []);

/** The exchange that is shown in full: the one that the address names, else the first. */
export const chosen = (now) => now.exchanges.find(({ name }) => `#${name}` === location.hash) ?? now.exchanges[0];

export function glance(box, now) {
  if (!box.contains(list)) box.append(list);
  const names = now.exchanges.map(({ name }) => name);
  for (const [name, row] of rows) if (!names.includes(name)) row.remove(), rows.delete(name);
  now.exchanges.forEach((one, at) => fill(rowOf(one), one, now.words.exchanges[at], one === chosen(now)));
}

/** A row stays the same element, so that the keyboard's focus stays on its link. */
function rowOf({ name, venue }) {
  if (rows.has(name)) return rows.get(name);
  const link = el("a", "", name);
  link.href = `#${name}`;
  const cells = COLUMNS.slice(1).map((column) => labelled(column, "", NUMBERS.includes(column) ? "number" : ""));
  const row = el("tr", "", el("td", "", link, ...(venue === name ? [] : [el("div", "dim", venue)])), ...cells);
  row.addEventListener("click", () => (location.hash = name));
  list.tBodies[0].append(row);
  rows.set(name, row);
  return row;
}

function fill(row, one, words, isChosen) {
  row.classList.toggle("chosen", isChosen);
  row.querySelector("a").setAttribute("aria-current", String(isChosen));
  const [, state, limit, ...cells] = row.cells;
  show(state, [words.mood, one.state], () => [el("span", `chip ${words.mood}`, one.state)]);
  show(limit, [one.used_ratio, words.used, words.pause], () => [used(one.used_ratio, words.used, words.used_mood), el("div", "dim", words.pause)]);
  TEXTS.forEach((name, at) => {
    say(cells[at], words[name]);
    cells[at].classList.toggle("none", words[name] === "0");
  });
  cells.at(-1).classList.toggle("bad", one.in_doubt > 0);
}

/** What stands over the part of the page that is about one exchange. */
export const title = ({ name, base_url: url, urls }) => [
  name,
  el("span", "dim", url),
  el("span", "dim", urls.length ? `bots connect to ${urls.join(" or ")}` : ""),
];
