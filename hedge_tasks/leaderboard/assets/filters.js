// Filters of the front page. They are in the address, so that the other numbers' pages keep them.
"use strict";

class Filters {
  constructor(form, table) {
    this.form = form;
    this.rows = [...table.tBodies[0].rows];
    this.fill("size", (row) => [row.dataset.size]);
    this.fill("judge", (row) => [...row.querySelectorAll("td[data-judge]")].map((cell) => cell.dataset.judge));
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const [name, value] of asked) {
      const field = form.elements.namedItem(name);
      if (field && field.type === "checkbox") field.checked = value === "1";
      else if (field && [...field.options].some((option) => option.value === value)) field.value = value;
    }
    form.hidden = false;
    form.addEventListener("input", () => this.apply());
    form.addEventListener("submit", (event) => event.preventDefault());
    this.apply();
  }

  fill(name, valuesOf) {
    const values = [...new Set(this.rows.flatMap(valuesOf))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const select = this.form.elements.namedItem(name);
    for (const value of values) select.append(element("option", { value, textContent: value }));
  }

  asked() {
    const found = {};
    for (const field of this.form.elements) {
      const value = field.type === "checkbox" ? (field.checked ? "1" : "") : field.value;
      if (field.name && value) found[field.name] = value;
    }
    return found;
  }

  apply() {
    const asked = this.asked();
    let shown = 0;
    for (const row of this.rows) {
      const cells = [...row.querySelectorAll("td[data-judge]")];
      let left = 0;
      for (const cell of cells) {
        const fits = (!asked.judge || cell.dataset.judge === asked.judge) && (!asked.verified || "verified" in cell.dataset);
        cell.classList.toggle("dimmed", !fits);
        left += fits;
      }
      const fits = (!asked.weights || row.dataset.weights === asked.weights) && (!asked.size || row.dataset.size === asked.size);
      row.hidden = !fits || !left;
      shown += !row.hidden;
    }
    this.form.querySelector("output").textContent = `${shown} of ${this.rows.length} models`;
    const text = new URLSearchParams(asked).toString();
    for (const link of document.querySelectorAll(".choices a")) link.href = link.getAttribute("href").split("#")[0] + (text ? `#${text}` : "");
  }
}

const filters = document.querySelector("form.filters"), heat = document.querySelector("table.heat");
if (filters && heat) new Filters(filters, heat);
