// The page of claims: a click opens what the samples say, the slider flags claims and says how well, answers are searched.
"use strict";

function setUpClaims() {
  for (const link of document.querySelectorAll("a.claim[href]")) {
    link.addEventListener("click", () => {
      const draws = document.getElementById(link.getAttribute("href").slice(1));
      for (let part = draws; part; part = part.parentElement.closest("details")) part.open = true;
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
    document.dispatchEvent(new Event("flagged"));
  }
  slider.max = String(levels.length - 1);
  slider.value = String(Math.max(0, levels.indexOf(threshold)));
  slider.addEventListener("input", () => use(Number(slider.value)));
  holder.hidden = false;
  use(Number(slider.value));
}

const BY_CLAIM = { hallucinated: ".claim.hallucinated", missed: ".claim.hallucinated:not(.flagged)", flagged: ".claim.flagged" };

function setUpSearch() {
  const holder = document.querySelector(".answer-controls");
  if (!holder) return;
  const answers = [...document.querySelectorAll("article.answer")];
  const texts = answers.map((answer) => `${answer.dataset.question} ${answer.textContent}`.toLowerCase());
  const search = holder.querySelector(".search-answers");
  const verdict = holder.querySelector(".by-verdict");
  const claim = holder.querySelector(".by-claim");
  const told = holder.querySelector("output");
  function choose() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    answers.forEach((answer, i) => {
      const fits = words.every((word) => texts[i].includes(word))
        && (!verdict?.value || answer.dataset.verdict === verdict.value)
        && (!claim?.value || answer.querySelector(BY_CLAIM[claim.value]));
      answer.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    told.textContent = `${shown} of ${answers.length} shown`;
  }
  // The address of a question is the same on every page about the run.
  function open() {
    if (!location.hash.startsWith("#q=")) return;
    const id = new URLSearchParams(location.hash.slice(1)).get("q");
    const found = answers.find((answer) => answer.dataset.question === id);
    if (!found) {
      told.textContent = `The question ${id.slice(0, 200)} is not on this page.`;
      return;
    }
    found.hidden = false;
    found.scrollIntoView({ block: "start" });
  }
  for (const answer of answers) answer.querySelector("h3 a").href = `#q=${encodeURIComponent(answer.dataset.question)}`;
  for (const control of [search, verdict, claim]) control?.addEventListener("input", choose);
  document.addEventListener("flagged", choose);
  window.addEventListener("hashchange", open);
  holder.hidden = false;
  choose();
  open();
}

setUpClaims();
setUpSearch();
setUpThreshold();
