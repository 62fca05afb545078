// The same question's answers of several models. Texts come from models and data sets: they only ever become text nodes.
"use strict";

{
  const STEP = 30;  // questions drawn at a time
  const NAMES = { 1: "hallucinated", 0: "supported" };
  const STATES = [["any", "any answer"], ["0", "right"], ["1", "wrong"], ["unlabelled", "unlabelled"]];
  const LABELS = [["any", "all questions"], ["differ", "models disagree"], ["agree", "models agree"]];

  const foreign = (text, name = "span", className = "") =>
    element(name, { className: `foreign ${className}`, dir: "auto", textContent: text });

  // No entry in the history for each step; a page inside another one may have no address to change.
  const visit = (address) => {
    try {
      history.replaceState(null, "", address);
    } catch {
      // The link in the question still has it.
    }
  };

  class Answers {
    constructor(root) {
      this.root = root;
      this.tasks = JSON.parse(document.getElementById(root.dataset.source).textContent);
      this.count = element("p", { className: "quiet count" });
      this.count.setAttribute("role", "status");
      this.list = element("ol");
      this.more = element("button", { type: "button", className: "more", textContent: "Show more" });
      this.more.addEventListener("click", () => this.extend());
      this.box = element("div", { className: "controls" });
      root.append(this.box, this.count, this.list, this.more);
      // Before anybody else: what is answered here is nothing for the lists of single questions.
      document.addEventListener("keydown", (event) => { if (this.meant(event)) this.key(event); }, true);
      // Who scrolls to the end wants more; the button is for those who do not scroll.
      new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) this.extend(); }, { rootMargin: "600px" }).observe(this.more);
      this.use(this.tasks[0]);
      addEventListener("hashchange", (event) => { if (this.follow()) event.stopImmediatePropagation(); }, true);
      this.follow();
    }

    // Another task has other models, clusterings and scores: its controls are made anew.
    use(task) {
      this.task = task;
      this.only = null;
      const { runs, clusterings, scores } = task;
      const models = runs.map((run, i) => [i, run.name]);
      this.box.replaceChildren();
      if (this.tasks.length > 1) {
        const tasks = this.select("tasks", "Task", this.tasks.map((one, i) => [i, one.task]), () => this.use(this.tasks[this.tasks_.value]));
        this.tasks_.value = this.tasks.indexOf(task);
        this.box.append(tasks);
      }
      this.box.append(
        this.pair("a", "Model A", models, 0),
        this.pair("b", "Model B", models, Math.min(1, models.length - 1)),
        this.button("A right, B wrong", () => this.states("0", "1")),
        this.button("A wrong, B right", () => this.states("1", "0")),
        this.select("labels", "Show", LABELS),
        this.searching(),
        this.select("clustering", "Clustering", clusterings.map((name) => [name, name])),
        this.select("score", "Detector", Object.entries(scores)),
        this.select("order", "Order", [
          ["asked", "as asked"],
          ...runs.flatMap((run, i) => [[`high ${i}`, `${run.name}: highest score first`], [`low ${i}`, `${run.name}: lowest score first`]]),
          ["gap", "scores of A and B differ most"],
        ]),
      );
      this.images = runs.map(() => null);
      this.update();
    }

    select(name, title, options, changed = () => this.update()) {
      const made = element("select", { name });
      for (const [value, text] of options) made.append(element("option", { value, textContent: text }));
      made.addEventListener("change", () => { this.only = null; changed(); });
      this[`${name}_`] = made;
      return element("label", {}, title, made);
    }

    pair(name, title, models, first) {
      const which = this.select(name, title, models);
      this[`${name}_`].value = first;
      const state = this.select(`${name}_state`, "is", STATES);
      const box = element("div", { className: "pair" }, which, state);
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", title);
      return box;
    }

    button(text, done) {
      const made = element("button", { type: "button", textContent: text });
      made.addEventListener("click", done);
      return made;
    }

    searching() {
      this.search = element("input", { type: "search", placeholder: "in question, reference, answers", name: "search" });
      let waiting;
      this.search.addEventListener("input", () => {
        clearTimeout(waiting);
        waiting = setTimeout(() => { this.only = null; this.update(); }, 150);
      });
      return element("label", {}, "Search", this.search);
    }

    states(a, b) {
      this.a_state_.value = a;
      this.b_state_.value = b;
      this.only = null;
      this.update();
    }

    scores(run) {
      return this.task.runs[run].scores[this.clustering_.value]?.[this.score_.value] ?? [];
    }

    update() {
      const { questions, runs } = this.task;
      const a = runs[this.a_.value], b = runs[this.b_.value];
      const is = (run, i, state) => state === "any" || (run.said[i] !== null && String(run.labels[i] ?? "unlabelled") === state);
      const wanted = this.search.value.toLowerCase();
      const has = (i) => !wanted || [questions[i].id, questions[i].question, questions[i].reference, ...runs.map((run) => run.said[i])]
        .some((text) => text && text.toLowerCase().includes(wanted));
      const differ = (i) => new Set(runs.map((run) => run.labels[i]).filter((label) => label !== null)).size > 1;
      const shown = { any: () => true, differ, agree: (i) => !differ(i) }[this.labels_.value];
      this.found = questions.map((_, i) => i).filter((i) =>
        is(a, i, this.a_state_.value) && is(b, i, this.b_state_.value) && shown(i) && has(i));
      const key = this.key_of();
      const keys = new Map(this.found.map((i) => [i, key(i)]));
      // What has no score stays at the end.
      this.found.sort((i, k) => {
        const [x, y] = [keys.get(i), keys.get(k)];
        return x === null || y === null ? (x === null) - (y === null) || i - k : x - y || i - k;
      });
      this.draw();
    }

    key_of() {
      const order = this.order_.value;
      if (order === "asked") return () => 0;
      if (order === "gap") {
        const [a, b] = [this.scores(this.a_.value), this.scores(this.b_.value)];
        return (i) => ((a[i] ?? null) === null || (b[i] ?? null) === null ? null : -Math.abs(a[i] - b[i]));
      }
      const [way, run] = order.split(" ");
      const values = this.scores(run);
      return (i) => ((values[i] ?? null) === null ? null : way === "high" ? -values[i] : values[i]);
    }

    draw() {
      const total = this.task.questions.length;
      this.top = this.task.runs.map((_, run) => Math.max(0, ...this.scores(run).filter((value) => value !== null)));
      this.list.replaceChildren();
      this.drawn = 0;
      if (this.only === null) {
        this.count.replaceChildren(`${this.found.length} of ${total} questions`);
        this.extend();
        return;
      }
      this.list.append(this.card(this.only));
      this.more.hidden = true;
      const at = this.found.indexOf(this.only);
      this.count.replaceChildren(element("span", { className: "one" },
        at < 0 ? "One question" : `Question ${at + 1} of ${this.found.length}`,
        this.button("All questions", () => { this.only = null; visit("#answers"); this.draw(); }),
        this.button("Previous (k)", () => this.step(-1)), this.button("Next (j)", () => this.step(1))));
    }

    extend() {
      if (this.only !== null) return;
      const next = this.found.slice(this.drawn, this.drawn + STEP);
      this.list.append(...next.map((i) => this.card(i)));
      this.drawn += next.length;
      this.more.hidden = this.drawn >= this.found.length;
    }

    card(i) {
      const question = this.task.questions[i];
      const link = element("a", { href: this.address(question), textContent: question.id, className: "foreign" });
      const about = element("div", { className: "asked-of" }, foreign(question.question ?? question.id, "p", "question"));
      if (question.reference) about.append(element("div", {}, element("span", { className: "quiet", textContent: "reference: " }), foreign(question.reference)));
      about.append(element("div", { className: "quiet" }, link, ...(question.type ? [" · ", foreign(question.type)] : []),
        ...(question.wording ? [` · wording ${question.wording} of this id`] : [])));
      const picture = this.picture(i);
      if (picture) about.prepend(element("img", { src: picture, alt: "picture of this question", loading: "lazy" }));
      else about.classList.add("bare");
      const card = element("li", { tabIndex: -1 }, about, element("div", { className: "said" }, ...this.task.runs.map((run, r) => this.answer(run, r, i))));
      card.dataset.at = i;
      return card;
    }

    answer(run, r, i) {
      const name = foreign(run.name, "h3");
      name.title = run.model;
      if (run.said[i] === null) return element("div", {}, name, element("p", { className: "quiet", textContent: "not asked" }));
      const label = NAMES[run.labels[i]] ?? "unlabelled";
      const badge = element("span", { className: `badge ${label}`, textContent: label });
      const box = element("div", { className: label }, element("div", { className: "head" }, name, badge), foreign(run.said[i] || "(empty)", "p", "text"));
      const reason = run.texts[run.reasons[i]];
      if (reason) box.append(element("p", { className: "facts" }, "judge: ", foreign(reason)));
      const value = this.scores(r)[i] ?? null;
      const facts = element("p", { className: "facts" }, this.task.scores[this.score_.value] ?? "", " ");
      if (value === null) facts.append("undefined");
      else facts.append(this.meter(Math.max(0, value) / (this.top[r] || 1)), value.toFixed(3));
      const all = element("a", { href: `${this.address(this.task.questions[i])}&run=${run.run}`, textContent: "all its answers" });
      facts.append(" · ", all);
      box.append(facts);
      return box;
    }

    meter(share) {
      const bar = element("i");
      bar.style.width = `${Math.round(100 * Math.min(1, share))}%`;
      const made = element("span", { className: "meter" }, bar);
      made.setAttribute("aria-hidden", "true");
      return made;
    }

    address(question) {
      return `#q=${encodeURIComponent(question.id)}${question.wording ? `&wording=${question.wording}` : ""}`;
    }

    // Pictures are kept once, with the single questions of each run.
    picture(i) {
      for (const [r, run] of this.task.runs.entries()) {
        if (run.said[i] === null) continue;
        this.images[r] ??= this.pictures(run.run);
        const address = this.images[r].get(this.task.questions[i].id);
        if (address) return address;
      }
      return null;
    }

    pictures(run) {
      const read = typeof Explorer === "undefined" ? null : Explorer.all?.[run]?.data;
      const source = document.getElementById(`data-${run}`);
      const { images, questions } = read ?? JSON.parse(source?.textContent ?? "{}");
      return new Map((questions ?? []).filter((q) => q.images?.length).map((q) => [q.id, images?.[q.images[0]]]));
    }

    // Where a link leads: #q=ID is this view, #q=ID&run=N the single questions of a run.
    follow() {
      const told = new URLSearchParams(location.hash.slice(1));
      const id = told.get("q");
      if (id === null || told.has("run")) return false;
      for (const task of [this.task, ...this.tasks]) {
        const at = task.questions.findIndex((question) => question.id === id && (question.wording ?? null) === told.get("wording"));
        if (at < 0) continue;
        if (task !== this.task) this.use(task);
        this.show(at);
        this.root.closest("section").scrollIntoView();
        return true;
      }
      return false;
    }

    show(at) {
      this.only = at;
      this.draw();
      this.list.firstChild.focus({ preventScroll: true });
    }

    step(by) {
      const at = this.found.indexOf(this.only);
      const next = this.found[Math.min(Math.max(at + by, 0), this.found.length - 1)];
      if (next === undefined) return;
      visit(this.address(this.task.questions[next]));
      this.show(next);
    }

    // With the focus in here while this can be seen, or nowhere while it fills the middle of the screen.
    meant(event) {
      const box = this.root.getBoundingClientRect();
      if (this.root.contains(event.target)) return box.top < innerHeight && box.bottom > 0;
      return event.target === document.body && box.top < innerHeight / 2 && box.bottom > innerHeight / 2;
    }

    // j and k: to the next question and back; /: search. Not where one writes.
    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const writes = event.target.matches("input, select, textarea");
      if (event.key === "Escape" && writes) event.target.blur();
      if (writes || !["j", "k", "/"].includes(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.key === "/") this.search.focus();
      else if (this.only !== null) this.step(event.key === "j" ? 1 : -1);
      else this.move(event.key === "j" ? 1 : -1);
    }

    move(by) {
      const cards = [...this.list.children];
      const at = cards.indexOf(document.activeElement.closest?.("li"));
      const next = cards[at < 0 ? 0 : at + by];
      if (!next) return;
      next.focus({ preventScroll: true });
      next.scrollIntoView({ block: "nearest" });
    }
  }

  document.querySelectorAll(".answers").forEach((root) => new Answers(root));
}
