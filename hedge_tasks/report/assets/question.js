// One question: what was asked and seen, what the judge said, how the answers were grouped, and where its numbers come
// from. Reads what explorer.js holds; like there, texts only ever become text nodes.
"use strict";

const NOBODY_SAID = 255, STEPS = 250;
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
    const beside = explorer.beside?.value;
    this.second = beside && beside !== this.first ? beside : "";
  }

  parts() {
    return [this.head(), this.asked(), this.pictures(), this.scores(), this.groups(), this.numbers(), ...this.pairs()].filter(Boolean);
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
    add("verdict", badge(question.label), ...(question.category ? [" ", foreign(question.category)] : []),
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
    if (!question.images && !question.seen) return null;
    const shown = (places, caption) => element("figure", { className: "seen" },
      ...places.map((place) => explorer.image(place, "", `${caption} picture of the question`)), element("figcaption", { textContent: caption }));
    if (!question.seen) return element("section", { className: "seen" }, shown(question.images, "clean"));
    const noisy = question.seen_noisy.map((places, i) => {
      const figure = shown(places, `noisy ${i + 1}`);
      figure.append(foreign(this.text(1 + question.n_clean + i) || "(empty)", "figcaption"));
      return figure;
    });
    return part("As the model saw it", element("div", { className: "seen" }, shown(question.seen, "clean"), ...noisy),
      quiet("Made again from the seeds of the draws, then made smaller; under each noisy picture is what the model answered to it."));
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
      row.append(element("th", { textContent: this.explorer.scoreName(name), scope: "row", title: [data.detectors[name]?.title, data.detectors[name]?.source].filter(Boolean).join(". ") }));
      for (const clustering of data.clusterings) row.insertCell().textContent = format(question.scores[clustering]?.[name]);
    }
    return part("Scores", scrolling(table, "Scores of this question"));
  }

  groups() {
    const columns = [this.first, this.second].filter(Boolean).map((clustering) => {
      const { nodes, n } = this.clusters(clustering);
      return element("div", { className: "grouping" }, element("h5", { textContent: `${clustering}: ${n} ${n === 1 ? "cluster" : "clusters"}` }),
        element("div", { className: "clusters" }, ...nodes));
    });
    const box = element("div", { className: this.second ? "beside" : "" }, ...columns);
    const same = this.second && this.partition(this.first) === this.partition(this.second);
    return part("Answers of the same meaning", ...(same ? [quiet("Both clusterings group the answers in the same way.")] : []), box);
  }

  // The clustering up to the names of its clusters.
  partition(clustering) {
    const names = new Map();
    return (this.question.clusters[clustering] ?? []).map((id) => {
      if (!names.has(id)) names.set(id, names.size);
      return names.get(id);
    }).join();
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
        element("h6", { textContent: `Cluster ${id}: ${n} ${n === 1 ? "answer" : "answers"}` }), element("ul", {}, ...items));
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
      this.others(ids, clean, scores),
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

  others(ids, clean, scores) {
    const { question } = this;
    const lines = [];
    const known = (name) => scores[name] !== null && scores[name] !== undefined;
    const counts = new Map();
    for (const i of clean) counts.set(ids[i], (counts.get(ids[i]) ?? 0) + 1);
    if (known("n_clusters")) lines.push(`${this.explorer.scoreName("n_clusters")} = ${scores.n_clusters}: different meanings among the clean answers`);
    if (known("discrete_se")) {
      const shares = [...counts.values()].map((n) => n / clean.length);
      lines.push(`${this.explorer.scoreName("discrete_se")} = ${entropyText(shares)} = ${format(scores.discrete_se)} nats: shares of the answers, not weighed`);
    }
    if (known("baseline_nll")) lines.push(`${this.explorer.scoreName("baseline_nll")} = −(${format(question.logprobs[0])}) = ${format(scores.baseline_nll)} nats a token`);
    const logprobs = clean.map((i) => question.logprobs[i]);
    if (known("clean_nll") && logprobs.every((v) => v !== null)) {
      lines.push(`${this.explorer.scoreName("clean_nll")} = −(${logprobs.map((v) => v.toFixed(2)).join(" + ").replaceAll("+ -", "− ").replace(/^-/, "−")}) / ${clean.length} = ${format(scores.clean_nll)} nats a token`);
    }
    if (!lines.length) return null;
    return element("div", { className: "number" }, element("h5", { textContent: "Simple baselines" }), ...lines.map(formula));
  }

  pairs() {
    const { question, data } = this;
    if (!question.pairs) {
      const left = data.without_pairs && question.texts.length > 1;
      return left ? [quiet("What models said of pairs of its answers did not fit into this page.")] : [];
    }
    return question.pairs.map(([source, places, packed]) => {
      const { kind, name, form } = data.sources[source];
      const what = kind === "cosines" ? "Cosines of pairs" : "NLI of pairs";
      const box = element("details", { className: "pairs" }, element("summary", { textContent: `${what}: ${name}, ${form}` }));
      box.addEventListener("toggle", () => {
        if (box.open && box.childElementCount === 1) box.append(...this.matrix(kind, places, packed));
      });
      return box;
    });
  }

  matrix(kind, places, packed) {
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const u = places.length, table = element("table", { className: "matrix" });
    const head = table.createTHead().insertRow();
    head.append(element("th", { textContent: kind === "cosines" ? "answer" : "premise ↓ hypothesis →", scope: "col" }));
    places.forEach((_, k) => head.append(element("th", { textContent: k + 1, scope: "col" })));
    const body = table.createTBody();
    places.forEach((place, i) => {
      const row = body.insertRow();
      row.append(element("th", { scope: "row" }, `${i + 1} `, quoted(this.question.texts[place])));
      places.forEach((_, k) => row.append(kind === "cosines" ? cosineCell(bytes[i * u + k], i === k) : relationCell(bytes[2 * (i * u + k)], bytes[2 * (i * u + k) + 1], i === k)));
    });
    const legend = kind === "cosines" ? "Cosine of the embeddings; · where nobody asked."
      : "What the first says of the second, with its probability: E entails, N neutral, C contradicts; · where nobody asked: a clustering asks only what it needs.";
    return [quiet(legend), scrolling(table, "Pairs of answers")];
  }
}

