// The panel of risk and coverage: for a risk that the reader sets, the threshold that accepts most.
"use strict";

function percent(part, whole) {
  return `${(100 * part / whole).toFixed(1)} %`;
}

class RiskPanel {
  constructor(root) {
    this.root = root;
    this.rules = JSON.parse(document.getElementById(root.dataset.source).textContent);
    this.set = root.querySelector(".set");
    [this.rule, this.slider, this.number] = ["select", "input[type=range]", "input[type=number]"].map((name) => this.set.querySelector(name));
    this.told = root.querySelector("output");
    this.bar = root.querySelector(".bar");
    this.rule.addEventListener("change", () => this.show());
    this.slider.addEventListener("input", () => { this.number.value = this.slider.value; this.show(); });
    this.number.addEventListener("input", () => { if (this.number.value !== "") { this.slider.value = this.number.value; this.show(); } });
    for (const hidden of root.querySelectorAll("[hidden]")) hidden.hidden = false;
    this.show();
  }

  show() {
    const rule = this.rules[Number(this.rule.value)];
    const risk = Number(this.number.value) / 100;
    const point = rule.points.findLast(([, n, wrong]) => wrong / n <= risk + 1e-12);
    const [threshold, n, wrong] = point ?? [null, 0, 0];
    const held = rule.n - n;
    const name = `${rule.name} (${rule.clustering})`;
    this.told.textContent = point
      ? `Accept where ${name} is at most ${typeof threshold === "string" ? threshold : threshold.toPrecision(3)}: ${n} of ${rule.n} answers (${percent(n, rule.n)}) would be accepted, ${wrong} of them hallucinated (${percent(wrong, n)}). ` +
        (held ? `${held} would be held back, ${rule.wrong - wrong} of them hallucinated.` : "None would be held back.")
      : `No threshold on ${name} keeps the risk at or below ${this.number.value} %: nothing would be accepted.`;
    const share = (part) => `${100 * part / rule.n}%`;
    this.bar.replaceChildren(element("i", { className: "right" }), element("i", { className: "wrong" }));
    this.bar.children[0].style.width = share(n - wrong);
    this.bar.children[1].style.width = share(wrong);
    this.slider.setAttribute("aria-valuetext", `${this.number.value} %`);
    const command = this.root.querySelector("code");
    if (command) command.textContent = command.dataset.words.replace("{risk}", String(Math.min(0.99, Math.max(0.001, risk)))).replace("{detector}", rule.detector).replace("{filter}", rule.clustering);
  }
}

window.addEventListener("beforeprint", () => document.querySelectorAll(".risk details").forEach((box) => { box.open = true; }));
document.querySelectorAll(".risk[data-source]").forEach((root) => new RiskPanel(root));
