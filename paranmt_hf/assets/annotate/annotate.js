"use strict";
// The page shows what is stored: an answer appears, and the next pair comes, when the program has said that it is on
// the disk. Actions wait for each other, so that fast typing is taken in order.

const element = (id) => document.getElementById(id);
const QUESTIONS = ["strength", "fluency"];
const LETTERS = ["A", "B"];
const NOTE_DELAY = 500;
const state = { name: "", items: [], at: 0, question: "strength", done: [] };

class Problem extends Error {}

// Asking the program.

async function ask(address, options = {}) {
  let answer;
  try {
    answer = await fetch(address, { ...options, signal: AbortSignal.timeout(30000) });
  } catch {
    throw new Problem(
      "Not stored: the program does not answer. Start it again and open the address that it prints; what was stored before is there.",
    );
  }
  const isJson = (answer.headers.get("content-type") ?? "").startsWith("application/json");
  const values = isJson ? await answer.json() : { error: (await answer.text()).trim() };
  if (!answer.ok && answer.status !== 409) throw new Problem(`The program says: ${values.error}`);
  return { outdated: answer.status === 409, values };
}

async function store(item, change, { undoable = true } = {}) {
  const before = item.answer;
  const { outdated, values } = await ask(`answers/${item.item}`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ annotator: state.name, ...before, ...change }),
  });
  item.answer = values.answer;
  if (outdated) {
    throw new Problem("This pair was answered elsewhere meanwhile, in another window for example. What you see now is stored.");
  }
  if (undoable) state.done.push({ item, before, question: state.question });
}

// One action after the other; what was typed after one that failed is dropped.
let waiting = Promise.resolve();
let failures = 0;

function act(action) {
  const known = failures;
  waiting = waiting.then(async () => {
    if (failures !== known) return;
    try {
      await action();
      element("alert").hidden = true;
    } catch (error) {
      failures += 1;
      element("alert").textContent = error instanceof Problem ? error.message : `The page failed: ${error.message}`;
      element("alert").hidden = false;
      if (state.items.length) show();
      window.scrollTo(0, 0);
    }
  });
}

// What a person does.

const current = () => state.items[state.at];
const isDone = (item) => item.answer.skipped || QUESTIONS.every((question) => item.answer[question] !== null);

async function rate(question, value) {
  const item = current();
  state.question = question;
  await store(item, { [question]: value, skipped: false });
  if (question === "strength") state.question = "fluency";
  else if (item.answer.strength === null) state.question = "strength";
  else return nextOpen();
  show();
}

async function skip() {
  if (current().answer.skipped) {
    await store(current(), { skipped: false });
    return show();
  }
  await store(current(), { skipped: true, strength: null, fluency: null });
  nextOpen();
}

async function undo() {
  const last = state.done.at(-1);
  if (!last) return say("There is nothing to take back.");
  const { strength, fluency, skipped, note } = last.before;
  await store(last.item, { strength, fluency, skipped, note }, { undoable: false });
  state.done.pop();
  goTo(state.items.indexOf(last.item), last.question);
  say("Taken back.");
}

async function keepNote() {
  const item = current();
  const note = element("note").value.trim();
  if (item && note !== item.answer.note) {
    // A note is taken back as a whole, though it is stored in between.
    const last = state.done.at(-1);
    await store(item, { note }, { undoable: !(last?.isNote && last.item === item) });
    state.done.at(-1).isNote = true;
    showState(item);
    showProgress();
  }
}

function goTo(at, question) {
  state.at = Math.max(0, Math.min(at, state.items.length));
  const item = current();
  if (item) {
    const open = QUESTIONS.find((name) => item.answer[name] === null);
    state.question = question ?? (item.answer.skipped ? "strength" : (open ?? "strength"));
  }
  show({ moved: true });
}

function nextOpen() {
  // Who began a note while the answer was on its way writes it about this pair.
  if (document.activeElement === element("note")) return show();
  const order = [...state.items.keys()];
  const found = [...order.slice(state.at + 1), ...order.slice(0, state.at)].find((at) => !isDone(state.items[at]));
  goTo(found ?? state.items.length);
}

