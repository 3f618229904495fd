// What people must act on: notices, what went wrong, orders in doubt. The gateway has made the sentences.
import { el, labelled, marked, table, timeOf } from "./parts.js";

const STREAM = {
  reconnecting: "The gateway does not answer: it was stopped, or the connection to it is broken. This is its last known state; the page reconnects by itself.",
  stalled: "No news for some seconds: the gateway is very busy, or this machine slept.",
};

export function notices(now, stream) {
  const own = STREAM[stream] ? [{ mood: "warn", text: STREAM[stream] }] : [];
  return [...own, ...(now?.words.notices ?? [])].map(({ mood, text }) => el("p", `notice ${mood}`, ...marked(text)));
}

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

export function doubts({ doubts: all }, { doubts: text, orders }, isOneOfMany) {
  if (!text) return [];
  const rows = all.map((one, at) => {
    const order = el("td", "", el("code", "", `${one.method} ${one.target}`), el("div", "", orders[at]));
    const fence = one.fence_ms ? timeOf(one.fence_ms) : "not known";
    return el("tr", "", el("td", "", el("code", "", one.request_id)), el("td", "", one.bot), ...(isOneOfMany ? [el("td", "", one.exchange)] : []), order, labelled("sent", timeOf(one.sent_ms)), labelled("fence", fence));
  });
  return [el("p", "empty", ...marked(text)), ...(rows.length ? [table(["request", "bot", ...(isOneOfMany ? ["exchange"] : []), "order", "sent", "fence"], rows)] : [])];
}
