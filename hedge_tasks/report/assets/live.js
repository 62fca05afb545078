// The first page of `hedge report --serve`: what has changed is fetched again, as long as the page is looked at.
"use strict";

const EVERY_MS = 3000;
const PLACES = ["answers", "runs"];
// As they came from the server: sorting changes what stands in the page.
const shown = Object.fromEntries(PLACES.map((place) => [place, document.getElementById(place).innerHTML]));

function take(page) {
  document.querySelector("time").textContent = page.querySelector("time").textContent;
  for (const place of PLACES) {
    const fresh = page.getElementById(place);
    if (fresh.innerHTML === shown[place]) continue;
    shown[place] = fresh.innerHTML;
    document.getElementById(place).replaceWith(document.adoptNode(fresh));
    document.querySelectorAll(`#${place} table.sortable`).forEach(setUpTable);
  }
}

async function look() {
  const said = document.getElementById("live");
  try {
    const reply = await fetch(location.pathname, { cache: "no-store" });
    if (!reply.ok) throw new Error(reply.statusText);
    // Made by the same template as this page, with every text escaped; scripts in it would not run.
    take(new DOMParser().parseFromString(await reply.text(), "text/html"));
    said.textContent = ", looked at every few seconds";
  } catch (error) {
    said.textContent = `: nothing new can be had (${error.message}). Is hedge report --serve still running?`;
  }
  setTimeout(whenSeen, EVERY_MS);
}

function whenSeen() {
  if (document.hidden) document.addEventListener("visibilitychange", whenSeen, { once: true });
  else look();
}

// A page that was saved has nobody to ask.
if (location.protocol !== "file:") setTimeout(whenSeen, EVERY_MS);
