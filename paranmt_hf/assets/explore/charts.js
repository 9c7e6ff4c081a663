"use strict";

// A histogram that is also a filter: drag over it to choose a range.

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (parent) parent.append(element);
  return element;
}

// Digits that a column's edges need: 0.05 has two.
function edge(bins, index) {
  const digits = Math.max(0, Math.ceil(-Math.log10(bins.width) - 1e-9) + (bins.width < 1 ? 1 : 0));
  return String(Number((bins.low + index * bins.width).toFixed(digits)));
}

class Histogram {
  // onRange is called with the lower and upper edge, as text, when a range has been dragged.
  constructor(parent, name, bins, onRange) {
    this.bins = bins;
    this.chart = svg("svg", { class: "chart", viewBox: `0 0 ${bins.count} 100`, preserveAspectRatio: "none", role: "img" }, parent);
    this.name = name;
    this.bars = svg("g", {}, this.chart);
    this.drag = svg("rect", { class: "drag", y: 0, height: 100, width: 0, x: 0 }, this.chart);
    this.chart.addEventListener("pointerdown", (event) => this.begin(event, onRange));
  }

  bin(event) {
    const box = this.chart.getBoundingClientRect();
    const at = Math.floor(((event.clientX - box.left) / box.width) * this.bins.count);
    return Math.min(Math.max(at, 0), this.bins.count - 1);
  }

  begin(event, onRange) {
    const first = this.bin(event);
    let last = first;
    const show = () => {
      this.drag.setAttribute("x", Math.min(first, last));
      this.drag.setAttribute("width", Math.abs(last - first) + 1);
    };
    const move = (moved) => { last = this.bin(moved); show(); };
    const stop = (commit) => {
      this.chart.removeEventListener("pointermove", move);
      this.drag.setAttribute("width", 0);
      if (!commit) return;
      const [low, high] = [Math.min(first, last), Math.max(first, last)];
      const unbounded = this.bins.open && high === this.bins.count - 1;
      onRange(edge(this.bins, low), unbounded ? "" : edge(this.bins, high + 1));
    };
    show();
    this.chart.setPointerCapture(event.pointerId);
    this.chart.addEventListener("pointermove", move);
    this.chart.addEventListener("pointerup", () => stop(true), { once: true });
    this.chart.addEventListener("pointercancel", () => stop(false), { once: true });
  }

  // Draw all rows behind those that are chosen; each of the two has a scale of its own.
  draw(all, chosen) {
    this.bars.replaceChildren();
    for (const [kind, counts] of [["all", all], ["chosen", chosen]]) {
      if (!counts) continue;
      const largest = Math.max(1, ...counts);
      counts.forEach((count, index) => {
        if (!count) return;
        const height = Math.max(1.5, (100 * count) / largest);
        const bar = svg("rect", { class: kind, x: index + 0.06, width: 0.88, y: 100 - height, height }, this.bars);
        const open = this.bins.open && index === counts.length - 1;
        const range = open ? `${edge(this.bins, index)} and more` : `${edge(this.bins, index)} to ${edge(this.bins, index + 1)}`;
        svg("title", {}, bar).textContent = `${range}: ${count.toLocaleString("en")}`;
      });
    }
    const total = (chosen || all).reduce((sum, count) => sum + count, 0);
    this.chart.setAttribute("aria-label", `histogram of ${this.name}: ${total.toLocaleString("en")} pairs`);
  }
}
