"use strict";
(() => {
  const data = JSON.parse(document.getElementById("senesce-data").textContent);
  const { side, cell_bytes: cellBytes, used, free, extents, owner, modified } = data.map;
  const knowsFree = data.free_space !== null;
  const files = new Map(data.map_files.map((file) => [file.number, file]));
  const canvas = document.getElementById("volume-map");
  const { size, range, sideFor, cellsAt, mix, theme, places, fade } = senesceMap;
  const root = document.documentElement;
  // Cells with files, with what is between near ones; or all cells.
  const GAP = 8;
  const count = Math.min(side * side, Math.ceil(data.volume_bytes / cellBytes));
  const near = new Uint8Array(side * side);
  used.forEach((bytes, index) => { if (bytes > 0) near.fill(1, Math.max(0, index - GAP / 2), index + GAP / 2 + 1); });
  const cells = [...near.keys()].filter((index) => near[index]);
  const layout = (cells, side) => ({ side, at: cellsAt(side).map((index) => cells[index] ?? -1) });
  const parts = { used: layout(cells, sideFor(cells.length)), all: layout([...near.keys()].slice(0, Math.max(count, (cells.at(-1) ?? 0) + 1)), side) };
  let part = cells.length ? parts.used : parts.all;

  // Colours: even steps of lightness and hue, so that neighbours in the tree look alike and strangers do not.
  const hue = (degrees, saturation, lightness) => {
    const chroma = saturation * Math.min(lightness, 1 - lightness);
    const channel = (n) => {
      const k = (n + degrees / 30) % 12;
      return Math.round(255 * (lightness - chroma * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
    };
    return [channel(0), channel(8), channel(4)];
  };
  let TREE = places();
  // None of them is like the grey of free space.
  const HEAT = [[255, 233, 148], [254, 178, 76], [227, 60, 40], [104, 0, 62]];
  // The pieces of the file that fills most of the cell. Extents of the cell would count two whole files as fragments.
  const pieces = (index) => files.get(owner[index])?.extents ?? 1;
  const mostPieces = owner.reduce((largest, number) => Math.max(largest, files.get(number)?.extents ?? 1), 1);
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
      legend: mostPieces > 1
        ? `Colour: the number of extents of the file that fills most of the cell, from 1 to ${mostPieces.toLocaleString("en")}, on a logarithmic scale.`
        : "Colour: the number of extents of the file that fills most of the cell. Each of these files has one extent.",
      colour: (index) => mix(HEAT, Math.log2(Math.max(1, pieces(index))) / Math.log2(Math.max(2, mostPieces))),
      scale: (share) => mix(HEAT, share),
    },
  };
  let mode = "tree";
  const swatch = (name, text) => {
    const entry = document.createElement("span");
    const colour = document.createElement("i");
    if (name) colour.style.background = `var(${name})`;
    else colour.className = "hatch";
    entry.append(colour, text);
    return entry;
  };
  const kinds = knowsFree ? [swatch("--paper", "free"), swatch("--axis", "metadata, other files")] : [swatch("--paper", "free, metadata, other files")];
  const partly = swatch("--paper", "partly filled by files");
  kinds.unshift(partly);
  kinds.push(swatch("", "no part of the volume"));
  document.getElementById("map-kinds").replaceChildren(...kinds);
  let chosen = null, isPinned = false;
  // The cells of a row of a table: those under the pointer stand out, those of a clicked row hide all others.
  let lit = null, kept = null;
  const over = (context, scale, view) => {
    const mine = chosen === null ? null : owner[chosen];
    if (chosen === null && !lit) return;
    // The scale of extents has the orange of the mark.
    context.fillStyle = getComputedStyle(root).getPropertyValue(mode === "extents" ? "--empty" : "--full");
    for (let point = 0; point < part.side * part.side; point += 1) {
      const index = part.at[point];
      if (index < 0 || !(lit ? lit.has(owner[index]) && used[index] > 0 : index === chosen || (mine !== null && owner[index] === mine))) continue;
      const x = ((point % part.side) - view.x) * scale, y = (Math.floor(point / part.side) - view.y) * scale;
      context.globalAlpha = index === chosen ? 1 : 0.85;
      context.fillRect(x, y, Math.max(scale, 3), Math.max(scale, 3));
    }
    context.globalAlpha = 1;
  };
  const view = senesceMap.view(canvas, part.side, { over, pick: (place) => place && !isPinned && choose(...place) });
  const paint = () => {
    const blank = theme("--paper"), other = theme("--axis");
    document.getElementById("map-gaps").hidden = part === parts.all;
    TREE = places();
    const shade = (share) => `rgb(${fade(modes[mode].scale(0.4), share, blank).join(" ")})`;
    partly.querySelector("i").style.background = `linear-gradient(to right, ${shade(0)}, ${shade(1)})`;
    view.paint((point) => {
      const index = part.at[point];
      if (index < 0) return null;
      if (used[index] > 0) {
        const colour = fade(modes[mode].colour(index), used[index] / cellBytes, blank);
        return kept && !kept.has(owner[index]) ? mix([blank, colour], 0.12) : colour;
      }
      if (index * cellBytes >= data.volume_bytes) return null;
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
    if (rest > 0) parts.push(`${size(rest)} of metadata or other files${knowsFree ? "" : " or free"}`);
    lines.push(parts.join(", "));
    return lines.join("\n");
  };
  const choose = (x, y) => {
    chosen = part.at[y * part.side + x];
    if (chosen < 0) { chosen = null; return view.draw(); }
    document.getElementById("map-cell").textContent = describe(chosen);
    if (chosen * cellBytes >= data.volume_bytes && !used[chosen]) chosen = null;
    view.draw();
  };
  // A click keeps the cell, so that its path can be copied.
  canvas.addEventListener("click", () => {
    isPinned = !isPinned && chosen !== null;
    document.getElementById("map-cell").classList.toggle("pinned", isPinned);
  });
  for (const button of document.querySelectorAll("#map button.part")) {
    button.addEventListener("click", () => {
      part = parts[button.dataset.part];
      for (const other of document.querySelectorAll("#map button.part")) other.setAttribute("aria-pressed", other === button);
      view.resize(part.side);
      paint();
    });
  }
  // Rows of the tables of losers are linked to the cells of their files.
  const numbers = new Map();
  for (const [number, file] of files) {
    const directory = data.map_directories[file.directory] ?? "";
    const path = file.name ? (directory ? `${directory}/${file.name}` : file.name) : directory;
    for (const key of [`worst_files ${path}`, ...(file.name ? [`worst_directories ${directory}`] : [])]) {
      if (!numbers.has(key)) numbers.set(key, new Set());
      numbers.get(key).add(number);
    }
  }
  for (const row of document.querySelectorAll("tr[data-loser]")) {
    const [table, at] = row.dataset.loser.split(" ");
    const found = numbers.get(`${table} ${data[table][Number(at)].path}`);
    if (!found) continue;
    const light = (cells) => { chosen = null; lit = cells; view.draw(); };
    row.classList.add("linked");
    row.tabIndex = 0;
    row.setAttribute("aria-pressed", "false");
    row.title = "Shows its cells on the map; click to hide all others";
    row.addEventListener("pointerenter", () => light(found));
    row.addEventListener("pointerleave", () => light(null));
    row.addEventListener("focus", () => light(found));
    row.addEventListener("blur", () => light(null));
    const keep = () => {
      kept = kept === found ? null : found;
      for (const other of document.querySelectorAll("tr.linked")) other.setAttribute("aria-pressed", other === row && kept !== null);
      paint();
    };
    row.addEventListener("click", () => { if (!String(getSelection())) keep(); });
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") keep(); });
  }
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
  const field = (text) => `"${printable(String(text)).replace(/^[=+\-@]/, "'$&").replaceAll('"', '""')}"`;
  document.getElementById("map").addEventListener("wantcsv", (event) => {
    const rows = ["first_byte,bytes,file_bytes,free_bytes,extents,modified,path"];
    for (let cell = 0; cell < count; cell += 1) {
      const file = files.get(owner[cell]), directory = file && data.map_directories[file.directory];
      const path = file ? field(`${directory ? `${directory}/` : ""}${file.name}`) : "";
      rows.push([cell * cellBytes, cellBytes, used[cell], knowsFree ? free[cell] : "", extents[cell], used[cell] ? modified[cell] : "", path].join(","));
    }
    event.target.querySelector("template.csv").content.textContent = `${rows.join("\n")}\n`;
  });
})();
