"use strict";

// Where the answers come from: the program that serves this page, or the rows that a report carries with it.

class ServerSource {
  async ask(what, parameters) {
    const answer = await fetch(`api/${what}?${new URLSearchParams(parameters)}`);
    const values = await answer.json().catch(() => ({ error: "the program that serves this page has ended" }));
    if (values.error) throw new Error(values.error);
    return values;
  }

  // Rows are of the whole corpus.
  get scope() { return ""; }
}

class ReportSource {
  constructor(report) {
    this.report = report;
  }

  // Rows are those that the report carries; its histograms behind them are of the whole corpus.
  get scope() { return " that this report carries"; }

  async ask(what, parameters) {
    return this[what](new Map(parameters));
  }

  summary() {
    return this.report.summary;
  }

  // The same rules as the program's: ranges with both ends, nulls outside, text in upper or lower case alike.
  chosen(parameters) {
    const tests = [];
    for (const [name, value] of parameters) {
      if (value === "") continue;
      const [bound, column] = [name.slice(0, 3), name.slice(4)];
      // In the precision of the scores, as the columns are.
      const limit = Math.fround(Number(value));
      if (name.startsWith("min.")) tests.push((row) => row[column] !== null && row[column] >= limit);
      else if (name.startsWith("max.")) tests.push((row) => row[column] !== null && row[column] <= limit);
      else if (bound === "ori") tests.push((row) => row.origin === value);
    }
    const text = (parameters.get("text") || "").toLowerCase();
    const side = parameters.get("side") || "either";
    if (text) {
      const sides = side === "either" ? ["reference", "translation"] : [side];
      tests.push((row) => sides.some((name) => row[name].toLowerCase().includes(text)));
    }
    return this.report.sample.filter((row) => tests.every((test) => test(row)));
  }

  rows(parameters) {
    const found = this.chosen(parameters);
    const sort = parameters.get("sort") || "id";
    const sign = parameters.get("descending") ? -1 : 1;
    found.sort((a, b) => {
      if ((a[sort] === null) !== (b[sort] === null)) return a[sort] === null ? 1 : -1;
      return sign * (a[sort] - b[sort]) || a.id - b.id;
    });
    const size = this.report.page;
    const first = size * Number(parameters.get("page") || 0);
    return { total: found.length, page_rows: size, rows: found.slice(first, first + size) };
  }

  histograms(parameters) {
    const found = this.chosen(parameters);
    if (!parameters.size) return { total: found.length, counts: this.report.all };
    const counts = {};
    for (const [name, bins] of Object.entries(this.report.summary.bins)) {
      counts[name] = new Array(bins.count).fill(0);
      for (const row of found) {
        if (row[name] === null) continue;
        const bin = Math.floor((row[name] - bins.low) / bins.width);
        counts[name][Math.min(Math.max(bin, 0), bins.count - 1)] += 1;
      }
    }
    return { total: found.length, counts };
  }

  examples() {
    return { ranges: this.report.examples };
  }

  neighbours(parameters) {
    const found = this.report.neighbours[parameters.get("sentence")];
    if (!found) {
      throw new Error("a report knows the neighbours of the references that it carries: use the button beside one");
    }
    return { neighbours: found.map(([index, similarity]) => ({ sentence: this.report.sample[index].reference, similarity })) };
  }
}

function openSource() {
  const carried = document.getElementById("report");
  return carried ? new ReportSource(JSON.parse(carried.textContent)) : new ServerSource();
}
