// The list of a run's questions: search, filters, order, keyboard, a link to each. Texts come from models and data
// sets: they only ever become text nodes. question.js shows the one that is chosen.
"use strict";

const ROW = 76;      // pixels; the style sheet has the same
const AROUND = 6;    // rows drawn above and below what is visible
const PRINTED = 40;
const LABELS = { 1: "hallucinated", 0: "supported" };

function labelOf(question) {
  return LABELS[question.label] ?? "unlabelled";
}

function foreign(text, name) {
  return element(name || "span", { className: "foreign", dir: "auto", textContent: text });
}

function format(value) {
  return value === null || value === undefined ? "undefined" : value.toFixed(3).replace("-", "−");
}

// Share of the questions with a lower score, ties in the middle: what makes scores of different units comparable.
function ranks(questions, clustering, score) {
  const values = questions.map((q) => q.scores[clustering]?.[score] ?? null);
  const known = values.filter((v) => v !== null).sort((a, b) => a - b);
  const below = (v) => {
    let low = 0, high = known.length;
    while (low < high) { const mid = (low + high) >> 1; if (known[mid] < v) low = mid + 1; else high = mid; }
    return low;
  };
  const upTo = (v) => {
    let low = 0, high = known.length;
    while (low < high) { const mid = (low + high) >> 1; if (known[mid] <= v) low = mid + 1; else high = mid; }
    return low;
  };
  return values.map((v) => (v === null ? null : (below(v) + upTo(v)) / 2 / known.length));
}

const ORDERS = {
  "as asked": () => null,
  "most confident hallucinations first": (q, score) => (q.label === 1 ? score : null),
  "false alarms first (supported, highest score)": (q, score) => (q.label === 0 && score !== null ? -score : null),
  "highest score first": (q, score) => (score === null ? null : -score),
  "lowest score first": (q, score) => score,
  "scores disagree most first": (q, score, spread) => (spread === null ? null : -spread),
};

class Explorer {
  static all = [];
  static active = null;

