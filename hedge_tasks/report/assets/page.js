// Shared by the report and the leaderboard: theme, sortable tables, what scrolls sideways.
"use strict";

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties || {});
  made.append(...children);
  return made;
}

function remembered(key, value) {
  // A file opened from disk may have no storage.
  try {
    if (value !== undefined) localStorage.setItem(key, value);
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function setUpTheme() {
  const button = document.querySelector("button.theme");
  const order = ["auto", "light", "dark"];
  function use(theme) {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  }
  let theme = remembered("hedge-theme");
  if (!order.includes(theme)) theme = "auto";
  use(theme);
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = order[(order.indexOf(theme) + 1) % order.length];
    remembered("hedge-theme", theme);
    use(theme);
  });
}

// A cell is worth the number that it begins with ("0.827 [0.733, 0.893]"), else its text.
function valueOf(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.value ?? cell.textContent.trim().replace("−", "-");
  if (text === "-" || text === "undefined") return "";
  const number = /^[+-]?[\d.]/.test(text) ? parseFloat(text) : NaN;
  return Number.isNaN(number) ? text : number;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a.localeCompare(b);
}

function sortBy(table, column, descending) {
  // What has no value stays at the end in both directions.
  const empty = (row) => valueOf(row, column) === "";
  const rows = [...table.tBodies[0].rows].sort((a, b) => {
    if (empty(a) || empty(b)) return empty(a) - empty(b);
    return compare(valueOf(a, column), valueOf(b, column)) * (descending ? -1 : 1);
  });
  table.tBodies[0].append(...rows);
  for (const header of table.tHead.rows[0].cells) header.removeAttribute("aria-sort");
  table.tHead.rows[0].cells[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
}

function setUpTable(table) {
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    if (!header.textContent.trim()) return;
    // A link stays beside the button: a link in a button is neither.
    const links = [...header.querySelectorAll("a")];
    const button = element("button", { type: "button" }, ...(links.length ? ["⇅"] : header.childNodes));
    if (links.length) button.setAttribute("aria-label", `sort by ${header.textContent}`);
    header.append(button);
    button.addEventListener("click", () => {
      const known = header.getAttribute("aria-sort");
      const numbers = [...table.tBodies[0].rows].some((row) => typeof valueOf(row, column) === "number");
      sortBy(table, column, known ? known === "ascending" : numbers);
    });
  });
}

// What scrolls sideways is reached by the keyboard as well; it is a stop of it only while it scrolls.
function setUpScrolling(box) {
  const name = box.querySelector("caption")?.textContent ?? box.closest("section")?.querySelector("h2, h3")?.textContent ?? "table";
  new ResizeObserver(() => {
    const scrolls = box.scrollWidth > box.clientWidth;
    for (const [key, value] of Object.entries({ tabindex: "0", role: "region", "aria-label": name })) {
      if (scrolls) box.setAttribute(key, value);
      else box.removeAttribute(key);
    }
  }).observe(box);
}

setUpTheme();
document.querySelectorAll("table.sortable, .sortable > table").forEach(setUpTable);
document.querySelectorAll(".scroll").forEach(setUpScrolling);
