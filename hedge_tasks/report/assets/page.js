// Shared by the report and the leaderboard: theme, sortable tables, one of several panels at a time.
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
    if (button) button.textContent = `Theme: ${theme}`;
  }
  let theme = remembered("hedge-theme");
  if (!order.includes(theme)) theme = "auto";
  use(theme);
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = order[(order.indexOf(theme) + 1) % order.length];
    remembered("hedge-theme", theme);
    use(theme);
  });
}

function valueOf(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.value ?? cell.textContent.trim();
  const number = Number(text);
  return text !== "" && !Number.isNaN(number) ? number : text;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a.localeCompare(b);
}

function sortBy(table, column, descending) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  // What has no value stays at the end in both directions.
  const empty = (row) => valueOf(row, column) === "";
  rows.sort((a, b) => {
    if (empty(a) || empty(b)) return empty(a) - empty(b);
    return compare(valueOf(a, column), valueOf(b, column)) * (descending ? -1 : 1);
  });
  body.append(...rows);
  for (const header of table.tHead.rows[0].cells) header.removeAttribute("aria-sort");
  table.tHead.rows[0].cells[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
}

function setUpTable(table) {
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    // A term that explains itself stays beside the button: a link in a button is neither.
    const terms = [...header.querySelectorAll("a.term")];
    terms.forEach((term) => term.remove());
    const button = element("button", { type: "button" }, ...header.childNodes);
    header.replaceChildren(button, ...terms);
    button.addEventListener("click", () => {
      const known = header.getAttribute("aria-sort");
      const numbers = [...table.tBodies[0].rows].some((row) => typeof valueOf(row, column) === "number");
      sortBy(table, column, known ? known === "ascending" : numbers);
    });
  });
}

function setUpTabs(tabs) {
  const panels = [...tabs.children].filter((child) => child.dataset.name !== undefined);
  if (panels.length < 2) return;
  const select = element("select");
  panels.forEach((panel, i) => select.append(element("option", { value: i, textContent: panel.dataset.name })));
  const show = () => panels.forEach((panel, i) => { panel.hidden = i !== Number(select.value); });
  select.addEventListener("change", show);
  tabs.prepend(element("label", { className: "choice" }, `${tabs.dataset.tabs}: `, select));
  show();
}

// A link in the head of a table stands beside the button that sorts: inside it neither could be reached.
function freeLinks(button) {
  const links = [...button.querySelectorAll("a")];
  if (!links.length) return;
  button.before(...links, " ");
  if (button.textContent.trim()) return;
  button.textContent = "⇅";
  button.setAttribute("aria-label", `sort by ${links.map((link) => link.textContent).join(" ")}`);
}

// What scrolls sideways is reached by the keyboard as well; it is a stop of it only while it scrolls.
function setUpScrolling(box) {
  const name = box.querySelector("caption")?.textContent ?? box.closest("section")?.querySelector("h2, h3")?.textContent ?? "table";
  const fit = () => {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", name);
    } else {
      for (const attribute of ["tabindex", "role", "aria-label"]) box.removeAttribute(attribute);
    }
  };
  new ResizeObserver(fit).observe(box);
  if (box.firstElementChild) new ResizeObserver(fit).observe(box.firstElementChild);
}

setUpTheme();
document.querySelectorAll("table.sortable").forEach(setUpTable);
document.querySelectorAll("table.sortable th > button").forEach(freeLinks);
document.querySelectorAll("[data-tabs]").forEach(setUpTabs);
document.querySelectorAll(".scroll").forEach(setUpScrolling);
// Also of what scripts put into the page later.
new MutationObserver((records) => {
  for (const { addedNodes } of records) {
    for (const added of addedNodes) {
      if (added.nodeType !== Node.ELEMENT_NODE) continue;
      if (added.matches(".scroll")) setUpScrolling(added);
      added.querySelectorAll(".scroll").forEach(setUpScrolling);
    }
  }
}).observe(document.body, { childList: true, subtree: true });
