"use strict";

const source = openSource();
const by = (id) => document.getElementById(id);
// What is shown: the corpus's summary, its histograms, the filter as name and value, and the page of rows.
const state = { summary: null, all: null, page: 0, seed: 0, tab: "pairs", asked: 0, charts: new Map() };

function parameters() {
  return [...new FormData(by("form"))].filter(([name, value]) => value !== "" && !(name === "side" && value === "either"));
}

function say(text, error = false) {
  by("status").textContent = text;
  by("status").classList.toggle("error", error);
}

const searched = () => by("text").value.toLowerCase();
const near = () => (state.summary.neighbours ? (sentence) => { by("near").value = sentence; openTab("neighbours"); } : null);

// Ask for what the open tab shows; an answer that comes after the next question is not shown.
async function refresh() {
  const question = ++state.asked;
  const started = performance.now();
  say("...");
  if (state.tab === "statistics") return say("of the whole corpus, whatever the filters");
  if (state.tab === "neighbours" && !by("near").value) return say("");
  try {
    const chosen = parameters();
    const [histograms, shownThere] = [await source.ask("histograms", chosen), await ask(chosen)];
    if (question !== state.asked) return;
    drawHistograms(histograms, chosen.length > 0);
    shownThere();
    if (state.tab === "neighbours") {
      by("command").hidden = true;
      return say("");
    }
    const share = state.all.total ? ` (${percent(histograms.total / state.all.total)})` : "";
    const seconds = ((performance.now() - started) / 1000).toFixed(2);
    say(`${number(histograms.total)} of ${number(state.all.total)} pairs${source.scope}${share}, in ${seconds} s`);
    showCommand(chosen);
  } catch (error) {
    if (question === state.asked) say(error.message, true);
  }
}

// Ask for the open tab's answer; gives the function that shows it.
async function ask(chosen) {
  if (state.tab === "pairs") {
    const [sort, descending] = by("sort").value.split(" ");
    const answer = await source.ask("rows", [...chosen, ["sort", sort], ["descending", descending || ""], ["page", state.page]]);
    return () => showRows(answer);
  }
  if (state.tab === "examples") {
    const answer = await source.ask("examples", [...chosen, ["seed", state.seed]]);
    return () => showExamples(answer);
  }
  if (state.tab === "neighbours" && by("near").value) {
    const answer = await source.ask("neighbours", [["sentence", by("near").value]]);
    return () => showNeighbours(answer);
  }
  return () => {};
}

const percent = (share) => (share > 0 && share < 0.001 ? "less than 0.1 %" : `${(100 * share).toFixed(1)} %`);

function showRows(answer) {
  const pages = Math.max(1, Math.ceil(answer.total / answer.page_rows));
  by("page").textContent = `page ${number(state.page + 1)} of ${number(pages)}`;
  by("previous").disabled = state.page === 0;
  by("next").disabled = state.page + 1 >= pages;
  const columns = Object.keys(state.summary.bins);
  by("rows").replaceChildren(...answer.rows.map((row) => pair(row, columns, searched(), near())));
}

function showExamples(answer) {
  const columns = Object.keys(state.summary.bins);
  by("ranges").replaceChildren(...answer.ranges.flatMap((part) => [
    make("h2", {}, `${part.range}: ${number(part.rows)} pairs`),
    part.examples.length
      ? make("ol", { class: "rows" }, ...part.examples.map((row) => pair(row, columns, searched(), near())))
      : make("p", {}, "no pair"),
  ]));
}

function showNeighbours(answer) {
  by("near-of").textContent = by("near").value;
  by("near-rows").replaceChildren(...answer.neighbours.map((found) =>
    make("li", {}, sentence(found.sentence, null, ""),
      make("p", { class: "facts" }, make("span", {}, "cosine ", make("b", {}, found.similarity.toFixed(3)))))));
}

function drawHistograms(histograms, filtered) {
  for (const [name, chart] of state.charts) chart.draw(state.all.counts[name], filtered ? histograms.counts[name] : null);
}