// What a person sees.

function show({ moved = false } = {}) {
  const item = current();
  const kept = document.activeElement?.closest(".tools, #guidelines, #note-box");
  for (const name of ["start", "rate", "end"]) element(name).hidden = name !== (item ? "rate" : "end");
  showProgress();
  if (!item) return showEnd();
  element("position").textContent = `Pair ${state.at + 1} of ${state.items.length}`;
  showState(item);
  const rated = item.answer.strength !== null;
  item.sentences.forEach((sentence, index) => {
    const shown = element(`sentence-${index}`);
    shown.querySelector(".text").textContent = sentence;
    // Which one is the translation shows only when its English is asked for.
    shown.classList.toggle("marked", state.question === "fluency" && index === item.translation);
  });
  element("fluency-asked").textContent =
    rated || state.question === "fluency"
      ? `How good is the English of ${LETTERS[item.translation]}?`
      : "Then: the English of one of them";
  for (const question of QUESTIONS) {
    element(question).classList.toggle("active", question === state.question);
    for (const button of element(question).querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(item.answer[question] === Number(button.value)));
    }
  }
  // What could not be stored of a note stays in its box.
  if (moved) element("note").value = item.answer.note;
  element("note-box").hidden = !element("note").value && document.activeElement !== element("note");
  element("skip").setAttribute("aria-pressed", String(item.answer.skipped));
  element("back").disabled = state.at === 0;
  element("undo").disabled = !state.done.length;
  if (moved) window.scrollTo(0, 0);
  if (!kept || kept.querySelector(":disabled:focus")) element(state.question).focus({ preventScroll: moved });
  if (moved) say(`Pair ${state.at + 1} of ${state.items.length}. A: ${item.sentences[0]} B: ${item.sentences[1]}`);
}

function showState(item) {
  const { strength, fluency, skipped, note } = item.answer;
  const given = [strength, fluency].filter((label) => label !== null).length;
  const words = skipped ? "skipped" : ["", "one of two answers stored", "stored"][given];
  element("state").textContent = [words, note && "note stored"].filter(Boolean).join(", ");
}

function showProgress() {
  const done = state.items.filter(isDone).length;
  element("progress").hidden = false;
  element("bar").max = state.items.length;
  element("bar").value = done;
  element("count").textContent = `${done} of ${state.items.length} done`;
}

function showEnd() {
  const left = state.items.filter((item) => !isDone(item));
  const skipped = state.items.filter((item) => item.answer.skipped);
  const counted = (items) => `${items.length} ${items.length === 1 ? "pair" : "pairs"}`;
  element("end-title").textContent = left.length ? `${counted(left)} to go` : "Everything is rated. Thank you!";
  const rest = skipped.length ? ` ${counted(skipped)} skipped; you may still rate them.` : "";
  element("end-text").textContent = left.length
    ? "This was the last pair; these are not rated yet."
    : `All answers are stored; you may close this page.${rest}`;
  const listed = (left.length ? left : skipped).slice(0, 100);
  element("left").replaceChildren(
    ...listed.map((item) => choice(`Pair ${state.items.indexOf(item) + 1}`, item.sentences[0], () => goTo(state.items.indexOf(item)))),
  );
  element("end-undo").disabled = !state.done.length;
  say(`${element("end-title").textContent} ${element("end-text").textContent}`);
  (element("left").querySelector("button") ?? element("end")).focus();
}

function choice(text, beside, action) {
  const button = document.createElement("button");
  const after = document.createElement("span");
  button.type = "button";
  after.textContent = beside;
  button.append(text, after);
  button.addEventListener("click", () => act(action));
  const entry = document.createElement("li");
  entry.append(button);
  return entry;
}

function say(text) {
  element("said").textContent = text;
}

// Who rates.

async function begin(name) {
  const { values } = await ask(`items?annotator=${encodeURIComponent(name)}`);
  Object.assign(state, { name: values.annotator, items: values.items, at: 0, done: [] });
  const address = new URL(location.href);
  address.searchParams.set("annotator", state.name);
  history.replaceState(null, "", address);
  element("name").textContent = state.name;
  element("who").hidden = false;
  const first = state.items.findIndex((item) => !isDone(item));
  goTo(first < 0 ? state.items.length : first);
}

