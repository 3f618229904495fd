// The latest requests. They are asked for only while the list is open, and stand still while somebody looks at them.
import { el, labelled, table, timeOf } from "./parts.js";
import { ms, number } from "./words.js";

const EVERY_MS = 1000;
// How long an answer may take; the next question waits for it.
const PATIENCE_MS = 5000;
const COLUMNS = ["time", "bot", "status", "outcome", "request", "wait", "attempts", "reason"];
const byId = (id) => document.getElementById(id);

/** Begin; `isFrozen` says whether the whole page stands still. */
export function inspect(isFrozen) {
  const [box, list, bot, outcome, hold] = ["inspector", "requests", "of-bot", "of-outcome", "hold"].map(byId);
  let all = [];
  let isAsking = false;
  const isPressed = () => hold.getAttribute("aria-pressed") === "true";
  const isLookedAt = () => list.matches(":hover") || list.matches(":focus");
  const isHeld = () => isPressed() || isLookedAt() || isFrozen();

  function draw() {
    const rows = all.filter((one) => [one.bot, ""].includes(bot.value) && [one.outcome, ""].includes(outcome.value));
    list.replaceChildren(rows.length ? table(COLUMNS, rows.map(row)) : el("p", "empty", all.length ? "None of the latest requests matches." : "No bot has sent a request yet."));
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
    const known = new Set([...bot.options].map((option) => option.value));
    const names = new Set(all.map((one) => one.bot).filter((name) => !known.has(name)));
    bot.append(...[...names].sort().map((name) => el("option", "", name)));
    draw();
  }

  const shown = () => list.querySelectorAll("tbody tr").length;
  for (const filter of [bot, outcome]) filter.addEventListener("change", draw);
  for (const event of ["pointerenter", "pointerleave", "focus", "blur"]) list.addEventListener(event, () => setTimeout(() => say(shown())));
  hold.addEventListener("click", () => {
    hold.setAttribute("aria-pressed", String(!isPressed()));
    hold.textContent = isPressed() ? "Unfreeze" : "Freeze";
    say(shown());
  });
  box.addEventListener("toggle", ask);
  setInterval(ask, EVERY_MS);
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

function row({ at_ms: at, bot, from, status, outcome, method, route, id, wait_ms: wait, attempts, reason }) {
  const request = el("td", "request", el("code", "", `${method} ${route}`));
  request.title = id;
  return el(
    "tr",
    "",
    el("td", "dim", timeOf(at)),
    el("td", "", bot, ...(from ? [el("div", "dim client", from)] : [])),
    el("td", "number", status),
    el("td", outcome, outcome),
    request,
    labelled("wait", ms(wait), "number more"),
    labelled("attempts", attempts, "number more"),
    el("td", "more", ...(reason ? [el("code", "", reason)] : [])),
  );
}
