// SPDX-License-Identifier: GPL-2.0-or-later
// charts.js -- history as small curves: SVG elements, no text from outside but through textContent.

import {count} from "./figures.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 340, HEIGHT = 116, LEFT = 34, RIGHT = 6, TOP = 8, BOTTOM = 20;

export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function ceiling(value) {
  if (value <= 4) return Math.max(1, Math.ceil(value));
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value);
}

function clock(at, span) {
  const when = new Date(at);
  const two = (number) => String(number).padStart(2, "0");
  return span > 86400
    ? `${two(when.getDate())}.${two(when.getMonth() + 1)}.`
    : `${two(when.getHours())}:${two(when.getMinutes())}`;
}

// A path through the points; a gap where nothing was known for more than three steps.
function path(points, x, y, gap) {
  let text = "", last = -Infinity;
  for (const [at, value] of points) {
    if (value === null || value === undefined) continue;
    text += `${at - last > gap ? "M" : "L"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    last = at;
  }
  return text;
}

function label(text, attributes) {
  const made = svg("text", attributes);
  made.textContent = text;
  return made;
}

function key(series) {
  const made = document.createElement("span");
  made.className = "key";
  made.append(svg("svg", {viewBox: "0 0 24 8", "aria-hidden": "true"},
    svg("path", {class: series.look, d: "M0 4H24"})), series.name);
  return made;
}

// series: [{name, look: first or second, points: [[ms, value], ...]}].
export function chart(title, series, {from, to, step, span}) {
  const values = series.flatMap((each) => each.points.map(([, value]) => value ?? 0));
  const most = Math.max(0, ...values), top = ceiling(most);
  const x = (at) => LEFT + (WIDTH - LEFT - RIGHT) * (at - from) / Math.max(1, to - from);
  const y = (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top;
  const words = series.map(({name, points}) => {
    const last = points.length ? points[points.length - 1][1] ?? 0 : 0;
    return `${name}: now ${count(last)}, most ${count(Math.max(0, ...points.map(([, v]) => v ?? 0)))}`;
  });
  const image = svg("svg", {
    class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `${title}. ${words.join("; ")}`,
  });
  for (const value of [0, top])
    image.append(svg("path", {class: "axis", d: `M${LEFT} ${y(value)}H${WIDTH - RIGHT}`}),
      label(count(value), {x: LEFT - 6, y: y(value) + 3.5, "text-anchor": "end"}));
  image.append(label(clock(from, span), {x: LEFT, y: HEIGHT - 5}),
    label(clock(to, span), {x: WIDTH - RIGHT, y: HEIGHT - 5, "text-anchor": "end"}));
  for (const each of series)
    image.append(svg("path", {class: each.look, d: path(each.points, x, y, 3000 * step + 1)}));
  const caption = document.createElement("figcaption");
  const name = document.createElement("b");
  name.textContent = title;
  caption.append(name, ...series.map(key));
  const made = document.createElement("figure");
  made.append(caption, image);
  return made;
}

// A pool's slots as boxes: at work, free, and those that may not work now.  The numbers stand beside it.
export function slots(busy, active, most) {
  const shown = Math.min(Math.max(most, active, 1), 32), width = 136 / shown;
  const scale = Math.max(most, active, 1) / shown;
  const image = svg("svg", {class: "slots", viewBox: "0 0 136 13", "aria-hidden": "true"});
  for (let at = 0; at < shown; at++) {
    const kind = at * scale < busy ? "busy" : at * scale < active ? "free" : "off";
    image.append(svg("rect", {class: kind, x: at * width + .5, y: 1, width: Math.max(1, width - 2), height: 11}));
  }
  return image;
}