// The command that makes a corpus of the same rows; not for a text, which it does not look for.
function showCommand(chosen) {
  const possible = chosen.length > 0 && chosen.every(([name]) => /^(min|max)\.|^origin$/.test(name)) && state.summary.command;
  by("command").hidden = !possible;
  if (!possible) return;
  const own = { "min.para_score": "--min-score", "max.para_score": "--max-score", "max.trigram_overlap": "--max-overlap" };
  const bounds = (kind) => chosen.filter(([name]) => name.startsWith(`${kind}.`) && !own[name])
    .map(([name, value]) => `${name.slice(4)}=${value}`).join(",");
  const origin = chosen.find(([name]) => name === "origin");
  const options = [...chosen.filter(([name]) => own[name]).map(([name, value]) => [own[name], value]),
    ["--min", bounds("min")], ["--max", bounds("max")], ["--origin", origin ? shell(origin[1]) : ""]];
  by("command").querySelector("code").textContent =
    [state.summary.command, ...options.filter(([, value]) => value !== "").map(([name, value]) => `${name} ${value}`)].join(" ");
}

const shell = (word) => (/^[\w.,:/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

function openTab(name) {
  state.tab = name;
  for (const tab of by("tabs").children) {
    const open = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", open);
    tab.tabIndex = open ? 0 : -1;
    by(tab.getAttribute("aria-controls")).hidden = !open;
  }
  refresh();
}

function column(name, bins) {
  const [low, high] = ["min", "max"].map((bound) => make("input", {
    name: `${bound}.${name}`, type: "number", step: "any", "aria-label": `${name}, ${bound === "min" ? "at least" : "at most"}`,
    placeholder: bound === "min" ? "at least" : "at most",
  }));
  const meaning = state.summary.columns.find((entry) => entry.name === name)?.meaning ?? "";
  const parent = make("div", {}, make("div", { class: "label", title: meaning }, name));
  state.charts.set(name, new Histogram(parent, name, bins, (from, to) => {
    [low.value, high.value] = [from, to];
    changed();
  }));
  parent.append(make("div", { class: "bounds" }, low, "–", high));
  return parent;
}

function changed() {
  state.page = 0;
  refresh();
}

function later(action, wait) {
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(action, wait); };
}

function listen() {
  by("form").addEventListener("input", later(changed, 250));
  by("form").addEventListener("submit", (event) => { event.preventDefault(); changed(); });
  by("form").addEventListener("reset", () => setTimeout(changed));
  by("sort").addEventListener("change", changed);
  by("previous").addEventListener("click", () => { state.page -= 1; refresh(); });
  by("next").addEventListener("click", () => { state.page += 1; refresh(); });
  by("others").addEventListener("click", () => { state.seed += 1; refresh(); });
  by("near-form").addEventListener("submit", (event) => { event.preventDefault(); refresh(); });
  by("tabs").addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) openTab(tab.id.slice(4));
  });
  by("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const tabs = [...by("tabs").children].filter((tab) => !tab.hidden);
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    next.focus();
    openTab(next.id.slice(4));
  });
}

async function begin() {
  try {
    state.summary = await source.ask("summary", []);
  } catch (error) {
    say(error.message, true);
    return;
  }
  const { record, bins, origins } = state.summary;
  document.title = record.title || record.name;
  by("title").textContent = record.title || record.name;
  by("about").textContent = [
    `${number(state.summary.rows)} pairs`, `config ${state.summary.config}`, `licence ${record.license_name || record.license}`,
    `scored by ${record.settings.scorer?.name ?? "an unknown scorer"}`,
  ].join(" · ");
  by("columns").append(...Object.entries(bins).map(([name, values]) => column(name, values)));
  const orders = ["id", ...Object.keys(bins).flatMap((name) => [`${name} descending`, name])];
  by("sort").append(...orders.map((name) => make("option", { value: name }, name === "id" ? "as in the corpus" : name)));
  by("origin-row").hidden = !Object.keys(origins).length;
  by("origin").append(...Object.entries(origins).map(([name, count]) => make("option", { value: name }, `${name} (${number(count)})`)));
  by("near-about").textContent = state.summary.neighbours || "";
  by("near-form").hidden = !state.summary.ask_any;
  by("tab-neighbours").hidden = !state.summary.neighbours && !state.summary.neighbours_hint;
  if (!state.summary.neighbours) by("near-about").textContent = state.summary.neighbours_hint || "";
  by("others").hidden = Boolean(document.getElementById("report"));
  by("statistics").replaceChildren(...statistics(state.summary));
  if (matchMedia("(max-width: 760px)").matches) by("filters").open = false;
  state.all = await source.ask("histograms", []);
  listen();
  openTab("pairs");
}

begin();
