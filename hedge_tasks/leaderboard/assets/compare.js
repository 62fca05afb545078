// Any two entries of a task side by side. Differences and standard errors are in the page; p-values follow from them.
"use strict";

// Two-sided p-value of a normal deviate: the error function by Abramowitz and Stegun 7.1.26 (error below 1.5e-7).
function pValue(z) {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return series * Math.exp(-x * x);
}

class Comparer {
  constructor(root) {
    this.data = JSON.parse(document.getElementById(root.dataset.source).textContent);
    const choose = (at) => {
      const select = element("select", { ariaLabel: at ? "second entry" : "first entry" });
      this.data.entries.forEach((name, i) => select.append(element("option", { value: i, textContent: name })));
      select.value = Math.min(at, this.data.entries.length - 1);
      select.addEventListener("change", () => this.draw());
      return select;
    };
    this.first = choose(0);
    this.second = choose(1);
    this.body = element("tbody");
    const head = element("tr", {}, ...["number", "first − second", "95 % interval", "p", "documents"].map(
      (text) => element("th", { textContent: text })));
    root.append(
      element("p", {}, this.first, " and ", this.second),
      element("div", { className: "scroll" }, element("table", {}, element("thead", {}, head), this.body)),
    );
    this.draw();
  }

  draw() {
    const a = Number(this.first.value), b = Number(this.second.value);
    this.body.replaceChildren(...this.data.metrics.map((metric) => this.row(metric, a, b)));
  }

  row(metric, a, b) {
    const pair = metric.pairs.find(([i, k]) => i === Math.min(a, b) && k === Math.max(a, b));
    const cells = [metric.name, "", "", "", ""];
    if (a === b) cells[1] = "choose two different entries";
    else if (!pair || pair[2] === null) cells[1] = "undefined";
    else {
      const difference = a < b ? pair[2] : -pair[2], stderr = pair[3];
      const signed = (v) => (v < 0 ? "−" : "+") + Math.abs(v).toFixed(3);
      cells[1] = signed(difference);
      cells[4] = String(pair[4]);
      if (stderr > 0) {
        const half = 1.959964 * stderr, p = pValue(difference / stderr);
        cells[2] = `[${signed(Math.max(-1, difference - half))}, ${signed(Math.min(1, difference + half))}]`;
        cells[3] = p < 0.001 ? "< 0.001" : p.toFixed(3);
      }
    }
    return element("tr", {}, ...cells.map((text) => element("td", { textContent: text })));
  }
}

document.querySelectorAll(".compare").forEach((root) => new Comparer(root));
