// Numbers as people read them.

export const number = (value, digits = 0) =>
  value === null ? "–" : value.toLocaleString("en", { maximumFractionDigits: digits });

export const percent = (part) => `${Math.round(part * 100)} %`;

/** Milliseconds, with as many digits as matter. */
export function ms(value) {
  if (value === null) return "–";
  const size = Math.abs(value);
  if (size >= 10_000) return `${number(value / 1000, size < 100_000 ? 1 : 0)} s`;
  return `${number(value, size < 1 ? 2 : size < 10 ? 1 : 0)} ms`;
}

export function signed(value) {
  const text = ms(value).replace("-", "");
  return /[1-9]/.test(text) ? `${value > 0 ? "+" : "−"}${text}` : text;
}

/** Seconds as the largest unit that fits. */
export function span(seconds) {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${Math.max(0, Math.round(seconds))} s`;
}

/** A window, to three digits where it is short: 0.815 s is not 1 s. */
export const seconds = (window) => (window < 60 ? `${Number(window.toPrecision(3))} s` : span(window));

/** Epoch seconds as the time of day; with seconds where they are not 0. */
export const clock = (seconds) =>
  new Date(seconds * 1000).toLocaleTimeString("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    ...(seconds % 60 && { second: "2-digit" }),
  });

export const countOf = (count, one, many) => `${count} ${count === 1 ? one : many}`;

/** A stranger: its program, as it calls itself, and where it is. */
export const strangerWords = ({ client, user_agent: agent }) => [agent, client].filter(Boolean).join(", ");
