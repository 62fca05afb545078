// One question: what was asked and seen, what the judge said, how the answers were grouped, and where its numbers come
// from. Reads what explorer.js holds; like there, texts only ever become text nodes.
"use strict";

const SHOWN_TERMS = 12;

function part(title, ...what) {
  return element("section", {}, element("h4", { textContent: title }), ...what);
}

function quiet(text) {
  return element("p", { className: "quiet", textContent: text });
}

// A line of a calculation, wide ones in a box of their own that scrolls.
function formula(text) {
  return element("p", { className: "formula", textContent: text });
}

function quoted(text) {
  const cut = text.length > 80 ? `${text.slice(0, 80)}…` : text;
  return element("q", { className: "foreign", dir: "auto", textContent: cut || "(empty)" });
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

function entropyOf(shares) {
  return Math.max(0, -sum(shares.filter((p) => p > 0).map((p) => p * Math.log(p))));
}

// −(0.62 ln 0.62 + ...), the largest first.
function entropyText(shares) {
  const known = shares.filter((p) => p > 0).sort((a, b) => b - a);
  const terms = known.slice(0, SHOWN_TERMS).map((p) => `${p.toFixed(3)} ln ${p.toFixed(3)}`);
  if (known.length > SHOWN_TERMS) terms.push(`${known.length - SHOWN_TERMS} more terms`);
  return `−(${terms.join(" + ")})`;
}

class QuestionView {
  constructor(explorer, question) {
    this.explorer = explorer;
    this.data = explorer.data;
    this.question = question;
    this.first = explorer.clustering.value;
  }

  parts() {
    return [this.head(), this.asked(), this.pictures(), this.scores(), this.groups(), this.numbers()].filter(Boolean);
  }

  text(i) {
    return this.question.texts[this.question.answers[i]];
  }

  kind(i) {
    return i === 0 ? "baseline" : i <= this.question.n_clean ? "clean" : "noisy";
  }

  head() {
    const { explorer, question } = this;
    const at = explorer.place();
    const step = (text, by, label) => {
      const button = element("button", { type: "button", textContent: text, title: label });
      button.setAttribute("aria-label", label);
      button.disabled = at + by < 0 || at + by >= explorer.list.length;
      button.addEventListener("click", () => {
        explorer.step(by);
        explorer.detail.querySelector(`.head button[aria-label="${label}"]`)?.focus();
      });
      return button;
    };
    const link = element("a", { href: explorer.address(question) });
    link.append(foreign(question.id));
    const place = element("span", { className: "quiet", textContent: at < 0 ? "not in the list" : `${at + 1} of ${explorer.list.length}` });
    return element("div", { className: "head" }, link, place,
      step("↑ k", -1, "previous question"), step("↓ j", 1, "next question"));
  }

  asked() {
    const { question } = this;
    const list = element("dl");
    const add = (term, ...what) => list.append(element("dt", { textContent: term }), element("dd", {}, ...what));
    const badge = (label) => element("span", { className: `badge ${labelOf({ label })}`, textContent: labelOf({ label }) });
    if (question.question) add("question", foreign(question.question));
    add("baseline answer", foreign(this.text(0) || "(empty)"));
    if (question.reference) add("reference", foreign(question.reference));
    const audited = "judged" in question;
    if (audited) add("experts", badge(question.label));
    add("verdict", badge(audited ? question.judged : question.label), ...(question.category ? [" ", foreign(question.category)] : []),
      ...(question.judge ? [" by ", foreign(question.judge)] : []));
    if (question.reason) add("reason", foreign(question.reason));
    if (question.raw && question.raw !== question.reason) add("its reply", foreign(question.raw));
    for (const vote of question.votes ?? []) {
      const said = [vote.category, vote.reason, vote.raw].filter(Boolean).join(" · ");
      add("a vote", badge(vote.label), " by ", foreign(vote.judge ?? "an unknown judge"), ...(said ? [": ", foreign(said)] : []));
    }
    return element("section", {}, list);
  }

  pictures() {
    const { question, explorer } = this;
    return question.images && element("section", { className: "seen" },
      ...question.images.map((place) => explorer.image(place, "", "picture of the question")));
  }

  scores() {
    const { data, question } = this;
    const known = data.scores.filter((name) => data.clusterings.some((c) => question.scores[c]?.[name] != null));
    if (!known.length) return null;
    const table = element("table", { className: "numbers" });
    const head = table.createTHead().insertRow();
    for (const text of ["detector", ...data.clusterings]) head.append(element("th", { textContent: text, scope: "col" }));
    const body = table.createTBody();
    for (const name of known) {
      const row = body.insertRow();
      row.append(element("th", { textContent: this.explorer.scoreName(name), scope: "row", title: data.detectors[name]?.title ?? "" }));
      for (const clustering of data.clusterings) row.insertCell().textContent = format(question.scores[clustering]?.[name]);
    }
    return part("Scores", scrolling(table, "Scores of this question"));
  }

  groups() {
    if (!this.first) return null;
    const { nodes, n } = this.clusters(this.first);
    return part(`Answers of the same meaning (${this.first}: ${n} ${n === 1 ? "cluster" : "clusters"})`, element("div", { className: "clusters" }, ...nodes));
  }

  clusters(clustering) {
    const { question } = this;
    const members = new Map();
    (question.clusters[clustering] ?? []).forEach((id, i) => {
      const kind = this.kind(i), key = `${kind} ${question.answers[i]}`;
      if (!members.has(id)) members.set(id, new Map());
      const known = members.get(id).get(key) ?? { kind, text: this.text(i), times: 0 };
      known.times += 1;
      members.get(id).set(key, known);
    });
    const size = (entries) => sum([...entries.values()].map((entry) => entry.times));
    const sorted = [...members.entries()].sort((a, b) => size(b[1]) - size(a[1]));
    const nodes = sorted.map(([id, entries]) => {
      const items = [...entries.values()].map(({ kind, text, times }) => element("li", {},
        element("span", { className: `kind ${kind}`, textContent: times > 1 ? `${kind} ×${times}` : kind }), foreign(text || "(empty)")));
      const n = size(entries);
      return element("div", { className: "cluster" },
        element("h5", { textContent: `Cluster ${id}: ${n} ${n === 1 ? "answer" : "answers"}` }), element("ul", {}, ...items));
    });
    return { nodes, n: sorted.length };
  }

  // Weights of some answers, as in the semantic distribution: exp of the mean log-probability, or all the same.
  weights(places) {
    const { question } = this;
    if (question.uniform) return places.map(() => 1);
    const logprobs = places.map((i) => question.logprobs[i] ?? -Infinity);
    const most = Math.max(...logprobs);
    return logprobs.map((value) => Math.exp(value - most));
  }

  shares(places, ids, support) {
    const weights = this.weights(places), total = sum(weights);
    return support.map((id) => sum(places.map((i, k) => (ids[i] === id ? weights[k] : 0))) / total);
  }

  // What a cluster says: the text most often in it.
  meaning(ids, id) {
    const times = new Map();
    ids.forEach((other, i) => { if (other === id) times.set(this.text(i), (times.get(this.text(i)) ?? 0) + 1); });
    return [...times.entries()].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "";
  }

  numbers() {
    const { question } = this;
    const ids = question.clusters[this.first];
    const clean = [...Array(question.n_clean).keys()].map((i) => i + 1);
    if (!ids || !clean.length) return null;
    const noisy = [...ids.keys()].slice(1 + question.n_clean);
    const scores = question.scores[this.first] ?? {};
    const has = (name) => scores[name] !== null && scores[name] !== undefined;
    const made = [
      has("radflag") && this.radflag(ids, clean, scores.radflag),
      has("se") && this.entropy(ids, clean, scores.se),
      has("vase") && noisy.length && this.vase(ids, clean, noisy, scores.vase),
    ].filter(Boolean);
    return made.length ? part(`Where the numbers come from (${this.first})`, ...made) : null;
  }

  radflag(ids, clean, value) {
    const apart = clean.filter((i) => ids[i] !== ids[0]);
    const counts = new Map();
    for (const i of apart) counts.set(this.text(i), (counts.get(this.text(i)) ?? 0) + 1);
    const items = [...counts.entries()].sort((a, b) => b[1] - a[1])
      .map(([text, times]) => element("li", {}, `${times} × `, quoted(text)));
    const box = element("div", { className: "number radflag" }, element("h5", { textContent: "RadFlag" }),
      element("p", {}, `${apart.length} of ${clean.length} clean answers do not mean what the baseline answer `, quoted(this.text(0)), ` means${apart.length ? ":" : "."}`));
    if (items.length) box.append(element("ul", {}, ...items));
    box.append(formula(`RadFlag = ${apart.length} / ${clean.length} = ${format(value)}`));
    return box;
  }

  distribution(rows, heads) {
    const table = element("table", { className: "numbers" });
    const head = table.createTHead().insertRow();
    for (const text of heads) head.append(element("th", { textContent: text, scope: "col" }));
    const body = table.createTBody();
    for (const [text, ...values] of rows) {
      const row = body.insertRow();
      row.append(element("th", { scope: "row" }, quoted(text)));
      for (const value of values) row.insertCell().textContent = typeof value === "string" ? value : format(value);
    }
    return scrolling(table, "Meanings and their probabilities");
  }

  weighing() {
    return this.question.uniform ? "Every answer weighs the same: log-probabilities are missing."
      : "An answer weighs exp(its mean log-probability), so that likely answers count for more.";
  }

  entropy(ids, clean, value) {
    const support = [...new Set(clean.map((i) => ids[i]))];
    const s = this.shares(clean, ids, support);
    const rows = support.map((id, k) => [this.meaning(ids, id), String(clean.filter((i) => ids[i] === id).length), s[k]]);
    rows.sort((a, b) => b[2] - a[2]);
    return element("div", { className: "number se" }, element("h5", { textContent: "Semantic entropy (SE)" }), quiet(this.weighing()),
      this.distribution(rows, ["meaning", "clean answers", "s"]),
      formula(`SE = −Σ s ln s = ${entropyText(s)} = ${format(value)} nats`));
  }

  vase(ids, clean, noisy, value) {
    const alpha = this.data.alphas[this.first] ?? 1;
    const support = [...new Set(ids)];
    const s = this.shares(clean, ids, support), t = this.shares(noisy, ids, support);
    const z = s.map((share, k) => share + alpha * (share - t[k]));
    const top = Math.max(...z), raised = z.map((v) => Math.exp(v - top));
    const p = raised.map((v) => v / sum(raised));
    const rows = support.map((id, k) => [this.meaning(ids, id), s[k], t[k], z[k], p[k]]);
    rows.sort((a, b) => b[4] - a[4]);
    return element("div", { className: "number vase" }, element("h5", { textContent: "VASE" }),
      quiet(`What noise in the picture changes is amplified: z = s + α (s − s noisy) with α = ${alpha}, p = softmax(z).`),
      this.distribution(rows, ["meaning", "s clean", "s noisy", "z", "p"]),
      formula(`VASE = −Σ p ln p = ${entropyText(p)} = ${format(value)} nats`));
  }
}

function scrolling(table, name) {
  table.prepend(element("caption", { textContent: name }));
  const box = element("div", { className: "scroll" }, table);
  setUpScrolling(box);
  return box;
}

document.querySelectorAll(".explorer").forEach((root, i) => Explorer.all.push(new Explorer(root, i)));
// What was chosen before all runs were there has an address without its run.
Explorer.all.forEach((explorer) => { if (explorer.chosen) explorer.show(); });
document.addEventListener("keydown", pressed);
window.addEventListener("hashchange", openLinked);
openLinked();
