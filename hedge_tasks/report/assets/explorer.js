// The list of a run's questions: search, filters, order, keyboard, a link to each. Texts come from models and data
// sets: they only ever become text nodes. question.js shows the one that is chosen.
"use strict";

const ROW = 76;      // pixels; the style sheet has the same
const AROUND = 6;    // rows drawn above and below what is visible
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

// Everything that is searched, in lower case.
function wordsOf(question) {
  question.words ??= [question.id, question.question, question.reference, ...question.texts].filter(Boolean).join("\n").toLowerCase();
  return question.words;
}

const ORDERS = {
  "as asked": () => null,
  "most confident hallucinations first": (q, score) => (q.label === 1 ? score : null),
  "false alarms first (supported, highest score)": (q, score) => (q.label === 0 && score !== null ? -score : null),
  "highest score first": (q, score) => (score === null ? null : -score),
  "lowest score first": (q, score) => score,
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
    this.canvas = element("div", { className: "canvas" });
    this.canvas.setAttribute("role", "listbox");
    this.canvas.setAttribute("aria-label", "Questions");
    this.canvas.tabIndex = 0;
    this.rows = element("div", { className: "rows" }, this.canvas);
    this.detail = element("article", { className: "detail" });
    this.detail.setAttribute("aria-label", "The chosen question");
    this.rows.addEventListener("scroll", () => this.soon(), { passive: true });
    this.canvas.addEventListener("click", (event) => this.clicked(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    for (const kind of ["focusin", "pointerdown"]) root.addEventListener(kind, () => { Explorer.active = this; });
    root.append(this.controls(), this.count, element("div", { className: "panes" }, element("div", { className: "side" }, this.rows), this.detail));
    this.chosen = null;
    this.update();
    // Its size is known later than its place, and changes with the window.
    new ResizeObserver(() => this.soon()).observe(this.rows);
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
    const types = [...new Set(questions.map((q) => q.question_type).filter(Boolean))].sort();
    this.search = element("input", { type: "search", placeholder: "in question, reference, answers" });
    this.search.addEventListener("input", () => this.update());
    const labels = ["all", "hallucinated", "supported", "unlabelled"];
    const box = element("div", { className: "controls" },
      element("label", { className: "find" }, "Search (/)", this.search),
      this.select("order", "Order", Object.keys(ORDERS).map((name) => [name, name])),
      this.select("score", "Score", scores.map((name) => [name, this.scoreName(name)])),
      this.select("clustering", "Clustering", clusterings.map((name) => [name, name])),
      this.select("label", "Label", labels.map((name) => [name, name])));
    if (types.length) box.append(this.select("type", "Question type", [["", "all"], ...types.map((type) => [type, type])]));
    if (this.data.leading) this.clustering.value = this.data.leading;
    return box;
  }

  update() {
    const clustering = this.clustering.value, score = this.score.value, wanted = this.search.value.trim().toLowerCase();
    const { questions } = this.data;
    const order = ORDERS[this.order.value];
    const keyed = questions.filter((q) => this.accepts(q, wanted)).map((q) => ({ q, key: order(q, q.scores[clustering]?.[score] ?? null) }));
    keyed.sort((a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.q.place - b.q.place;
      return a.key - b.key || a.q.place - b.q.place;
    });
    this.list = keyed.map(({ q }) => q);
    const left = this.data.left_out ? `; ${this.data.left_out} more are not in this file` : "";
    this.count.textContent = `${this.list.length} of ${questions.length} questions${left}`;
    this.canvas.style.height = `${this.list.length * ROW}px`;
    const at = this.place();
    if (at >= 0) this.reveal(at);
    else this.rows.scrollTop = 0;
    this.draw(true);
    if (this.chosen) this.show();
  }

  accepts(question, wanted) {
    if (this.label.value !== "all" && labelOf(question) !== this.label.value) return false;
    if (this.type?.value && question.question_type !== this.type.value) return false;
    return !wanted || wordsOf(question).includes(wanted);
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
    for (let i = first; i < last; i += 1) {
      if (this.drawn.has(i)) continue;
      this.drawn.set(i, this.row(this.list[i], i));
      this.canvas.append(this.drawn.get(i));
    }
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
    const badge = element("span", { className: `badge ${labelOf(question)}`, textContent: labelOf(question) });
    const scores = question.scores[this.clustering.value] ?? {};
    const names = [...new Set([this.score.value, "se", "radflag", "vase"])].filter((name) => name in scores).slice(0, 2);
    const facts = names.map((name) => element("span", { textContent: `${this.scoreName(name)} ${format(scores[name])}` }));
    if (question.question_type) facts.push(foreign(question.question_type));
    return element("div", { className: "facts" }, badge, ...facts);
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
    for (let box = this.root.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    if (!question) {
      this.count.textContent = `The question ${id.slice(0, 200)} is not in this file.`;
    } else {
      if (!this.list.includes(question)) {
        this.search.value = "";
        if (this.type) this.type.value = "";
        this.label.value = "all";
        this.update();
      }
      Explorer.active = this;
      this.choose(this.list.indexOf(question), { quiet: true });
    }
    this.root.scrollIntoView({ block: "start" });
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
  const asked = new URLSearchParams(location.hash.slice(1));
  if (!asked.has("q")) return;
  const has = (explorer) => explorer.data.questions.some((q) => q.id === asked.get("q"));
  (Explorer.all[Number(asked.get("run") ?? NaN)] ?? Explorer.all.find(has) ?? Explorer.all[0])?.open(asked.get("q"));
}

// The explorer that keys are about: the one last used, else the first on the screen, else the first that is unfolded.
function current() {
  const on = (least, most) => (explorer) => {
    const box = explorer.root.getBoundingClientRect();
    return box.height > 0 && box.bottom > least && box.top < most;
  };
  const visible = on(0, innerHeight);
  if (Explorer.active && visible(Explorer.active)) return Explorer.active;
  return Explorer.all.find(visible) ?? Explorer.all.find(on(-Infinity, Infinity));
}

// j, k: next and previous question; /: search; Escape leaves the search.
function pressed(event) {
  const explorer = current();
  if (!explorer || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && event.target === explorer.search) {
    explorer.search.value = "";
    explorer.update();
    explorer.canvas.focus({ preventScroll: true });
  }
  if (event.target.closest?.("input, select, textarea")) return;
  const does = { j: () => explorer.step(1), k: () => explorer.step(-1), "/": () => explorer.search.focus() }[event.key];
  if (!does) return;
  event.preventDefault();
  does();
}
