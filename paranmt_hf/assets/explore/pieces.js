"use strict";

// Pieces of the page. Text from the corpus is only ever set as text.

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") element.className = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

const number = (value) => Number(value).toLocaleString("en");

function shown(value) {
  if (value === null || value === undefined) return "none";
  if (typeof value !== "number") return String(value);
  return value.toLocaleString("en", { maximumFractionDigits: 3 });
}

const words = (sentence) => sentence.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];

// A sentence whose words are underlined where the other side lacks them, and whose searched text is marked.
function sentence(text, other, searched) {
  const lacking = other === null ? null : new Set(words(other));
  const paragraph = make("p");
  const marks = [];
  const lower = text.toLowerCase();
  // Lower case may be longer than the text (in Turkish, say); then nothing is marked.
  if (searched && lower.length === text.length) {
    for (let at = lower.indexOf(searched); at >= 0; at = lower.indexOf(searched, at + searched.length)) {
      marks.push([at, at + searched.length]);
    }
  }
  for (const piece of text.matchAll(/[\p{L}\p{N}]+|[^\p{L}\p{N}]+/gu)) {
    const own = lacking !== null && /[\p{L}\p{N}]/u.test(piece[0]) && !lacking.has(piece[0].toLowerCase());
    const parent = own ? make("span", { class: "own" }) : paragraph;
    appendMarked(parent, text, piece.index, piece.index + piece[0].length, marks);
    if (own) paragraph.append(parent);
  }
  return paragraph;
}

function appendMarked(parent, text, start, end, marks) {
  let at = start;
  for (const [from, to] of marks) {
    if (to <= at || from >= end) continue;
    if (from > at) parent.append(text.slice(at, from));
    parent.append(make("mark", {}, text.slice(Math.max(from, at), Math.min(to, end))));
    at = Math.min(to, end);
  }
  if (at < end) parent.append(text.slice(at, end));
}

// A pair with its numbers, and the foreign sentence if the corpus has it; onNear is called with its reference, or null where neighbours cannot be asked for.
function pair(row, columns, searched, onNear) {
  const facts = make("p", { class: "facts" });
  for (const name of columns) {
    if (row[name] === undefined) continue;
    facts.append(make("span", {}, `${name} `, make("b", {}, shown(row[name]))));
  }
  if (row.origin) facts.append(make("span", {}, row.origin));
  if (row.id !== undefined) facts.append(make("span", {}, `id ${row.id}`));
  if (onNear) facts.append(make("button", { type: "button", onclick: () => onNear(row.reference) }, "neighbours"));
  const sides = make("div", { class: "pair" },
    sentence(row.reference, row.translation, searched), sentence(row.translation, row.reference, searched));
  const source = row.source ? [make("p", { class: "source" }, row.source)] : [];
  return make("li", {}, sides, ...source, facts);
}

function table(head, rows) {
  const cell = (kind, value) =>
    make(kind, typeof value === "number" ? { class: "number" } : {}, typeof value === "number" ? shown(value) : value);
  const numeric = head.map((_, index) => rows.length > 0 && rows.every((row) => typeof row[index] === "number"));
  return make("div", { class: "wide" }, make("table", {},
    make("thead", {}, make("tr", {}, ...head.map((name, index) => make("th", numeric[index] ? { class: "number" } : {}, name)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((value) => cell("td", value)))))));
}

function statistics(summary) {
  const { record, columns } = summary;
  const found = record.statistics;
  const parts = [];
  const add = (title, body) => parts.push(make("h2", {}, title), body);
  add("Pairs", table(["config", "pairs", "bytes of its files"],
    Object.entries(record.configs).map(([name, config]) => [name, config.rows, config.file_bytes])));
  add("Ranges of the paraphrase score", table(["range", "pairs", "mean trigram overlap", "mean length (tokens)"],
    found.ranges.map((part) => [part.range, part.rows, part.mean_trigram_overlap ?? "none", part.mean_length ?? "none"])));
  add("Means", table(["", "mean"], [
    ["tokens of a reference", found.mean_reference_length],
    ["tokens of a translation", found.mean_translation_length],
    ...(found.mean_translation_score === null || found.mean_translation_score === undefined
      ? [] : [["translation score", found.mean_translation_score]]),
  ]));
  const dropped = Object.entries(record.dropped);
  add("Dropped, by reason", dropped.length ? table(["reason", "rows"], dropped) : make("p", {}, "nothing"));
  const origins = Object.entries(summary.origins);
  if (origins.length) add("Origins", table(["origin", "pairs"], origins));
  add("Columns", table(["column", "meaning"], columns.map((column) => [make("code", {}, column.name), column.meaning])));
  add("How it was made", table(["part", "settings"],
    Object.entries(record.settings).map(([name, values]) => [name, make("code", {}, JSON.stringify(values))])));
  for (const [title, head, rows] of summary.tables || []) add(title, table(head, rows));
  for (const warning of record.warnings || []) add("Warning", make("p", {}, warning));
  return parts;
}