  constructor(root, run) {
    this.root = root;
    this.run = run;
    this.data = JSON.parse(document.getElementById(root.dataset.source).textContent);
    this.data.questions.forEach((q, i) => { q.place = i; });
    this.count = element("p", { className: "quiet count" });
    this.count.setAttribute("role", "status");
    this.nothing = element("p", { className: "quiet nothing", textContent: "No question is left by these filters.", hidden: true });
    this.canvas = element("div", { className: "canvas" });
    this.canvas.setAttribute("role", "listbox");
    this.canvas.setAttribute("aria-label", "Questions");
    this.canvas.tabIndex = 0;
    this.rows = element("div", { className: "rows" }, this.canvas);
    this.detail = element("article", { className: "detail" });
    this.detail.setAttribute("aria-label", "The chosen question");
    this.printed = element("div", { className: "printed" });
    this.rows.addEventListener("scroll", () => this.soon(), { passive: true });
    this.canvas.addEventListener("click", (event) => this.clicked(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    root.addEventListener("focusin", () => { Explorer.active = this; });
    root.addEventListener("pointerdown", () => { Explorer.active = this; });
    root.append(this.controls(), this.count, element("div", { className: "panes" },
      element("div", { className: "side" }, this.rows, this.nothing), this.detail), this.printed);
    this.chosen = null;
    this.update();
    // Its size is known later than its place, and changes with the window.
    if (window.ResizeObserver) new ResizeObserver(() => this.soon()).observe(this.rows);
    if (this.list.length) this.choose(0, { quiet: true });
  }

  select(name, title, options) {
    const made = element("select", { name });
    for (const [value, text] of options) made.append(element("option", { value, textContent: text }));
    made.addEventListener("change", () => this.update());
    this[name] = made;
    return element("label", {}, title, made);
  }

  scoreName(name) {
    return this.data.detectors[name]?.label ?? name;
  }

  controls() {
    const { clusterings, scores, questions } = this.data;
    const distinct = (key) => [...new Set(questions.map((q) => q[key]).filter(Boolean))].sort();
    const types = distinct("question_type"), kinds = distinct("category");
    const box = element("div", { className: "controls" });
    this.search = element("input", { type: "search", placeholder: "in question, reference, answers" });
    let waiting;
    this.search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.update(), 150);
    });
    box.append(element("label", { className: "find" }, "Search", this.search));
    box.append(this.select("order", "Order", Object.keys(ORDERS).map((name) => [name, name])));
    box.append(this.select("score", "Score", scores.map((name) => [name, this.scoreName(name)])));
    box.append(this.select("clustering", "Clustering", clusterings.map((name) => [name, name])));
    if (clusterings.length > 1) {
      box.append(this.select("beside", "Beside it", [["", "none"], ...clusterings.map((name) => [name, name])]));
      this.beside.value = clusterings[1];
    }
    const labels = ["all", "hallucinated", "supported", "unlabelled"];
    box.append(this.select("label", "Label", labels.map((name) => [name, name])));
    if (types.length) box.append(this.select("type", "Question type", [["", "all"], ...types.map((type) => [type, type])]));
    if (kinds.length > 1) box.append(this.select("category", "Category", [["", "all"], ...kinds.map((kind) => [kind, kind])]));
    if (questions.some((q) => q.seen)) box.append(this.select("seen", "Pictures", [["", "all"], ["noisy", "with noisy pictures"]]));
    const keys = element("button", { type: "button", textContent: "Keys" });
    keys.addEventListener("click", showKeys);
    box.append(keys);
    return box;
  }

  update() {
    const clustering = this.clustering.value, score = this.score.value, wanted = this.search.value.trim().toLowerCase();
    const { questions } = this.data;
    const order = ORDERS[this.order.value];
    const spreads = this.order.value.startsWith("scores disagree") ? this.spreads(clustering) : null;
    const keyed = [];
    for (const q of questions) {
      if (!this.accepts(q, wanted)) continue;
      keyed.push({ q, key: order(q, q.scores[clustering]?.[score] ?? null, spreads ? spreads[q.place] : null) });
    }
    keyed.sort((a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.q.place - b.q.place;
      return a.key - b.key || a.q.place - b.q.place;
    });
    this.list = keyed.map(({ q }) => q);
    const left = this.data.left_out ? `; ${this.data.left_out} more are not in this file` : "";
    this.count.textContent = `${this.list.length} of ${questions.length} questions${left}`;
    this.canvas.style.height = `${this.list.length * ROW}px`;
    this.rows.hidden = !this.list.length;
    this.nothing.hidden = Boolean(this.list.length);
    const at = this.place();
    if (at >= 0) this.reveal(at);
    else this.rows.scrollTop = 0;
    this.draw(true);
    if (this.chosen) this.show();
  }

  spreads(clustering) {
    const columns = ["se", "radflag", "vase"].map((name) => ranks(this.data.questions, clustering, name));
    return this.data.questions.map((q, i) => {
      const known = columns.map((column) => column[i]).filter((v) => v !== null);
      return known.length > 1 ? Math.max(...known) - Math.min(...known) : null;
    });
  }

  accepts(question, wanted) {
    if (this.label.value !== "all" && labelOf(question) !== this.label.value) return false;
    if (this.type?.value && question.question_type !== this.type.value) return false;
    if (this.category?.value && question.category !== this.category.value) return false;
    if (this.seen?.value && !question.seen) return false;
    if (!wanted) return true;
    question.words ??= [question.id, question.question, question.reference, ...question.texts].filter(Boolean).join("\n").toLowerCase();
    return question.words.includes(wanted);
  }

  soon() {
    this.waiting ??= requestAnimationFrame(() => { this.waiting = null; this.draw(false); });
  }

  // Only the rows that can be seen are there: thousands would take seconds to lay out.
  draw(anew) {
    const height = this.rows.clientHeight || 600;
    const first = Math.max(0, Math.floor(this.rows.scrollTop / ROW) - AROUND);
    const last = Math.min(this.list.length, Math.ceil((this.rows.scrollTop + height) / ROW) + AROUND);
    if (anew) { this.drawn = new Map(); this.canvas.replaceChildren(); }
    for (const [i, row] of this.drawn) {
      if (i < first || i >= last) { row.remove(); this.drawn.delete(i); }
    }
    const added = document.createDocumentFragment();
    for (let i = first; i < last; i += 1) {
      if (!this.drawn.has(i)) {
        const row = this.row(this.list[i], i);
        this.drawn.set(i, row);
        added.append(row);
      }
    }
    this.canvas.append(added);
    this.mark();
  }

  mark() {
    const at = this.place();
    for (const [i, row] of this.drawn) row.setAttribute("aria-selected", String(i === at));
    if (this.drawn.has(at)) this.canvas.setAttribute("aria-activedescendant", this.drawn.get(at).id);
    else this.canvas.removeAttribute("aria-activedescendant");
  }

  place() {
    return this.chosen ? this.list.indexOf(this.chosen) : -1;
  }

  row(question, i) {
    const texts = element("div", { className: "texts" },
      foreign(question.question ?? question.id, "div"),
      foreign(question.texts[question.answers[0]] || "(empty)", "div"), this.facts(question));
    const row = element("div", { className: "card", id: `row-${this.run}-${i}` }, texts);
    row.dataset.place = i;
    if (question.images) row.prepend(this.image(question.images[0], "small", ""));
    row.style.top = `${i * ROW}px`;
    row.setAttribute("role", "option");
    row.setAttribute("aria-setsize", this.list.length);
    row.setAttribute("aria-posinset", i + 1);
    return row;
  }

  image(place, className, alt) {
    return element("img", { src: this.data.images[place], alt, className, decoding: "async" });
  }

  facts(question) {
    const facts = element("div", { className: "facts" });
    facts.append(element("span", { className: `badge ${labelOf(question)}`, textContent: labelOf(question) }));
    const scores = question.scores[this.clustering.value] ?? {};
    const names = this.data.scores.includes(this.score.value) ? [this.score.value] : [];
    for (const name of [...names, ...["se", "radflag", "vase"].filter((n) => !names.includes(n) && n in scores)].slice(0, 2)) {
      facts.append(element("span", { textContent: `${this.scoreName(name)} ${format(scores[name])}` }));
    }
    if (question.question_type) facts.append(foreign(question.question_type));
    return facts;
  }

  clicked(event) {
    const row = event.target.closest(".card");
    if (row) this.choose(Number(row.dataset.place), { jump: true });
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.rows.clientHeight / ROW) - 1);
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.list.length, End: this.list.length }[event.key];
    if (by === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.step(by);
  }

  step(by) {
    if (!this.list.length) return;
    const at = this.place();
    this.choose(at < 0 ? 0 : Math.min(Math.max(at + by, 0), this.list.length - 1), {});
  }

  // quiet: leaves the address of the page as it is. jump: brings the question into view where it stands below the list.
  choose(i, { quiet, jump }) {
    this.chosen = this.list[i];
    this.reveal(i);
    this.draw(false);
    this.show();
    if (quiet) return;
    Explorer.active = this;
    visit(this.address(this.chosen));
    if (jump && this.detail.offsetTop > this.rows.offsetTop + this.rows.offsetHeight / 2) this.detail.scrollIntoView({ block: "start" });
  }

  address(question) {
    const run = Explorer.all.length > 1 ? `&run=${this.run}` : "";
    return `#q=${encodeURIComponent(question.id)}${run}`;
  }

  reveal(i) {
    const top = i * ROW, height = this.rows.clientHeight || 600;
    if (top < this.rows.scrollTop) this.rows.scrollTop = top;
    else if (top + ROW > this.rows.scrollTop + height) this.rows.scrollTop = top + ROW - height;
  }

  show() {
    this.detail.replaceChildren(...new QuestionView(this, this.chosen).parts());
  }

  // A question by its id; filters that hide it are taken away.
  open(id) {
    const question = this.data.questions.find((q) => q.id === id);
    if (!question) return false;
    if (!this.list.includes(question)) {
      this.search.value = "";
      for (const made of [this.type, this.category, this.seen]) if (made) made.value = "";
      this.label.value = "all";
      this.update();
    }
    Explorer.active = this;
    this.choose(this.list.indexOf(question), { quiet: true });
    return true;
  }

  // On paper nothing scrolls: the first questions of the list, and the one that is open.
  print() {
    const shown = this.list.slice(0, PRINTED);
    const rest = this.list.length - shown.length;
    this.printed.replaceChildren(...shown.map((q) => element("div", { className: "paper" },
      element("div", {}, foreign(q.question ?? q.id)), element("div", {}, foreign(q.texts[q.answers[0]] || "(empty)")), this.facts(q))));
    if (rest > 0) this.printed.append(element("p", { className: "quiet", textContent: `${rest} more questions are not printed.` }));
  }
}