function cosineCell(byte, same) {
  const cell = element("td");
  if (same || byte === NOBODY_SAID || byte === undefined) return Object.assign(cell, { textContent: same ? "" : "·" });
  const cosine = 2 * byte / STEPS - 1;
  cell.textContent = cosine.toFixed(2);
  cell.style.setProperty("--share", `${Math.round(45 * Math.max(0, cosine))}%`);
  cell.className = "cosine";
  return cell;
}

function relationCell(contradicts, entails, same) {
  const cell = element("td");
  if (same || contradicts === NOBODY_SAID || contradicts === undefined) return Object.assign(cell, { textContent: same ? "" : "·" });
  const c = contradicts / STEPS, e = entails / STEPS, n = Math.max(0, 1 - c - e);
  const [letter, share, name] = e >= c && e >= n ? ["E", e, "entails"] : c >= n ? ["C", c, "contradicts"] : ["N", n, "neutral"];
  cell.textContent = `${letter} ${share.toFixed(2)}`;
  cell.className = name;
  cell.title = `entails ${e.toFixed(2)}, neutral ${n.toFixed(2)}, contradicts ${c.toFixed(2)}`;
  return cell;
}

function scrolling(table, name) {
  table.prepend(element("caption", { textContent: name }));
  return element("div", { className: "scroll" }, table);
}

document.querySelectorAll(".explorer").forEach((root, i) => {
  Explorer.all.push(new Explorer(root, i));
});
// What was chosen before all runs were there has an address without its run.
Explorer.all.forEach((explorer) => { if (explorer.chosen) explorer.show(); });
document.addEventListener("keydown", pressed);
window.addEventListener("hashchange", openLinked);
window.addEventListener("beforeprint", () => Explorer.all.forEach((explorer) => explorer.print()));
window.addEventListener("afterprint", () => Explorer.all.forEach((explorer) => explorer.printed.replaceChildren()));
openLinked();
