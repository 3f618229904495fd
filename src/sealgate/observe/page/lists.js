// What people must act on: notices, what went wrong, orders in doubt. The gateway has made the sentences.
import { el, labelled, marked, say, table } from "./parts.js";

const STREAM = {
  reconnecting: "The gateway does not answer: it was stopped, or the connection to it is broken. This is its last known state; the page reconnects by itself.",
  stalled: "No news for some seconds: the gateway is very busy, or this machine slept.",
};

export function notices(now, stream) {
  const own = STREAM[stream] ? [{ mood: "warn", text: STREAM[stream] }] : [];
  return [...own, ...(now?.words.notices ?? [])];
}

export const notice = ({ mood, text }) => el("p", `notice ${mood}`, ...marked(text));

export function wrong({ wrong: lines, policies, nothing_wrong: nothing }) {
  const byRule = policies.map((text) => el("p", "", text));
  if (!lines.length) return byRule.length ? byRule : [el("p", "empty", nothing)];
  return [table(["last", "what", "times", "cause and advice"], lines.map(line)), ...byRule];
}

function line({ kind, anchor, what, who, times, last, cause, text, is_over: isOver }) {
  const name = el(kind ? "a" : "span", "", el("code", "", what));
  if (kind) name.href = `errors#${anchor}`;
  const said = cause ? [el("span", "said", ...marked(cause)), " "] : [];
  const cells = [el("td", "dim", last), el("td", "", name, el("div", "dim", who)), el("td", "", times), el("td", "", ...said, ...marked(text))];
  return el("tr", isOver ? "over" : "", ...cells);
}

/** The open streams, the oldest first. */
export function streams(all, words, isOneOfMany) {
  if (!all.length) return [];
  const rows = all.map(({ bot, exchange, stream }, at) => {
    const { since, age, rate, login } = words[at];
    const name = el("td", "stream", el("code", "", stream));
    const opened = labelled("open for", age, "more");
    opened.title = `since ${since}`;
    return el("tr", "", el("td", "", bot), ...(isOneOfMany ? [el("td", "", exchange)] : []), name, opened, labelled("messages", rate, "number more"), el("td", "more", login));
  });
  return [table(["bot", ...(isOneOfMany ? ["exchange"] : []), "stream", "open for", "messages", "login"], rows)];
}

/** Orders in doubt, each with what to do about it. */
export function doubts({ doubts: all }, { doubts: text, orders }, isOneOfMany) {
  const rows = all.map((one, at) => {
    const { call, terms, sent, ago, fence, do: what } = orders[at];
    const who = el("td", "", one.bot, ...(isOneOfMany ? [el("div", "dim", one.exchange)] : []));
    const order = el("td", "order", el("b", "", terms), el("div", "", el("code", "", call)));
    const when = labelled("sent", sent, "when");
    when.append(el("div", "dim", ago));
    return el("tr", "", who, order, when, labelled("fence", fence, "when"), el("td", "do", ...marked(what)));
  });
  const columns = ["bot", "order", "sent", "fence", "what to do"];
  return [el("p", "", ...marked(text)), ...(rows.length ? [table(columns, rows)] : [])];
}

const byBot = new Map();
const latest = table(["bot", "last order", "when", "result"], []);

/** The last order of each bot, by name; a row stays the same element, and its bot chooses the latest requests. */
export function lastOrders(box, orders, choose) {
  if (!box.contains(latest)) box.append(latest);
  const rows = orders.map(({ bot, words }) => {
    const row = byBot.get(bot) ?? lastOrder(bot, choose);
    const [, call, when, how] = row.cells;
    say(call.firstChild, words.call);
    say(when, words.ago);
    say(how, words.how);
    how.className = words.mood;
    return row;
  });
  const body = latest.tBodies[0];
  if (rows.length !== body.rows.length || rows.some((row, at) => row !== body.rows[at])) order(body, rows);
}

/** Put rows into an order without taking the focus from one of them. */
function order(body, rows) {
  if (body.contains(document.activeElement)) return;
  body.replaceChildren(...rows);
}

function lastOrder(bot, choose) {
  const button = el("button", "plain", bot);
  button.type = "button";
  button.title = `show the latest requests of ${bot}`;
  button.addEventListener("click", () => choose(bot));
  const row = el("tr", "", el("td", "", button), el("td", "", el("code")), el("td", "dim"), el("td"));
  byBot.set(bot, row);
  return row;
}
