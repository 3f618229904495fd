// What people must act on: notices, errors with advice, orders in doubt.
import { el } from "./parts.js";
import { countOf, number, span, strangerWords } from "./words.js";

export function notices(now, stream) {
  const found = [];
  const add = (mood, text) => found.push(el("p", `notice ${mood}`, ...marked(text)));
  if (stream === "reconnecting") add("", "The gateway does not answer: it was stopped, or the connection to it is broken. This is its last known state; the page reconnects by itself.");
  if (stream === "stalled") add("", "No news for some seconds: the gateway is very busy, or this machine slept.");
  if (now === null) return found;
  for (const reason of now.not_ready.filter((one) => !hasOwnWords(one, now.keys))) add("bad", `Not ready: ${reason}`);
  if (now.failing) add("bad", failingWords(now));
  else if (now.clock.trouble && !now.not_ready.some(isOfClock)) add("", `The exchange's time cannot be read: ${now.clock.trouble}. Requests are signed by the last reading, which is ${span(now.clock.age_s)} old.`);
  for (const halt of now.halts) add("bad", haltWords(halt, now.at_ms));
  for (const key of now.keys) keyNotices(key, now.at_ms).forEach((text) => add("bad", text));
  for (const one of now.refusals.filter((one) => one.is_grave)) add("", `${one.words}, since ${timeOf(one.first_ms)}. ${one.advice}`);
  if (now.journal.trouble) add("bad", journalWords(now.journal));
  if (now.journal.lost) add("bad", `${now.journal.lost}. If you did not remove it, stop the gateway, put the file back, and find out who did.`);
  if (now.requests === 0 && !now.not_ready.length) add("calm", "No bot has sent a request yet. Point a bot at the gateway's address instead of the exchange's, and leave out the signing.");
  return found;
}

/** The reason stands last, so that a backquote in it changes nothing else. */
function haltWords({ words, since_ms: since, who, resume, reason }, atMs) {
  const ago = `${new Date(since).toLocaleString("en-GB")}, ${span((atMs - since) / 1000)} ago`;
  return `Orders are halted for ${words} since ${ago}, by ${who}. Reads and cancels pass. Release them with: \`${resume}\`${reason ? `. Reason: ${reason}` : ""}`;
}

/** Keys and the journal have notices of their own. */
const hasOwnWords = (reason, keys) =>
  reason.startsWith("the journal cannot be written") || keys.some((key) => reason.startsWith(`the key ${key.alias} is disabled`));

const isOfClock = (reason) => reason.startsWith("clock ");

const SOON_S = 7 * 86_400;

function keyNotices({ alias, disabled, trouble, trouble_advice: advice, expires_at: at, sharing }, atMs) {
  const leftS = (at ?? Infinity) - atMs / 1000;
  const found = disabled ? [`Key ${alias} is disabled: ${disabled}. The gateway tries it again by itself.`] : [];
  if (trouble) found.push(`Key ${alias}: ${trouble}. ${advice}`);
  if (sharing?.degraded) found.push(`Key ${alias} is not shared: ${sharing.degraded}. This gateway uses a careful part of the limit (one of ${sharing.replicas}) until it is.`);
  if (leftS < SOON_S) found.push(`Key ${alias} ${leftS > 0 ? `expires in ${span(leftS)}` : "has expired"}: make a new one in the app.`);
  return found;
}

const journalWords = ({ trouble, is_refusing: isRefusing }) =>
  `The journal cannot be written: ${trouble}. ${isRefusing ? "Orders are refused until it can; reads and cancels pass." : "Orders are sent without a record."}`;

/** The gateway keeps trying, unless a fault of its own prevents that. */
function failingWords({ failing, at_ms: atMs, not_ready: notReady, halts }) {
  const { kind, since_ms: since, attempts, cause, advice } = failing;
  const ago = `${timeOf(since)}, ${span((atMs - since) / 1000)} ago`;
  const goesOn = notReady.length || halts.length ? "" : " Requests are still accepted, and sent.";
  return `The exchange has failed since ${ago}: ${countOf(attempts, "attempt", "attempts")}, the last was ${kind}. ${cause ?? ""} ${advice}${goesOn}`;
}

