// The latest requests. They are asked for only while the list is open, and stand still while somebody looks at them.
import { el, labelled, table } from "./parts.js";
import { ms, number, timeOf } from "./words.js";

const EVERY_MS = 1000;
// How long an answer may take; the next question waits for it.
const PATIENCE_MS = 5000;
const COLUMNS = ["time", "bot", "exchange", "status", "outcome", "request", "wait", "attempts", "reason"];
const byId = (id) => document.getElementById(id);

/** Begin; `isFrozen` says whether the whole page stands still, `hasSeveral` whether there are several exchanges. */
export function inspect(isFrozen, hasSeveral) {
  const [box, list, hold] = ["inspector", "requests", "hold"].map(byId);
  const filters = Object.fromEntries(["exchange", "bot", "outcome"].map((name) => [name, byId(`of-${name}`)]));
  let all = [];
  let isAsking = false;
  const isPressed = () => hold.getAttribute("aria-pressed") === "true";
  const isLookedAt = () => list.matches(":hover") || list.matches(":focus");
  const isHeld = () => isPressed() || isLookedAt() || isFrozen();

  function draw() {
    const rows = all.filter((one) => Object.entries(filters).every(([name, { value }]) => [one[name], ""].includes(value)));
    const columns = COLUMNS.filter((name) => name !== "exchange" || hasSeveral());
    byId("exchange-filter").hidden = !hasSeveral();
    list.replaceChildren(rows.length ? table(columns, rows.map((one) => row(one, hasSeveral()))) : el("p", "empty", all.length ? "None of the latest requests matches." : "No bot has sent a request yet."));
    say(rows.length);
  }

  function say(count) {
    const shown = all.length ? `${count} of the latest ${all.length === 1 ? "request" : `${number(all.length)} requests`}` : "";
    byId("held").textContent = isHeld() ? `${shown}, frozen${isPressed() || isFrozen() ? "" : " while you look"}` : shown;
  }

  async function ask() {
    if (isAsking || !box.open || document.hidden || isHeld()) return;
    isAsking = true;
    const requests = await latest();
    isAsking = false;
    if (requests === null || isHeld()) return;
    all = requests;
    for (const name of ["exchange", "bot"]) offer(filters[name], all.map((one) => one[name]));
    draw();
  }

  const shown = () => list.querySelectorAll("tbody tr").length;
  for (const filter of Object.values(filters)) filter.addEventListener("change", draw);
  for (const event of ["pointerenter", "pointerleave", "focus", "blur"]) list.addEventListener(event, () => setTimeout(() => say(shown())));
  hold.addEventListener("click", () => {
    hold.setAttribute("aria-pressed", String(!isPressed()));
    hold.textContent = isPressed() ? "Unfreeze" : "Freeze";
    say(shown());
  });
  box.addEventListener("toggle", ask);
  setInterval(ask, EVERY_MS);

  /** Open the list with the requests of one bot. */
  return (bot) => {
    offer(filters.bot, [bot]);
    filters.bot.value = bot;
    box.open = true;
    box.scrollIntoView();
    draw();
  };
}

/** Add the values to a filter that it does not offer yet. */
function offer(filter, values) {
  const known = new Set([...filter.options].map((option) => option.value));
  const names = new Set(values.filter((value) => !known.has(value)));
  filter.append(...[...names].sort().map((name) => el("option", "", name)));
}

/** The gateway's answer, or null without one: then the page says by itself that nobody answers. */
async function latest() {
  try {
    const reply = await fetch("requests.json", { signal: AbortSignal.timeout(PATIENCE_MS) });
    return reply.ok ? (await reply.json()).requests : null;
  } catch {
    return null;
  }
}

function row({ at_ms: at, bot, from, exchange, status, outcome, method, route, id, wait_ms: wait, attempts, reason }, isOneOfMany) {
  const request = el("td", "request", el("code", "", `${method} ${route}`));
  request.title = id;
  return el(
    "tr",
    "",
    el("td", "dim", timeOf(at)),
    el("td", "", bot, ...(from ? [el("div", "dim client", from)] : [])),
    ...(isOneOfMany ? [el("td", "", exchange)] : []),
    el("td", "number", status),
    el("td", outcome, outcome),
    request,
    labelled("wait", ms(wait), "number more"),
    labelled("attempts", attempts, "number more"),
    el("td", "more", ...(reason ? [el("code", "", reason)] : [])),
  );
}
