// The same question's answers of several runs, out of what their lists of questions hold. Texts come from models and
// data sets: they only ever become text nodes.
"use strict";

{
  const STEP = 5;
  const SHOWN = {
    "models disagree": (labels) => new Set(labels.filter((label) => label !== null)).size > 1,
    "A right, B wrong": (_, a, b) => a === 0 && b === 1,
    "A wrong, B right": (_, a, b) => a === 1 && b === 0,
    "both wrong": (_, a, b) => a === 1 && b === 1,
    "all questions": () => true,
  };

  // Where runs ask something else under one id, or have another reference, it is another question.
  function byQuestion(explorers) {
    const questions = new Map();
    explorers.forEach(({ data }, i) => {
      for (const q of data.questions) {
        const key = JSON.stringify([q.id, q.question, q.reference]);
        if (!questions.has(key)) questions.set(key, Array(explorers.length).fill(null));
        questions.get(key)[i] = q;
      }
    });
    return [...questions.values()].filter((answers) => answers.filter(Boolean).length > 1);
  }

  class SideBySide {
    constructor(root, explorers) {
      this.explorers = explorers;
      this.questions = byQuestion(explorers);
      const names = explorers.map(({ data }, i) => [i, data.name]);
      this.a = this.select("A", names);
      this.b = this.select("B", names);
      this.b.value = 1;
      this.shown = this.select("Show", Object.keys(SHOWN).map((name) => [name, name]));
      this.search = element("input", { type: "search" });
      this.search.addEventListener("input", () => this.update());
      this.count = element("p", { className: "quiet", role: "status" });
      this.list = element("ol");
      this.more = element("button", { type: "button", textContent: "Show more" });
      this.more.addEventListener("click", () => this.extend());
      const labelled = Object.entries({ A: this.a, B: this.b, Show: this.shown, Search: this.search });
      root.append(element("div", { className: "controls" }, ...labelled.map(([name, control]) => element("label", {}, name, control))),
        this.count, this.list, this.more);
      this.update();
    }

    select(name, options) {
      const made = element("select", { name });
      for (const [value, text] of options) made.append(element("option", { value, textContent: text }));
      made.addEventListener("change", () => this.update());
      return made;
    }

    update() {
      const label = (answers, i) => answers[i]?.label ?? null;
      const wanted = this.search.value.toLowerCase();
      this.chosen = this.questions.filter((answers) =>
        SHOWN[this.shown.value](answers.map((_, i) => label(answers, i)), label(answers, this.a.value), label(answers, this.b.value))
        && answers.filter(Boolean).some((q) => wordsOf(q).includes(wanted)));
      this.count.textContent = `${this.chosen.length} of ${this.questions.length} questions that several runs answered`;
      this.list.replaceChildren();
      this.extend();
    }

    extend() {
      const drawn = this.list.children.length;
      this.list.append(...this.chosen.slice(drawn, drawn + STEP).map((answers) => this.card(answers)));
      this.more.hidden = this.list.children.length >= this.chosen.length;
    }

    card(answers) {
      const first = answers.findIndex(Boolean), question = answers[first];
      const about = element("div", { className: "asked-of" }, foreign(question.question ?? question.id, "p"));
      if (question.reference) about.append(element("p", { className: "quiet" }, "Reference: ", foreign(question.reference)));
      const pictured = answers.findIndex((q) => q?.images);
      const picture = pictured < 0 ? [] : [this.explorers[pictured].image(answers[pictured].images[0], "small", "picture of this question")];
      return element("li", {}, ...picture, about, element("div", { className: "said" }, ...answers.map((q, i) => this.answer(q, this.explorers[i]))));
    }

    answer(question, explorer) {
      const name = foreign(explorer.data.name, "h3");
      if (!question) return element("div", {}, name, element("p", { className: "quiet", textContent: "not asked" }));
      const box = element("div", { className: labelOf(question) }, name, foreign(question.texts[question.answers[0]] || "(empty)", "p"));
      if (question.reason) box.append(element("p", { className: "quiet" }, "judge: ", foreign(question.reason)));
      const link = element("a", { href: explorer.address(question), textContent: "all its answers" });
      box.append(explorer.facts(question), link);
      return box;
    }
  }

  document.querySelectorAll(".answers").forEach((root) => {
    for (const task of new Set(Explorer.all.map(({ data }) => data.task))) {
      const explorers = Explorer.all.filter(({ data }) => data.task === task);
      if (explorers.length < 2) continue;
      const box = element("div");
      root.append(box);
      root.hidden = false;
      new SideBySide(box, explorers);
    }
  });
}
