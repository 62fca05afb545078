// Any two entries of a task side by side. All that is shown was computed with the page.
"use strict";

class Comparer {
  constructor(root) {
    this.data = JSON.parse(document.getElementById(root.dataset.source).textContent);
    const choose = (at, label) => {
      const select = element("select", { ariaLabel: label });
      this.data.entries.forEach((name, i) => select.append(element("option", { value: i, textContent: `${i + 1}. ${name}` })));
      select.value = Math.min(at, this.data.entries.length - 1);
      select.addEventListener("change", () => this.draw());
      return select;
    };
    this.first = choose(0, "first entry");
    this.second = choose(1, "second entry");
    this.body = element("tbody");
    const head = element("tr", {}, ...["first − second", "95 % interval", "p", "p (max-T)", "documents"].map(
      (text) => element("th", { textContent: text, scope: "col" })));
    root.append(
      element("p", {}, this.first, " and ", this.second),
      element("div", { className: "scroll" }, element("table", {}, element("thead", {}, head), this.body)),
    );
    this.draw();
  }

  // Row by row above the diagonal.
  place(a, b) {
    return (a * (2 * this.data.entries.length - a - 1)) / 2 + (b - a - 1);
  }

  cells(a, b) {
    if (a === b) return ["choose two different entries"];
    const at = this.place(Math.min(a, b), Math.max(a, b)), { unit, n } = this.data;
    const number = (name) => (this.data[name][at] === null ? null : this.data[name][at] / unit);
    const signed = (v) => (v < 0 ? "−" : "+") + Math.abs(v).toFixed(3);
    const told = (p) => (p === null ? "" : p < 0.001 ? "< 0.001" : p.toFixed(3));
    const known = number("difference"), half = number("half");
    if (known === null) return ["undefined"];
    const difference = a < b ? known : -known;
    const interval = half === null ? "" : `[${signed(difference - half)}, ${signed(difference + half)}]`;
    return [signed(difference), interval, told(number("p")), told(number("adjusted")), String(Array.isArray(n) ? n[at] : n)];
  }

  draw() {
    const found = this.cells(Number(this.first.value), Number(this.second.value));
    const cells = ["", "", "", "", ""].map((empty, i) => element("td", { textContent: found[i] ?? empty }));
    this.body.replaceChildren(element("tr", {}, ...cells));
  }
}

document.querySelectorAll(".compare").forEach((root) => new Comparer(root));
