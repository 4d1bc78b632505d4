"use strict";
(() => {
  const data = JSON.parse(document.getElementById("senesce-data").textContent);
  const { side, cell_bytes: cellBytes, used, free, extents, owner, modified } = data.map;
  const knowsFree = data.free_space !== null;
  const files = new Map(data.map_files.map((file) => [file.number, file]));
  const canvas = document.getElementById("volume-map");
  const { size, range, cellsAt, mix, theme, fade } = senesceMap;
  const root = document.documentElement;
  const at = cellsAt(side);

  // Colours: even steps of lightness and hue, so that neighbours in the tree look alike and strangers do not.
  const hue = (degrees, saturation, lightness) => {
    const chroma = saturation * Math.min(lightness, 1 - lightness);
    const channel = (n) => {
      const k = (n + degrees / 30) % 12;
      return Math.round(255 * (lightness - chroma * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
    };
    return [channel(0), channel(8), channel(4)];
  };
  const TREE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const HEAT = [[222, 232, 240], [250, 190, 110], [214, 80, 60], [110, 16, 60]];
  const most = owner.reduce((largest, number) => Math.max(largest, number ?? 0), 1);
  const times = modified.filter((time, index) => used[index] > 0).sort((a, b) => a - b);
  const rank = (time) => {
    let low = 0, high = times.length;
    while (low < high) { const middle = (low + high) >> 1; if (times[middle] < time) low = middle + 1; else high = middle; }
    return times.length > 1 ? low / (times.length - 1) : 0.5;
  };
  const moment = (seconds, end) => (Math.abs(seconds) < 8e12 ? new Date(seconds * 1000).toISOString().slice(0, end).replace("T", " ") : "–");
  const date = (seconds) => moment(seconds, 10);
  // From when to when: by the day, or by the minute or second if that is within one day.
  const period = (first, last) => {
    const end = [10, 16, 19].find((end) => moment(first, end) !== moment(last, end));
    if (end === undefined) return `all at ${moment(first, 19)} UTC`;
    return `from ${moment(first, end)} (dark) to ${moment(last, end)}${end > 10 ? " UTC" : ""} (light)`;
  };
  const modes = {
    tree: {
      legend: "Colour: the place in the tree of the file that holds most of the cell, from the first file to the last.",
      colour: (index) => mix(TREE, (owner[index] ?? 0) / most),
      scale: (share) => mix(TREE, share),
    },
    directory: {
      legend: "Colour: the directory of the file that holds most of the cell. One colour may stand for several.",
      colour: (index) => {
        const number = files.get(owner[index])?.directory ?? 0;
        return hue((number * 137.508) % 360, 0.55, 0.42 + 0.2 * ((number * 0.618) % 1));
      },
      scale: (share) => hue(share * 360, 0.55, 0.52),
    },
    age: {
      legend: times.length ? `Colour: when the content was modified, ${period(times[0], times[times.length - 1])}.` : "",
      colour: (index) => mix(TREE, rank(modified[index])),
      scale: (share) => mix(TREE, share),
    },
    extents: {
      legend: "Colour: how many extents lie in the cell, from 1 to 16 and more.",
      colour: (index) => mix(HEAT, Math.log2(Math.max(1, extents[index])) / 4),
      scale: (share) => mix(HEAT, share),
    },
  };
  let mode = "tree";
  const swatch = (name, text) => {
    const entry = document.createElement("span");
    const colour = document.createElement("i");
    colour.style.background = `var(${name})`;
    entry.append(colour, text);
    return entry;
  };
  const endsBefore = side * side * cellBytes > data.volume_bytes;
  const kinds = knowsFree ? [swatch("--faint", "free"), swatch("--axis", "metadata")] : [swatch("--faint", "free or metadata")];
  if (endsBefore) kinds.push(swatch("--paper", "beyond the volume's end"));
  document.getElementById("map-kinds").replaceChildren(...kinds);
  let chosen = null;
  const over = (context, scale, view) => {
    if (chosen === null) return;
    context.fillStyle = getComputedStyle(root).getPropertyValue("--full");
    const mine = owner[chosen];
    for (let point = 0; point < side * side; point += 1) {
      if (at[point] !== chosen && (mine === null || owner[at[point]] !== mine)) continue;
      const x = ((point % side) - view.x) * scale, y = (Math.floor(point / side) - view.y) * scale;
      context.globalAlpha = at[point] === chosen ? 1 : 0.85;
      context.fillRect(x, y, Math.max(scale, 3), Math.max(scale, 3));
    }
    context.globalAlpha = 1;
  };
  const view = senesceMap.view(canvas, side, { over, pick: (place) => place && choose(...place) });
  const paint = () => {
    const blank = theme("--faint"), other = theme("--axis"), paper = theme("--paper");
    view.paint((point) => {
      const index = at[point];
      if (used[index] > 0) return fade(modes[mode].colour(index), used[index] / cellBytes, blank);
      if (index * cellBytes >= data.volume_bytes) return paper;
      return knowsFree && free[index] < cellBytes / 2 ? other : blank;
    });
    document.getElementById("map-legend").textContent = modes[mode].legend;
    document.getElementById("map-scale").replaceChildren(...Array.from({ length: 40 }, (_, step) => {
      const part = document.createElement("span");
      part.style.background = `rgb(${modes[mode].scale(step / 39).join(" ")})`;
      return part;
    }));
  };
  // Characters of names that control or reverse the text are shown as escapes.
  const printable = (text) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
  const describe = (index) => {
    const from = index * cellBytes;
    if (from >= data.volume_bytes && !used[index]) return "beyond the volume's end";
    const lines = [`${range(from, Math.min(from + cellBytes, data.volume_bytes))} of the volume`];
    const file = files.get(owner[index]);
    if (file) {
      const directory = data.map_directories[file.directory];
      lines.push(printable(`${directory ? directory + "/" : ""}${file.name || "(directory)"}`), `${size(file.size_bytes)} in ${file.extents} extent${file.extents === 1 ? "" : "s"}, modified ${date(modified[index])}`);
    }
    const parts = [`${size(used[index])} of files${used[index] ? ` in ${extents[index]} extent${extents[index] === 1 ? "" : "s"}` : ""}`];
    const rest = Math.min(cellBytes, data.volume_bytes - from) - used[index] - free[index];
    if (knowsFree) parts.push(`${size(free[index])} free`);
    if (rest > 0) parts.push(`${size(rest)} of metadata${knowsFree ? "" : " or free"}`);
    lines.push(parts.join(", "));
    return lines.join("\n");
  };
  const choose = (x, y) => {
    chosen = at[y * side + x];
    document.getElementById("map-cell").textContent = describe(chosen);
    if (chosen * cellBytes >= data.volume_bytes && !used[chosen]) chosen = null;
    view.draw();
  };
  document.getElementById("zoom-in").addEventListener("click", () => view.zoom(0.5));
  document.getElementById("zoom-out").addEventListener("click", () => view.zoom(2));
  for (const button of document.querySelectorAll("button.mode")) {
    button.addEventListener("click", () => {
      mode = button.dataset.mode;
      for (const other of document.querySelectorAll("button.mode")) other.setAttribute("aria-pressed", other === button);
      paint();
    });
  }
  document.getElementById("theme").addEventListener("click", paint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  paint();
})();
