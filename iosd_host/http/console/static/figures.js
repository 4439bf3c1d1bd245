// SPDX-License-Identifier: GPL-2.0-or-later
// figures.js -- numbers as people read them, and figures by their metric's name.  Pure.

export const NOTHING = "–";

function three(value) {
  return String(Number(value.toPrecision(3)));
}

export function count(value) {
  if (!Number.isInteger(value)) return three(value);
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

export function seconds(value) {
  if (value === 0) return "0 s";
  for (const [least, unit, name] of [
    [86400, 86400, "d"], [3600, 3600, "h"], [60, 60, "min"], [1, 1, "s"], [1e-3, 1e-3, "ms"],
  ]) if (value >= least) return `${three(value / unit)} ${name}`;
  return `${three(value * 1e6)} µs`;
}

export function bytes(value) {
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let at = 0;
  while (value >= 1024 && at < names.length - 1) { value /= 1024; at++; }
  return `${three(value)} ${names[at]}`;
}

export function share(value) {
  return `${three(value * 100)} %`;
}

// As Prometheus' histogram_quantile: linear between the bounds; beyond the last one, that one.
export function quantile(histogram, part) {
  const {bounds, counts} = histogram;
  const all = counts[counts.length - 1];
  if (!all) return null;
  const rank = part * all;
  const at = counts.findIndex((total) => total >= rank);
  if (at >= bounds.length) return bounds[bounds.length - 1];
  const below = at ? counts[at - 1] : 0, lower = at ? bounds[at - 1] : 0;
  return lower + (bounds[at] - lower) * (rank - below) / (counts[at] - below);
}

// The rows of a metric, each with its labels by name; none where the target does not say.
export function rows(state, metric) {
  const found = state.figures[metric];
  if (!found) return [];
  return found.rows.map((row) => ({
    metric,
    labels: Object.fromEntries(found.labels.map((label, at) => [label, row[at]])),
    value: row[row.length - 1],
  }));
}

export function one(state, metric, labels = {}) {
  return rows(state, metric).find((row) =>
    Object.entries(labels).every(([label, text]) => row.labels[label] === text)) ?? null;
}

// The sample's name as /metrics writes it.
export function nameOf(row) {
  const words = Object.entries(row.labels).map(([label, text]) =>
    `${label}="${text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/"/g, '\\"')}"`);
  return row.metric + (words.length ? `{${words.join(",")}}` : "");
}

// A cell's description (console.js draws it): a figure that says which sample it is.
export function figure(row, show = count) {
  if (!row) return {text: NOTHING, title: "the target does not say"};
  return {text: show(row.value), metric: nameOf(row), raw: row.value};
}

// A figure that is no metric: a path into the manager's status.
export function said(path, value, show = count) {
  if (value === null || value === undefined) return {text: NOTHING, title: "not known"};
  return {text: show(value), status: path, raw: value};
}

export function timed(row, part) {
  const value = row ? quantile(row.value, part) : null;
  if (value === null) return {text: NOTHING, title: "none yet"};
  return {text: seconds(value), metric: nameOf(row), quantile: String(part), raw: value};
}
