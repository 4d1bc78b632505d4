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

  // Paper cannot be clicked: everything is open on it, and closed again afterwards.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const details of closed) details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of closed) details.open = false; });
})();
