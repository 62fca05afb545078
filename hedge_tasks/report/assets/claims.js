// The page of claims: a click opens what the draws say, the slider flags claims and says how well.
"use strict";

function setUpClaims() {
  for (const link of document.querySelectorAll("a.claim[href]")) {
    link.addEventListener("click", () => {
      const draws = document.getElementById(link.getAttribute("href").slice(1));
      if (draws) draws.open = true;
    });
  }
}

function share(part, whole) {
  return whole ? (part / whole).toFixed(3) : "undefined";
}

function setUpThreshold() {
  const holder = document.querySelector(".threshold");
  const source = document.getElementById("claim-data");
  if (!holder || !source) return;
  const { scores, labels, threshold } = JSON.parse(source.textContent);
  const levels = [...new Set(scores)].sort((a, b) => a - b);
  const slider = holder.querySelector("input");
  const output = holder.querySelector("output");
  const positives = labels.filter((label) => label === 1).length;
  const claims = [...document.querySelectorAll("a.claim[data-score]")];
  function use(level) {
    const least = levels[level];
    let flagged = 0;
    let hits = 0;
    scores.forEach((score, i) => {
      if (score < least) return;
      flagged += 1;
      hits += labels[i];
    });
    output.textContent =
      `at least ${least.toFixed(3)}: flags ${(100 * flagged / scores.length).toFixed(1)} %, ` +
      `precision ${share(hits, flagged)}, recall ${share(hits, positives)}`;
    slider.setAttribute("aria-valuetext", output.textContent);
    for (const claim of claims) claim.classList.toggle("flagged", Number(claim.dataset.score) >= least);
  }
  slider.max = String(levels.length - 1);
  slider.value = String(Math.max(0, levels.indexOf(threshold)));
  slider.addEventListener("input", () => use(Number(slider.value)));
  holder.hidden = false;
  use(Number(slider.value));
}

setUpClaims();
setUpThreshold();