// No entry in the history for each step; a page inside another one may have no address to change.
function visit(address) {
  try {
    history.replaceState(null, "", address);
  } catch {
    // The link in the question still has it.
  }
}

function openLinked() {
  if (!location.hash.startsWith("#q=")) return;
  const asked = new URLSearchParams(location.hash.slice(1));
  const explorers = asked.has("run") ? [Explorer.all[Number(asked.get("run"))]].filter(Boolean) : Explorer.all;
  for (const explorer of explorers) {
    if (explorer.open(asked.get("q"))) {
      explorer.root.scrollIntoView({ block: "start" });
      return;
    }
  }
  for (const explorer of explorers.slice(0, 1)) {
    explorer.count.textContent = `The question ${asked.get("q").slice(0, 200)} is not in this file.`;
    explorer.root.scrollIntoView({ block: "start" });
  }
}

// The explorer that keys are about: the one last used, else the first that can be seen.
function current() {
  const visible = (explorer) => {
    const box = explorer.root.getBoundingClientRect();
    return box.bottom > 0 && box.top < innerHeight;
  };
  if (Explorer.active && visible(Explorer.active)) return Explorer.active;
  return Explorer.all.find(visible) ?? Explorer.active ?? Explorer.all[0];
}

const KEYS = [
  ["j", "next question"], ["k", "previous question"], ["/", "search"], ["Esc", "leave the search, close this"],
  ["↑ ↓ Page Home End", "move in the list, once it has the focus"], ["?", "this list"],
];

