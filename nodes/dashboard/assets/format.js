// Numbers and times as people read them.

const plain = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const count = (n) => (n === undefined ? "–" : plain.format(n));

export function bytes(n) {
  if (n === undefined) return "–";
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (n >= size) return `${short.format(n / size)} ${unit}`;
  }
  return `${plain.format(Math.round(n))} B`;
}

export function rate(n) {
  if (n === undefined) return "–";
  return n >= 10000 ? `${short.format(n / 1000)}k` : n >= 100 ? plain.format(Math.round(n)) : short.format(n);
}

export const milliseconds = (s) =>
  s === undefined || s === null ? "–" : `${(1000 * s).toFixed(s < 0.1 ? 3 : 1)} ms`;

export const offset = (s, error) =>
  s === undefined ? "–" : `${s < 0 ? "−" : "+"}${Math.abs(1000 * s).toFixed(3)} ± ${(1000 * error).toFixed(3)} ms`;

export const ppm = (r) => (r === undefined ? "–" : `${r < 0 ? "−" : "+"}${Math.abs(1e6 * r).toFixed(1)} ppm`);

export function span(seconds) {
  if (seconds === undefined) return "–";
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const from = parts.findIndex(([size]) => seconds >= size);
  if (from < 0) return "0 s";
  let rest = Math.floor(seconds);
  return parts.slice(from, from + 2).map(([size, unit]) => {
    const n = Math.floor(rest / size);
    rest -= n * size;
    return `${n} ${unit}`;
  }).join(" ");
}

export function clock(at) {
  const time = new Date(1000 * at);
  const two = (n) => String(n).padStart(2, "0");
  const ms = String(time.getMilliseconds()).padStart(3, "0");
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${ms}`;
}

export const some = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