async function chooseName() {
  const { values } = await ask("annotators");
  state.items = [];
  for (const name of ["start", "rate", "end"]) element(name).hidden = name !== "start";
  element("who").hidden = element("progress").hidden = true;
  element("new").hidden = !values.open;
  element("people").replaceChildren(
    ...values.annotators.map(({ name, rated, skipped, pairs }) =>
      choice(name, `${rated + skipped} of ${pairs}`, () => begin(name)),
    ),
  );
  (values.open ? element("new-name") : element("people").querySelector("button"))?.focus();
}

// Keys and clicks.

function toggleGuidelines() {
  element("guidelines").open = !element("guidelines").open;
  if (element("guidelines").open) element("guidelines").scrollIntoView({ block: "nearest" });
  else window.scrollTo(0, 0);
}

function writeNote() {
  element("note-box").hidden = false;
  element("note").focus();
  element("note-box").scrollIntoView({ block: "nearest" });
}

const KEYS = {
  ArrowLeft: () => act(() => goTo(state.at - 1)),
  Backspace: () => act(() => goTo(state.at - 1)),
  ArrowRight: () => act(() => goTo(state.at + 1)),
  ArrowUp: () => act(() => goToQuestion("strength")),
  ArrowDown: () => act(() => goToQuestion("fluency")),
  u: () => act(undo),
  s: () => act(async () => current() && skip()),
  n: () => current() && writeNote(),
};

function goToQuestion(question) {
  state.question = question;
  if (current()) show();
}

function pressDigit(digit) {
  act(async () => {
    if (!current()) return;
    const button = element(state.question).querySelector(`button[value="${digit}"]`);
    if (button) await rate(state.question, Number(digit));
    else say("That is no answer to this question.");
  });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea")) {
    if (event.key === "Escape") element(state.question).focus();
    return;
  }
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (key === "g" && !event.repeat) toggleGuidelines();
  // The guidelines scroll with the arrows while they have the focus.
  else if (!state.items.length || (event.target.closest("#guidelines") && key.startsWith("Arrow"))) return;
  else if (/^[0-9]$/.test(key)) {
    if (!event.repeat) pressDigit(key);
  } else if (KEYS[key] && !(event.repeat && !key.startsWith("Arrow"))) KEYS[key]();
  else return;
  event.preventDefault();
});

for (const question of QUESTIONS) {
  for (const button of element(question).querySelectorAll("button")) {
    button.addEventListener("click", () => act(() => rate(question, Number(button.value))));
  }
}
for (const id of ["back", "end-back"]) element(id).addEventListener("click", KEYS.ArrowLeft);
for (const id of ["undo", "end-undo"]) element(id).addEventListener("click", KEYS.u);
element("next").addEventListener("click", KEYS.ArrowRight);
element("skip").addEventListener("click", KEYS.s);
element("write").addEventListener("click", KEYS.n);
element("change").addEventListener("click", () => act(chooseName));
element("new").addEventListener("submit", (event) => {
  event.preventDefault();
  act(() => begin(element("new-name").value));
});

let noteTimer;
element("note").addEventListener("input", () => {
  clearTimeout(noteTimer);
  noteTimer = setTimeout(() => act(keepNote), NOTE_DELAY);
});
element("note").addEventListener("blur", () => {
  clearTimeout(noteTimer);
  act(keepNote);
});

// Beside the pair there is room for the guidelines; on a narrow screen they are folded.
const narrow = matchMedia("(max-width: 60rem)");
const fold = () => (element("guidelines").open = !narrow.matches);
narrow.addEventListener("change", fold);
fold();

const chosen = new URL(location.href).searchParams.get("annotator");
act(async () => {
  if (!chosen) return chooseName();
  try {
    await begin(chosen);
  } catch (error) {
    // A name that may not rate: whoever it is may choose another.
    await chooseName();
    throw error;
  }
});