export function errors(now) {
  const rows = [
    ...now.errors.map((error) => [error.last_ms, () => errorRow(error, now.at_ms)]),
    ...now.refusals.map((refused) => [refused.last_ms, () => refusalRow(refused, now.at_ms)]),
  ];
  const byRule = now.policies.filter((one) => one.by_rule).map((one) => el("p", "", one.by_rule));
  if (!rows.length) return byRule.length ? byRule : [el("p", "empty", "No bot has met an error or a refusal since the start.")];
  rows.sort(([one], [other]) => other - one);
  const head = el("tr", "", ...["last", "what", "times", "cause and advice"].map((name) => el("th", "", name)));
  return [el("table", "", el("thead", "", head), el("tbody", "", ...rows.slice(0, 16).map(([, row]) => row()))), ...byRule];
}

function errorRow(error, atMs) {
  const link = el("a", "", el("code", "", error.kind));
  link.href = `errors#${error.kind}`;
  const said = error.evidence ? [el("span", "said", ...marked(sentence(error.evidence))), " "] : [];
  const who = `key ${error.key}${error.bot ? `, last by ${error.bot}` : ""}`;
  return wrongRow(error, atMs, [link, el("div", "dim", who)], `${number(error.count)}×`, said);
}

function refusalRow(refused, atMs) {
  const times = refused.bot === "stranger" ? `${number(refused.refused)}×` : `${number(refused.refused)} of ${number(refused.asked)}`;
  const who = `refused here: ${refused.bot}, ${refused.lane ? `${refused.lane}s` : "any request"}`;
  const from = refused.client ? [el("div", "dim", `the last: ${strangerWords(refused)}`)] : [];
  return wrongRow(refused, atMs, [el("code", "", refused.reason), el("div", "dim", who), ...from], times, []);
}

/** What is over says since when, and advises nothing. */
function wrongRow({ last_ms: last, over_since_ms: over, advice }, atMs, what, times, said) {
  const ago = `${span((atMs - last) / 1000)} ago`;
  const words = [...said, ...(over === null ? marked(advice) : [`Over since ${timeOf(over)}.`])];
  const mood = over === null ? "" : "over";
  return el("tr", mood, el("td", "dim", ago), el("td", "", ...what), el("td", "", times), el("td", "", ...words));
}

const timeOf = (atMs) => new Date(atMs).toLocaleTimeString("en-GB");

/** What stands in backquotes becomes code. */
const marked = (text) => text.split("`").map((part, at) => (at % 2 ? el("code", "", part) : part));

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

/** A cell that says what it is where the table has no head: on a phone. */
function labelled(label, text) {
  const cell = el("td", "", text);
  cell.dataset.label = label;
  return cell;
}

/** What was ordered, as far as its body says. */
const termsOf = ({ side, size, symbol, price, client_id: as }) =>
  [side, size, symbol, price && `at ${price}`, as && `as ${as}`].filter(Boolean).join(" ");

export function doubts({ doubts: all, in_doubt: count }) {
  const head = el("tr", "", ...["request", "bot", "order", "sent", "fence"].map((name) => el("th", "", name)));
  const rows = all.map((one) =>
    el("tr", "", el("td", "", el("code", "", one.request_id)), el("td", "", one.bot), el("td", "", el("code", "", `${one.method} ${one.target}`), el("div", "", termsOf(one))), labelled("sent", timeOf(one.sent_ms)), labelled("fence", one.fence_ms ? timeOf(one.fence_ms) : "not known")),
  );
  const words = `${countOf(count, "order was", "orders were")} sent, and nobody knows what became of ${count === 1 ? "it" : "them"}. Look each up at the exchange, then run: \`sealgate orders --settle REQUEST\`. The fence is the exchange's time after which it no longer admits the order.`;
  return [el("p", "empty", ...marked(words)), ...(rows.length ? [el("table", "", el("thead", "", head), el("tbody", "", ...rows))] : [])];
}
