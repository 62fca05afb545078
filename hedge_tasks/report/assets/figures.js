// Saves figures as SVG, PNG and CSV from the page itself. Saved ones are light, whatever the theme: papers are.
"use strict";

{
  const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "font-weight", "text-anchor"];
  const SVG = "http://www.w3.org/2000/svg";
  const PIXELS = 3;  // of a PNG, for every one of the figure
  const LINE = 18;

  function drawn(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // Names of files: letters and digits of any script, and nothing that a shell or a file system takes amiss.
  function fileName(figure, name, ending) {
    const place = figure.closest("section")?.querySelector("h2")?.textContent ?? "";
    const panel = figure.closest("[data-name]")?.dataset.name ?? "";
    const words = [place, panel, name].map((text) => text.normalize("NFKC").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, ""));
    return `${words.filter(Boolean).map((word) => word.slice(0, 60)).join("_") || "figure"}.${ending}`;
  }

  // In a corner that nobody sees, where the colours are those of the light theme.
  function inLight(svg, use) {
    const holder = element("div");
    holder.style.cssText = "color-scheme: light; position: absolute; left: -10000px; width: 900px;";
    holder.append(svg);
    document.body.append(holder);
    try {
      return use(svg);
    } finally {
      holder.remove();
    }
  }

  // Mixed colours are told as "color(srgb 0.1 0.2 0.3)", which programs for drawing do not know.
  function plain(value) {
    const parts = /^color\(srgb ([\d.e+-]+) ([\d.e+-]+) ([\d.e+-]+)/.exec(value);
    return parts ? `rgb(${parts.slice(1).map((share) => Math.round(255 * Number(share))).join(", ")})` : value;
  }

  function resolved(svg) {
    for (const part of svg.querySelectorAll("*")) {
      if (part.localName === "title") continue;
      const style = getComputedStyle(part);
      for (const name of KEPT) {
        const value = style.getPropertyValue(name);
        if ((value && value !== "none") || name === "fill") part.setAttribute(name, plain(value));
      }
    }
    for (const part of svg.querySelectorAll("[class]")) part.removeAttribute("class");
  }

  // The figure as a picture of its own: with its title and its legend, and every style resolved.
  function wholeDrawing(figure, title) {
    const source = figure.querySelector("template.drawing")?.content.querySelector("svg") ?? figure.querySelector(".plot svg");
    const inner = source.cloneNode(true);
    const [, , width, height] = inner.getAttribute("viewBox").split(" ").map(Number);
    const names = [...figure.querySelectorAll(".legend li")].map((item) => [item.className, item.textContent]);
    const perRow = Math.max(1, Math.floor(width / 140)), rows = Math.ceil(names.length / perRow), top = LINE + 8;
    const whole = drawn("svg", { xmlns: SVG, viewBox: `0 0 ${width} ${height + top + rows * LINE + 8}`, width, height: height + top + rows * LINE + 8 });
    whole.append(drawn("rect", { width: "100%", height: "100%", style: "fill: #ffffff" }));
    whole.append(drawn("text", { x: 10, y: LINE, style: "fill: #1b1f26; font-weight: 600; font-size: 14px" }, title));
    const placed = drawn("g", { transform: `translate(0 ${top})` });
    placed.append(...inner.childNodes);
    whole.append(placed);
    names.forEach(([colour, name], i) => {
      const x = 10 + (i % perRow) * ((width - 20) / perRow), y = top + height + Math.floor(i / perRow) * LINE;
      const item = drawn("g", { class: colour });
      const most = Math.floor((width - 20) / perRow / 6.5);
      item.append(drawn("rect", { x, y, width: 10, height: 10, style: "fill: currentColor" }));
      item.append(drawn("text", { x: x + 15, y: y + 9.5 }, name.length > most ? `${name.slice(0, most - 1)}…` : name));
      whole.append(item);
    });
    return inLight(whole, (svg) => {
      resolved(svg);
      for (const part of svg.querySelectorAll("[style]")) part.removeAttribute("style");
      svg.setAttribute("font-family", "sans-serif");
      return svg;
    });
  }

  function markup(svg) {
    return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`;
  }

  // The page may load pictures from addresses that are data, and from no others.
  function asPng(svg) {
    return new Promise((resolve, reject) => {
      const image = new Image();
      image.onload = () => {
        const canvas = element("canvas", { width: PIXELS * image.width, height: PIXELS * image.height });
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large"))), "image/png");
      };
      image.onerror = () => reject(new Error("the figure cannot be drawn"));
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(markup(svg))}`;
    });
  }

  function save(blob, name) {
    const address = URL.createObjectURL(blob);
    const link = element("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  function setUpFigure(figure) {
    const numbers = JSON.parse(figure.querySelector("script.numbers").textContent);
    const ways = {
      SVG: () => new Blob([markup(wholeDrawing(figure, numbers.title))], { type: "image/svg+xml" }),
      PNG: () => asPng(wholeDrawing(figure, numbers.title)),
      CSV: () => new Blob([numbers.csv], { type: "text/csv" }),
    };
    const line = element("p", { className: "save" }, "Save as ");
    for (const [kind, make] of Object.entries(ways)) {
      const button = element("button", { type: "button", textContent: kind });
      button.setAttribute("aria-label", `Save ${numbers.title} as ${kind}`);
      button.addEventListener("click", async () => save(await make(), fileName(figure, numbers.name, kind.toLowerCase())));
      line.append(button);
    }
    (figure.querySelector(".about") ?? figure).append(line);
  }

  document.querySelectorAll("figure:has(script.numbers)").forEach(setUpFigure);
}
