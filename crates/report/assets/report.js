"use strict";
(() => {
  const root = document.documentElement;
  const tip = document.getElementById("tip");

  // Light and dark: the system's choice until the button is used.
  const button = document.getElementById("theme");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const nameButton = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; nameButton(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameButton);
  nameButton();

  // Volumes are shown or hidden in all figures at once.
  for (const toggle of document.querySelectorAll("button.role")) {
    toggle.addEventListener("click", () => {
      const role = toggle.dataset.role;
      const shown = !document.body.classList.toggle("hide-" + role);
      for (const same of document.querySelectorAll(`button.role[data-role=${role}]`)) same.setAttribute("aria-pressed", shown);
    });
  }

  for (const choice of document.querySelectorAll("button.variant")) {
    choice.addEventListener("click", () => {
      const figure = choice.closest("section");
      for (const other of figure.querySelectorAll("button.variant")) other.setAttribute("aria-pressed", other === choice);
      for (const panels of figure.querySelectorAll(".panels")) panels.hidden = panels.dataset.variant !== choice.dataset.variant;
    });
  }

  // A table that is wider than its place says so.
  const mark = (frame) => frame.classList.toggle("scrolls", frame.scrollWidth > frame.clientWidth + 1);
  const widths = new ResizeObserver((entries) => { for (const entry of entries) mark(entry.target); });
  for (const frame of document.querySelectorAll(".scroll")) { mark(frame); widths.observe(frame); }

  // Tooltips: a heading, then lines of class, name and value.
  const element = (name, className, text) => {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = text;
    return made;
  };
  let active = null;
  const hide = () => {
    tip.hidden = true;
    if (active) active.classList.remove("active");
    active = null;
  };
  const show = (column) => {
    hide();
    active = column;
    column.classList.add("active");
    const [heading, ...lines] = column.dataset.tip.split("\n");
    tip.replaceChildren(element("b", "", heading));
    for (const line of lines) {
      const [kind, name, value] = line.split("\t");
      if (document.body.classList.contains("hide-" + kind)) continue;
      const row = document.createElement("div");
      const mark = element("i", "", "");
      mark.style.color = `var(--${kind})`;
      row.append(mark, element("span", "name", name), element("span", "value", value));
      tip.append(row);
    }
    tip.hidden = false;
    const at = column.getBoundingClientRect();
    const box = tip.getBoundingClientRect();
    const right = at.right + 10 + box.width <= innerWidth - 8;
    const left = right ? at.right + 10 : at.left - 10 - box.width;
    tip.style.left = Math.max(8, Math.min(left, innerWidth - box.width - 8)) + "px";
    tip.style.top = Math.max(8, Math.min(at.top, innerHeight - box.height - 8)) + "px";
  };
  for (const panel of document.querySelectorAll("svg.panel")) {
    const columns = [...panel.querySelectorAll(".column")];
    panel.addEventListener("pointermove", (event) => {
      if (event.target.classList.contains("column")) { if (event.target !== active) show(event.target); } else hide();
    });
    panel.addEventListener("pointerleave", hide);
    panel.addEventListener("blur", hide);
    panel.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step || !columns.length) return;
      event.preventDefault();
      const from = columns.indexOf(active);
      const to = from < 0 ? (step > 0 ? 0 : columns.length - 1) : from + step;
      show(columns[Math.max(0, Math.min(to, columns.length - 1))]);
      panel.setAttribute("aria-description", tip.innerText);
    });
  }
  addEventListener("scroll", hide, { passive: true });

  // Every figure can be saved: as SVG and PNG from what is shown, as CSV from its data, as PDF by printing it alone.
  const SHAPES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "opacity"];
  const LETTERS = ["font-family", "font-size", "font-weight", "text-anchor"];
  // The name of SVG elements, as the page has it.
  const SPACE = new DOMParser().parseFromString("<svg/>", "text/html").querySelector("svg").namespaceURI;
  const visible = (drawn) => drawn.getClientRects().length > 0;
  const standalone = (drawn) => {
    const copy = drawn.cloneNode(true);
    const [from, to] = [[...drawn.querySelectorAll("*")], [...copy.querySelectorAll("*")]];
    from.forEach((original, at) => {
      const style = getComputedStyle(original);
      for (const name of original.tagName === "text" ? [...SHAPES, ...LETTERS] : SHAPES) to[at].setAttribute(name, style.getPropertyValue(name));
      if (style.display === "none") to[at].dataset.gone = "";
      to[at].removeAttribute("class");
    });
    from.forEach((original, at) => { if (original.classList.contains("column") || "gone" in to[at].dataset) to[at].remove(); });
    return copy.innerHTML;
  };
  const drawings = (figure) => [...figure.querySelectorAll("svg.panel, canvas")].filter(visible);
  const compose = (figure) => {
    const GAP = 28, HEAD = 56;
    const parts = drawings(figure).map((drawn) => {
      if (drawn.tagName === "CANVAS") {
        const title = [...(drawn.previousElementSibling?.childNodes ?? [])].map((part) => part.textContent).join(", ");
        const picture = `<image y="22" width="360" height="360" style="image-rendering:pixelated" href="${drawn.toDataURL()}"/>`;
        return { width: 360, height: 382, content: `<text y="13" font-size="14">${new Option(title).innerHTML}</text>${picture}` };
      }
      const { width, height } = drawn.viewBox.baseVal;
      return { width, height, content: standalone(drawn) };
    });
    const columns = Math.min(3, parts.length), width = Math.max(...parts.map((part) => part.width));
    const height = Math.max(...parts.map((part) => part.height)), rows = Math.ceil(parts.length / columns);
    const style = getComputedStyle(document.body), colour = style.color;
    const keys = [...figure.querySelectorAll(".controls .swatches > span, .controls button.role[aria-pressed=true]")].filter(visible);
    const legend = keys.map((key, at) => `<g transform="translate(${20 + 130 * at},38)"><svg width="30" height="12" viewBox="0 0 30 12">${standalone(key.querySelector("svg"))}</svg><text x="36" y="9" font-size="11.5">${new Option(key.textContent.trim()).innerHTML}</text></g>`);
    if (figure.querySelector(".film")) legend.push('<text x="20" y="44" font-size="11.5">colour: the place in the tree, from the first file (violet) to the last (yellow); a colour near the grey of free space: few bytes of files</text>');
    const size = [Math.max(columns * (width + GAP) + 12, keys.length * 130 + 40), HEAD + rows * (height + GAP)];
    const heading = figure.querySelector("h2, h3")?.firstChild?.textContent.trim() ?? document.title;
    const body = parts.map((part, at) => `<g transform="translate(${20 + (at % columns) * (width + GAP)},${HEAD + 8 + Math.floor(at / columns) * (height + GAP)})">${part.content}</g>`);
    const text = `<svg xmlns="${SPACE}" width="${size[0]}" height="${size[1]}" viewBox="0 0 ${size[0]} ${size[1]}" font-family="system-ui, sans-serif" fill="${colour}"><rect width="100%" height="100%" fill="${style.backgroundColor}"/><text x="20" y="26" font-size="18" font-weight="600">${new Option(heading).innerHTML}</text>${legend.join("")}${body.join("")}</svg>`;
    return { text, size };
  };
  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const ways = {
    SVG: (figure, name) => save(new Blob([compose(figure).text], { type: "image/svg+xml" }), `${name}.svg`),
    PNG: (figure, name) => {
      const { text, size } = compose(figure), picture = new Image();
      picture.onload = () => {
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = size.map((pixels) => pixels * 2);
        canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => save(blob, `${name}.png`));
      };
      picture.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    },
    PDF: (figure) => {
      document.body.classList.add("print-one");
      for (let part = figure; part !== document.body; part = part.parentElement) part.classList.add("printed");
      print();
    },
    CSV: (figure, name) => {
      // Maps make their rows only on demand: they are many.
      figure.dispatchEvent(new Event("wantcsv"));
      save(new Blob([figure.querySelector("template.csv").content.textContent], { type: "text/csv" }), `${name}.csv`);
    },
  };
  addEventListener("afterprint", () => {
    document.body.classList.remove("print-one");
    for (const part of document.querySelectorAll(".printed")) part.classList.remove("printed");
  });
  for (const figure of document.querySelectorAll("section, .course")) {
    const isDrawn = figure.querySelector("svg.panel, canvas"), hasData = figure.querySelector("template.csv");
    if (!(isDrawn || hasData) || figure.querySelector(".course")) continue;
    const bar = element("div", "save", "");
    const heading = figure.querySelector("h2, h3");
    const name = (figure.id || heading.textContent).toLowerCase().replace(/[^a-z0-9]+/g, "-");
    for (const [kind, way] of Object.entries(ways)) {
      if (kind === "CSV" ? !hasData : kind !== "PDF" && !isDrawn) continue;
      const button = element("button", "", kind);
      button.type = "button";
      button.title = kind === "PDF" ? "Print this figure alone" : `Save this figure as ${kind}`;
      button.addEventListener("click", () => way(figure, name));
      bar.append(button);
    }
    (heading.closest("summary") ?? heading).after(bar);
    figure.classList.add("saved");
  }
  // A path may break after each of its directories.
  for (const cell of document.querySelectorAll("td.wrap")) {
    if (!cell.childElementCount) cell.replaceChildren(...cell.textContent.split(/(?<=\/)/).flatMap((part) => [part, document.createElement("wbr")]));
  }
  // A heading links to itself, so that a reader can send a figure's address.
  for (const heading of document.querySelectorAll("section[id] > h2, section[id] > details > summary > h2")) {
    const link = element("a", "anchor", "#");
    link.href = `#${heading.closest("section").id}`;
    link.setAttribute("aria-label", "Link to this section");
    heading.append(" ", link);
  }
  // A page of several sections without a contents list gets one.
  const listed = [...document.querySelectorAll("main > section[id] > h2")];
  if (listed.length > 2 && !document.querySelector("nav.contents")) {
    const contents = element("nav", "contents", ""), fold = element("details", "", ""), list = element("ol", "", "");
    list.append(...listed.map((heading) => {
      const entry = element("li", "", ""), link = element("a", "", heading.firstChild.textContent);
      link.href = `#${heading.parentElement.id}`;
      entry.append(link);
      return entry;
    }));
    fold.append(element("summary", "", "Contents"), list);
    contents.append(fold);
    document.querySelector("main > header").after(contents);
  }
  // The address of a folded figure opens it. Paper has the charts that are open.
  const folds = [...document.querySelectorAll("section.row > details")];
  const reveal = () => {
    const fold = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.querySelector(":scope > details");
    if (!folds.includes(fold)) return;
    fold.open = true;
    fold.parentElement.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
  if (folds.length > 1) {
    const all = element("button", "", "Open all charts");
    all.type = "button";
    all.id = "open-all";
    all.title = "Paper has the charts that are open";
    all.addEventListener("click", () => {
      const isOpen = folds.some((fold) => !fold.open);
      for (const fold of folds) fold.open = isOpen;
      all.textContent = isOpen ? "Close the charts" : "Open all charts";
    });
    document.querySelector("nav.contents")?.append(all);
  }
  for (const contents of document.querySelectorAll("nav.contents details")) {
    contents.addEventListener("click", (event) => { if (event.target.tagName === "A") contents.open = false; });
  }
})();
