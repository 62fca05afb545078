// The explorer of single questions. Texts come from models and data sets: they only ever become text nodes.
"use strict";

const PAGE = 40;
const LABELS = { 1: "hallucinated", 0: "supported" };
const SCORE_NAMES = {
  se: "SE", radflag: "RadFlag", vase: "VASE", discrete_se: "discrete SE", n_clusters: "clusters",
  baseline_nll: "baseline NLL", clean_nll: "mean NLL", lexical: "lexical disagreement",
};

function labelOf(question) {
  return LABELS[question.label] ?? "unlabelled";
}

function foreign(text, name) {
  return element(name || "span", { className: "foreign", dir: "auto", textContent: text });
}

function format(value) {
  return value === null || value === undefined ? "undefined" : value.toFixed(3);
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
  constructor(root) {
    this.root = root;
    this.data = JSON.parse(document.getElementById(root.dataset.source).textContent);
    this.data.questions.forEach((q, i) => { q.place = i; });
    this.shown = PAGE;
    this.cards = element("ul", { className: "cards" });
    this.count = element("p", { className: "quiet count" });
    this.more = element("button", { type: "button", className: "more", textContent: "Show more" });
    this.more.addEventListener("click", () => { this.shown += PAGE; this.draw(); });
    root.append(this.controls(), this.count, this.cards, this.more);
    this.update();
  }

  select(name, title, options) {
    const made = element("select", { name });
    for (const [value, text] of options) made.append(element("option", { value, textContent: text }));
    made.addEventListener("change", () => this.update());
    this[name] = made;
    return element("label", {}, title, made);
  }

  controls() {
    const { clusterings, scores, questions } = this.data;
    const types = [...new Set(questions.map((q) => q.question_type).filter(Boolean))].sort();
    const box = element("div", { className: "controls" });
    box.append(this.select("order", "Order", Object.keys(ORDERS).map((name) => [name, name])));
    box.append(this.select("clustering", "Clustering", clusterings.map((name) => [name, name])));
    box.append(this.select("score", "Score", scores.map((name) => [name, SCORE_NAMES[name] ?? name])));
    const labels = ["all", "hallucinated", "supported", "unlabelled"];
    box.append(this.select("label", "Label", labels.map((name) => [name, name])));
    if (types.length) box.append(this.select("type", "Question type", [["", "all"], ...types.map((type) => [type, type])]));
    this.search = element("input", { type: "search", placeholder: "in question, reference, answers" });
    let waiting;
    this.search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.update(), 150);
    });
    box.append(element("label", {}, "Search", this.search));
    return box;
  }

  update() {
    this.shown = PAGE;
    const clustering = this.clustering.value, score = this.score.value, wanted = this.search.value.toLowerCase();
    const { questions } = this.data;
    const columns = ["se", "radflag", "vase"].map((name) => ranks(questions, clustering, name));
    const order = ORDERS[this.order.value];
    const keyed = questions.map((q, i) => {
      const known = columns.map((column) => column[i]).filter((v) => v !== null);
      const spread = known.length > 1 ? Math.max(...known) - Math.min(...known) : null;
      return { q, key: order(q, q.scores[clustering]?.[score] ?? null, spread) };
    });
    this.list = keyed.filter(({ q }) => this.accepts(q, wanted));
    this.list.sort((a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.q.place - b.q.place;
      return a.key - b.key || a.q.place - b.q.place;
    });
    this.draw();
  }

  accepts(question, wanted) {
    if (this.label.value !== "all" && labelOf(question) !== this.label.value) return false;
    if (this.type?.value && question.question_type !== this.type.value) return false;
    if (!wanted) return true;
    const texts = [question.id, question.question, question.reference, ...question.texts];
    return texts.some((text) => text && text.toLowerCase().includes(wanted));
  }

  draw() {
    const shown = this.list.slice(0, this.shown);
    const left = this.data.left_out ? `; ${this.data.left_out} more are not in this file` : "";
    this.count.textContent = `${this.list.length} of ${this.data.questions.length} questions${left}`;
    this.cards.replaceChildren(...shown.map(({ q }) => this.card(q)));
    this.more.hidden = shown.length === this.list.length;
  }

  card(question) {
    const texts = element("div");
    texts.append(
      element("div", {}, foreign(question.question ?? question.id)),
      element("div", { className: "short foreign", dir: "auto", textContent: question.texts[question.answers[0]] || "(empty)" }),
      this.facts(question),
    );
    const button = element("button", { type: "button" }, texts);
    button.setAttribute("aria-expanded", "false");
    if (question.images) button.prepend(this.image(question.images[0], "small"));
    else button.classList.add("bare");
    const card = element("li", { className: "card" }, button);
    button.addEventListener("click", () => {
      const open = card.querySelector(".body");
      if (open) open.remove();
      else card.append(this.body(question));
      button.setAttribute("aria-expanded", String(!open));
    });
    return card;
  }

  image(place, className) {
    return element("img", { src: this.data.images[place], alt: "picture of this question", className: className || "", loading: "lazy" });
  }

  facts(question) {
    const facts = element("div", { className: "facts" });
    facts.append(element("span", { className: `badge ${labelOf(question)}`, textContent: labelOf(question) }));
    if (question.question_type) facts.append(foreign(question.question_type));
    const scores = question.scores[this.clustering.value] ?? {};
    for (const name of ["se", "radflag", "vase"]) {
      facts.append(element("span", { textContent: `${SCORE_NAMES[name]} ${format(scores[name])}` }));
    }
    return facts;
  }

  body(question) {
    const body = element("div", { className: "body" });
    if (question.images) body.append(element("div", {}, ...question.images.map((place) => this.image(place))));
    const list = element("dl");
    const add = (term, ...what) => list.append(element("dt", { textContent: term }), element("dd", {}, ...what));
    add("id", foreign(question.id));
    if (question.reference) add("reference", foreign(question.reference));
    add("baseline answer", foreign(question.texts[question.answers[0]] || "(empty)"));
    const judged = [labelOf(question), question.category && `category: ${question.category}`, question.judge && `by ${question.judge}`];
    add("verdict", foreign(judged.filter(Boolean).join(", ")));
    if (question.reason) add("reason", foreign(question.reason));
    const scores = question.scores[this.clustering.value] ?? {};
    add("scores", Object.entries(scores).filter(([, v]) => v !== null).map(([name, v]) => `${SCORE_NAMES[name]} ${format(v)}`).join(" · "));
    body.append(list);
    const clusters = this.clusters(question);
    body.append(element("h4", { textContent: `${clusters.length} clusters (${this.clustering.value})` }));
    body.append(element("div", { className: "clusters" }, ...clusters));
    return body;
  }

  clusters(question) {
    const ids = question.clusters[this.clustering.value] ?? [];
    const members = new Map();
    ids.forEach((id, i) => {
      const kind = i === 0 ? "baseline" : i <= question.n_clean ? "clean" : "noisy";
      const key = `${kind} ${question.answers[i]}`;
      if (!members.has(id)) members.set(id, new Map());
      const known = members.get(id).get(key) ?? { kind, text: question.texts[question.answers[i]], times: 0 };
      known.times += 1;
      members.get(id).set(key, known);
    });
    const size = (entries) => [...entries.values()].reduce((sum, entry) => sum + entry.times, 0);
    const sorted = [...members.entries()].sort((a, b) => size(b[1]) - size(a[1]));
    return sorted.map(([id, entries]) => {
      const items = [...entries.values()].map(({ kind, text, times }) => element("li", {},
        element("span", { className: `kind ${kind}`, textContent: times > 1 ? `${kind} ×${times}` : kind }),
        foreign(text || "(empty)")));
      return element("div", { className: "cluster" },
        element("h4", { textContent: `Cluster ${id}: ${size(entries)} answers` }), element("ul", {}, ...items));
    });
  }
}

document.querySelectorAll(".explorer").forEach((root) => new Explorer(root));
