// The page of claims: a click opens what the samples say, answers are searched, the first ones are shown and then more.
"use strict";

{
  const STEP = 20;

  for (const link of document.querySelectorAll("a.claim[href]")) {
    link.addEventListener("click", () => {
      const draws = document.getElementById(link.getAttribute("href").slice(1));
      for (let part = draws; part; part = part.parentElement.closest("details")) part.open = true;
    });
  }

  function setUpAnswers(holder) {
    const answers = [...document.querySelectorAll("article.answer")];
    const texts = answers.map((answer) => `${answer.dataset.question} ${answer.textContent}`.toLowerCase());
    const search = holder.querySelector("input"), more = document.querySelector("button.more-answers");
    let most = STEP;
    function show() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = answers.map((_, i) => words.every((word) => texts[i].includes(word)));
      let shown = 0;
      answers.forEach((answer, i) => { answer.hidden = !fits[i] || ++shown > most; });
      more.hidden = shown <= most;
      holder.querySelector("output").textContent = `${Math.min(shown, most)} of ${answers.length} shown`;
    }
    search.addEventListener("input", () => { most = STEP; show(); });
    more.addEventListener("click", () => { most += STEP; show(); });
    holder.hidden = false;
    show();
  }

  document.querySelectorAll(".answer-controls").forEach(setUpAnswers);
}