function showKeys() {
  let dialog = document.querySelector("dialog.keys");
  if (!dialog) {
    const list = element("dl", {}, ...KEYS.flatMap(([key, text]) => [
      element("dt", {}, element("kbd", { textContent: key })), element("dd", { textContent: text })]));
    const close = element("button", { type: "button", textContent: "Close" });
    const head = element("h2", { id: "keys-title", textContent: "Keys" });
    dialog = element("dialog", { className: "keys" }, head, list, close);
    dialog.setAttribute("aria-labelledby", "keys-title");
    close.addEventListener("click", () => dialog.close());
    document.body.append(dialog);
  }
  if (!dialog.open) dialog.showModal();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const explorer = current();
  if (!explorer) return;
  if (event.key === "Escape" && event.target === explorer.search) {
    explorer.search.value = "";
    explorer.update();
    explorer.canvas.focus({ preventScroll: true });
    return;
  }
  if (event.target.closest?.("input, select, textarea, [contenteditable]")) return;
  const does = {
    j: () => explorer.step(1),
    k: () => explorer.step(-1),
    "/": () => { explorer.search.scrollIntoView({ block: "nearest" }); explorer.search.focus(); explorer.search.select(); },
    "?": showKeys,
  }[event.key];
  if (!does) return;
  event.preventDefault();
  does();
  if (event.key === "j" || event.key === "k") explorer.rows.parentElement.parentElement.scrollIntoView({ block: "nearest" });
}
