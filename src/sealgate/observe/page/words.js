// Numbers of charts and tables as people read them; all else comes in words from the gateway.

// A format is dear to make, and each is used many times a second.
const numbers = [0, 1, 2].map((digits) => new Intl.NumberFormat("en", { maximumFractionDigits: digits }));
const toMinutes = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const toSeconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export const number = (value, digits = 0) => (value === null ? "–" : numbers[digits].format(value));

export const percent = (part) => `${Math.round(part * 100)} %`;

/** Milliseconds, with as many digits as matter. */
export function ms(value) {
  if (value === null) return "–";
  const size = Math.abs(value);
  if (size >= 10_000) return `${number(value / 1000, size < 100_000 ? 1 : 0)} s`;
  return `${number(value, size < 1 ? 2 : size < 10 ? 1 : 0)} ms`;
}

/** Epoch seconds as the time of day; with seconds where they are not 0. */
export const clock = (seconds) => (seconds % 60 ? toSeconds : toMinutes).format(seconds * 1000);

export const timeOf = (atMs) => toSeconds.format(atMs);
