// The parts of the page that are words and tables. Text is set as text: nothing that a bot or the exchange
// said can become markup.
import { countOf, ms, number, percent, seconds, signed, span } from "./words.js";

/** Make an element: `el("td", "number", "3")`, `el("tr", "", cell, cell)`. */
export function el(tag, className = "", ...content) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...content);
  return made;
}

function tile(name, value, more, mood = "") {
  return el("div", `tile ${mood}`, el("span", "name", name), el("b", "", value), el("span", "more", more));
}

const tightest = (key) => key.limits.reduce((one, other) => (one && one.used_ratio >= other.used_ratio ? one : other), null);

export function tiles(now) {
  const worst = now.keys.reduce((one, other) => ((tightest(one)?.used_ratio ?? -1) >= (tightest(other)?.used_ratio ?? -1) ? one : other));
  const paused = now.keys.filter((key) => key.pause_s > 0);
  const waiting = now.keys.reduce((sum, key) => sum + total(key.waiting), 0);
  return [
    limitTile(worst, now.keys.length > 1),
    paused.length
      ? tile("Paused", span(Math.ceil(Math.max(...paused.map((key) => key.pause_s)))), "left, after a 429", "warn")
      : nextTile(worst),
    tile("Waiting", number(waiting), `of ${countOf(now.inflight, "request", "requests")} under way`, waiting ? "warn" : ""),
    tile("Requests", perSecond(now.requests_per_s), `${number(now.requests)} in ${span(now.uptime_s)}`),
    clockTile(now.clock),
    tile("In doubt", number(now.journal.in_doubt), now.journal.in_doubt ? "look them up" : "no order", now.journal.in_doubt ? "bad" : ""),
  ];
}

const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

function limitTile(key, isOneOfMany) {
  const limit = tightest(key);
  if (!limit) return tile(isOneOfMany ? `Sent with ${key.alias}` : "Sent", perSecond(key.sent_per_s), "to the exchange");
  const name = isOneOfMany ? `Limit of ${key.alias}` : "Limit used";
  const mood = limit.used_ratio >= 0.95 ? "warn" : "";
  return tile(name, percent(limit.used_ratio), `${number(key.used)} of ${number(limit.n)} per ${seconds(limit.window_s)}`, mood);
}

function nextTile(key) {
  const { in_s: inS, words } = key.next_429;
  if (inS !== null) return tile("Next 429", `≈ ${span(inS)}`, "at this pace", "warn");
  if (key.spent_s === 0 && !tightest(key)) return tile("Next 429", "–", "no limit known yet");
  const [head, more = ""] = words.split(": ");
  return tile("Next 429", words.startsWith("held") ? "held off" : "none", more || head);
}

const perSecond = (rate) => el("span", "", number(rate, 1), el("small", "", " /s"));

function clockTile(clock) {
  if (clock.offset_s === null) return tile("Clock", "–", "not synced yet", "bad");
  return tile("Clock", signed(clock.offset_s * 1000), `± ${ms(clock.error_s * 1000)}, ${span(clock.age_s)} old`, clock.trouble ? "warn" : "");
}

export function keyHead(key) {
  const limit = tightest(key);
  const state = holding(key);
  const more = [limit?.words ?? "limit not known yet: it is learned from 429s"];
  if (key.at_a_time !== null) more.push(`at most ${key.at_a_time} at a time`);
  if (key.sharing && !key.sharing.degraded) more.push(key.sharing.replicas > 1 ? `shared by ${key.sharing.replicas} gateways` : "shared, by this gateway alone so far");
  if (limit?.is_foreign_use) more.push("someone else seems to use this key too");
  if (limit?.next_step) more.push(limit.next_step);
  return [el("span", "", `Key ${key.alias}`), state, el("span", "dim", more.join("; "))];
}

export function keySide(key) {
  const lanes = ["cancel", "order", "read"].map((lane) => el("li", "", el("b", "", number(key.waiting[lane])), `${lane}s wait`));
  return [el("ul", "lanes", ...lanes), key.bots.length ? bots(key.bots) : el("p", "empty", "No bot has used this key in the last ten seconds.")];
}

function holding(key) {
  if (key.pause_s > 0) return el("span", "chip warn", `paused, ${number(key.pause_s, 1)} s left`);
  return key.spent_s > 0 ? el("span", "chip warn", `the exchange says nothing is left for ${number(key.spent_s, 1)} s`) : "";
}

function bots(all) {
  const head = el("tr", "", el("th", "", "bot"), el("th", "number", "sent/s"), el("th", "", "share, | is due"), el("th", "number", "waits"));
  const rows = all.map((bot) =>
    el("tr", "", el("td", "", bot.name), el("td", "number", number(bot.per_s, 1)), share(bot), el("td", "number", number(bot.waiting))),
  );
  return el("table", "", el("thead", "", head), el("tbody", "", ...rows));
}

/** A bar for what a bot spends, and a stroke where its weight would have it. */
function share(bot) {
  const cell = el("td", "share");
  const bar = svg("svg", { viewBox: "0 0 100 14", preserveAspectRatio: "none", role: "img" });
  bar.append(
    svg("rect", { class: "ground", y: 3, width: 100, height: 8 }),
    svg("rect", { class: "part", y: 3, width: bot.share * 100, height: 8 }),
    svg("line", { class: "due", x1: bot.due * 100, x2: bot.due * 100, y1: 0, y2: 14 }),
  );
  bar.setAttribute("aria-label", `${percent(bot.share)}, due ${percent(bot.due)}`);
  cell.title = `${percent(bot.share)} of what was sent; its weight gives it ${percent(bot.due)}`;
  cell.append(bar);
  return cell;
}

function svg(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
