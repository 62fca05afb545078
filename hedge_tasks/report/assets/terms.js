// Terms explain themselves: pointed at, focused or tapped, with the text that their link has as its title.
"use strict";

{
  const tip = element("div", { id: "tip", hidden: true });
  tip.setAttribute("role", "tooltip");
  let shown = null, waiting;

  const hide = () => {
    clearTimeout(waiting);
    shown?.removeAttribute("aria-describedby");
    shown = null;
    tip.hidden = true;
  };

  const show = (term) => {
    clearTimeout(waiting);
    if (shown === term) return;
    hide();
    shown = term;
    tip.textContent = term.dataset.means;
    tip.hidden = false;
    term.setAttribute("aria-describedby", "tip");
    const at = term.getBoundingClientRect(), size = tip.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const left = Math.max(8, Math.min(at.left, width - size.width - 8));
    const above = at.bottom + size.height + 8 > window.innerHeight && at.top > size.height + 8;
    tip.style.left = `${left + window.scrollX}px`;
    tip.style.top = `${(above ? at.top - size.height - 4 : at.bottom + 4) + window.scrollY}px`;
  };

  // One may move from the term onto its explanation, to read or copy it.
  const leave = () => { clearTimeout(waiting); waiting = setTimeout(hide, 200); };

  document.body.append(tip);
  tip.addEventListener("pointerenter", () => clearTimeout(waiting));
  tip.addEventListener("pointerleave", leave);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && shown) hide(); });
  document.addEventListener("pointerdown", (event) => { if (!event.target.closest?.("a.term, #tip")) hide(); });

  document.querySelectorAll("a.term").forEach((term) => {
    term.dataset.means = term.title;
    term.removeAttribute("title");  // or the browser shows it as well
    let touched = false;
    term.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") show(term); });
    term.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") leave(); });
    term.addEventListener("pointerdown", (event) => { touched = event.pointerType !== "mouse" && shown !== term; });
    term.addEventListener("focus", () => show(term));
    term.addEventListener("blur", leave);
    // A first tap explains, a second one goes to the glossary.
    term.addEventListener("click", (event) => {
      if (touched) {
        event.preventDefault();
        show(term);
      } else hide();
      touched = false;
    });
  });
}
